//go:build unix

package sqlite_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

// nobody is a user that owns none of the test's files.
const nobody = 65534

// asOther opens the store in a folder as another user, who has only the rights
// that modes give, and returns what came of it. Root has every right and plays
// that user in a child process; anybody else is one already.
func asOther(t *testing.T, root string, readOnly bool) string {
	t.Helper()
	cmd := childCommand(t, root)
	if readOnly {
		cmd.Env = append(cmd.Env, childEnv+"_READONLY=1")
	}
	if os.Geteuid() == 0 {
		cmd.Path = publicBinary(t)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: true}}
	}
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return strings.TrimSpace(string(output))
}

// publicBinary is a copy of the test binary that everybody may execute.
func publicBinary(t *testing.T) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(publicDir(t), "test")
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	return path
}

// publicDir is a folder for the test that everybody may enter.
func publicDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// allow sets modes, and gives rights back after the test so that it can be cleaned up.
func allow(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(path, mode|0o700) })
}

func TestRightsDecideWhatCanBeOpened(t *testing.T) {
	t.Parallel()
	absent := func(t *testing.T, root string) {}
	ours := func(t *testing.T, root string) { open(t, root, sqlite.Options{}).Close() }
	theirs := func(t *testing.T, root string) { reference.Create(t, root, reference.Schema) }
	tests := []struct {
		name         string
		make         func(*testing.T, string)
		folder, file os.FileMode
		readOnly     bool
		want         string // a code, or "" for success
	}{
		{"an absent file in a folder that may not be written", absent, 0o555, 0, false, string(schema.ErrStoreReadonly)},
		{"a file that may not be written", theirs, 0o755, 0o444, false, string(schema.ErrStoreReadonly)},
		{"a file of ours that may not be written", ours, 0o777, 0o444, false, string(schema.ErrStoreReadonly)},
		{"a file that may not be written, for reading", theirs, 0o555, 0o444, true, ""},
		{"a file that may not be read", theirs, 0o755, 0, false, string(schema.ErrStoreReadonly)},
		{"a file that may not be read, for reading", theirs, 0o755, 0, true, string(schema.ErrStoreReadonly)},
		{"a folder that may not be entered", ours, 0, 0o666, false, string(schema.ErrStoreReadonly)},
		{"a file that everybody may write", theirs, 0o777, 0o666, false, "an identity"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join(publicDir(t), "root")
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			test.make(t, root)
			if _, err := os.Stat(file(root)); err == nil {
				allow(t, file(root), test.file)
			}
			allow(t, root, test.folder)
			got := asOther(t, root, test.readOnly)
			if test.want == "an identity" && len(got) == 36 {
				return
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestRootThatCannotBeMade: the folder above may not be written.
func TestRootThatCannotBeMade(t *testing.T) {
	t.Parallel()
	folder := publicDir(t)
	allow(t, folder, 0o555)
	if got := asOther(t, filepath.Join(folder, "root"), false); got != string(schema.ErrStoreReadonly) {
		t.Errorf("got %q, want %s", got, schema.ErrStoreReadonly)
	}
}
