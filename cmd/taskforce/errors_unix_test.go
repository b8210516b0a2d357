//go:build unix

package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

func init() {
	provocations[schema.ErrStoreReplaced] = provokeStoreReplaced
	provocations[schema.ErrStoreReadonly] = provokeStoreReadonly
}

// The file is moved away, then another is put in its place, then it comes back.
func provokeStoreReplaced(t *testing.T) {
	root, other := newStore(t), newStore(t)
	path := filepath.Join(root, sqlite.FileName)
	s := serve(t, root)
	result(s, schema.Ping, schema.NoParams{}) // it has opened the file
	rename := func(from, to string) {
		t.Helper()
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	refused := func() {
		t.Helper()
		s.refused(schema.ErrStoreReplaced, "governor.reserve", reserving("run", 1, 0, schema.Read, schema.Reuse))
		s.refused(schema.ErrStoreReplaced, "governor.summary", schema.RunParams{RunID: "run"})
	}
	rename(path, path+".away")
	refused()
	if _, err := os.Stat(path); err == nil {
		t.Error("the sidecar has made a new ledger")
	}
	rename(filepath.Join(other, sqlite.FileName), path)
	refused()
	rename(path+".away", path)
	result(s, schema.Reserve, reserving("run", 1, 0, schema.Read, schema.Reuse))
}

func provokeStoreReadonly(t *testing.T) {
	root := newStore(t)
	chmod(t, filepath.Join(root, sqlite.FileName), 0o444)
	chmod(t, root, 0o777)
	s := launch(t, unprivileged(t, root, "serve", "--root", root))
	s.refused(schema.ErrStoreReadonly, "governor.reserve", reserving("run", 1, 0, schema.Read, schema.Reuse))
	result(s, schema.GetTask, schema.TaskParams{RunID: "run", Authority: lead, Input: schema.TaskInput{TaskID: 1}})
}

// unprivileged is a command of a user whom file modes stop, which they do not
// the superuser. The parents of the root folder are opened for that user.
func unprivileged(t *testing.T, root string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := program(t, args...)
	if os.Getuid() != 0 {
		return cmd
	}
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	for _, path := range []string{root, cmd.Path} {
		for folder := filepath.Dir(path); folder != filepath.Clean(os.TempDir()); folder = filepath.Dir(folder) {
			chmod(t, folder, 0o755)
		}
	}
	return cmd
}

// Without the right to the folder nothing is made, and the line says so.
func TestUnwritableRoot(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	chmod(t, folder, 0o555)
	for _, command := range []string{"serve", "status", "doctor"} {
		s := launch(t, unprivileged(t, folder, command, "--root", filepath.Join(folder, "root")))
		s.refusesToStart(folder)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) > 0 {
		t.Errorf("the folder has %v (%v)", entries, err)
	}
}

// A store that the user may not read is left alone.
func TestUnreadableStore(t *testing.T) {
	t.Parallel()
	root := newStore(t)
	path := filepath.Join(root, sqlite.FileName)
	before, err := contents(root)
	if err != nil {
		t.Fatal(err)
	}
	chmod(t, path, 0)
	for _, command := range []string{"serve", "status", "doctor"} {
		launch(t, unprivileged(t, root, command, "--root", root)).refusesToStart(string(schema.ErrStoreReadonly))
	}
	chmod(t, path, 0o600)
	after, err := contents(root)
	if err != nil || !maps.Equal(before, after) {
		t.Errorf("the store has changed (%v)", err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
