package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

func TestOpenMakesAnAbsentFile(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, root, sqlite.Options{})
	if err := add(s, "run", "t"); err != nil {
		t.Fatal(err)
	}
	if got := journal(t, root); got != "wal" {
		t.Errorf("a new file has the journal mode %s", got)
	}
}

func TestOpenTakesAnEmptyFileForANewOne(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeFile(t, file(root), "")
	s := open(t, root, sqlite.Options{})
	if err := add(s, "run", "t"); err != nil {
		t.Fatal(err)
	}
	if got := journal(t, root); got != "wal" {
		t.Errorf("an empty file has the journal mode %s", got)
	}
}

// TestNewFilesArePrivate: 0600 in a folder 0700, while what existed keeps its mode.
func TestNewFilesArePrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	root := filepath.Join(t.TempDir(), "root")
	s := open(t, root, sqlite.Options{})
	if err := add(s, "run", "t"); err != nil {
		t.Fatal(err)
	}
	mode(t, root, 0o700)
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 3 {
		t.Errorf("only %d files; where is the log?", len(entries))
	}
	for _, entry := range entries {
		mode(t, filepath.Join(root, entry.Name()), 0o600)
	}

	shared := t.TempDir()
	reference.Create(t, shared, reference.Schema)
	for path, want := range map[string]os.FileMode{shared: 0o750, file(shared): 0o640} {
		if err := os.Chmod(path, want); err != nil {
			t.Fatal(err)
		}
	}
	open(t, shared, sqlite.Options{})
	mode(t, shared, 0o750)
	mode(t, file(shared), 0o640)
}

func mode(t *testing.T, path string, want os.FileMode) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != want {
		t.Errorf("%s has mode %o, want %o", filepath.Base(path), got, want)
	}
}

// TestOpenKeepsTheJournalMode of an existing file.
func TestOpenKeepsTheJournalMode(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"delete", "wal"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			reference.Create(t, root, "PRAGMA journal_mode = "+want, reference.Schema)
			for range 2 {
				s := open(t, root, sqlite.Options{})
				if err := add(s, "run", "t"); err != nil {
					t.Fatal(err)
				}
				s.Close()
				if got := journal(t, root); got != want {
					t.Errorf("the journal mode became %s", got)
				}
			}
		})
	}
}

func TestReopeningFindsTheSameStore(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	first := open(t, root, sqlite.Options{})
	if err := add(first, "run", "t"); err != nil {
		t.Fatal(err)
	}
	first.Close()
	second := open(t, root, sqlite.Options{})
	if first.Identity() != second.Identity() {
		t.Errorf("%+v became %+v", first.Identity(), second.Identity())
	}
	if got := titles(t, second, "run"); got != "t" {
		t.Errorf("tasks %q", got)
	}
	other := open(t, t.TempDir(), sqlite.Options{})
	if other.Identity().ID == first.Identity().ID {
		t.Error("two stores share an identity")
	}
}

// TestOpenRefusesDamagedFiles and leaves them as they are.
func TestOpenRefusesDamagedFiles(t *testing.T) {
	t.Parallel()
	whole := t.TempDir()
	s := open(t, whole, sqlite.Options{})
	for i := range 50 {
		if err := add(s, "run", strings.Repeat(fmt.Sprint(i), 200)); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	bytes, err := os.ReadFile(file(whole))
	if err != nil {
		t.Fatal(err)
	}
	overwritten := append([]byte{}, bytes...)
	for i := 100; i < 4096; i++ {
		overwritten[i] = 0xaa
	}
	damaged := map[string]string{
		"a few letters":     "hello",
		"a text":            strings.Repeat("This is not a database. ", 1000),
		"zeroes":            strings.Repeat("\x00", 8192),
		"half a header":     string(bytes[:50]),
		"a header only":     string(bytes[:100]),
		"half a page":       string(bytes[:2048]),
		"one page":          string(bytes[:4096]),
		"half the pages":    string(bytes[:len(bytes)/8192*4096]),
		"one page too few":  string(bytes[:len(bytes)-4096]),
		"another's schema":  string(overwritten),
		"another's version": strings.Replace(string(bytes), "SQLite format 3", "SQLite format 9", 1),
	}
	for name, text := range damaged {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			writeFile(t, file(root), text)
			before := content(t, root)
			for _, options := range []sqlite.Options{{}, {ReadOnly: true}} {
				refuses(t, root, options, schema.ErrStoreCorrupt)
				unchanged(t, root, before)
			}
		})
	}
}

func TestOpenRefusesANewerVersion(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	open(t, root, sqlite.Options{}).Close()
	tests := map[string]schema.Code{
		"2": schema.ErrStoreVersion, "999999999": schema.ErrStoreVersion,
		"two": schema.ErrStoreCorrupt, "": schema.ErrStoreCorrupt, "99999999999999999999": schema.ErrStoreCorrupt,
	}
	for version, code := range tests {
		db := reference.Open(t, root)
		reference.Exec(t, db, "UPDATE sidecar_meta SET value = '"+version+"' WHERE key = 'schema_version'")
		db.Close()
		before := content(t, root)
		for _, options := range []sqlite.Options{{}, {ReadOnly: true}} {
			refuses(t, root, options, code)
			unchanged(t, root, before)
		}
	}
}

// TestOpenRefusesWhatIsNoFile.
func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	plain := filepath.Join(folder, "plain")
	writeFile(t, plain, "")
	asFolder := filepath.Join(folder, "folder")
	if err := os.MkdirAll(file(asFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, options := range []sqlite.Options{{}, {ReadOnly: true}} {
		for _, root := range []string{plain, filepath.Join(plain, "below"), asFolder} {
			refusal := refuses(t, root, options, schema.ErrStoreConfig)
			if !strings.Contains(refusal.Message, folder) {
				t.Errorf("the refusal does not say which path: %s", refusal.Message)
			}
		}
	}
}

func TestReadOnlyMakesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	root := filepath.Join(folder, "absent")
	refuses(t, root, sqlite.Options{ReadOnly: true}, schema.ErrStoreConfig)
	refuses(t, folder, sqlite.Options{ReadOnly: true}, schema.ErrStoreConfig)
	unchanged(t, folder, nil)
}

// TestOpenHonoursItsContext.
func TestOpenHonoursItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := sqlite.Open(ctx, t.TempDir(), sqlite.Options{})
	if err == nil {
		s.Close()
		t.Error("it opened")
	}
}

// TestMessagesHideTheDriver: what the wire shows speaks of the store, not of SQL.
func TestMessagesHideTheDriver(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeFile(t, file(root), strings.Repeat("x", 9000))
	refusal := refuses(t, root, sqlite.Options{}, schema.ErrStoreCorrupt)
	for _, word := range []string{"SQL logic", "sqlite:", "(26)", "PRAGMA"} {
		if strings.Contains(refusal.Message, word) {
			t.Errorf("the message shows %q: %s", word, refusal.Message)
		}
	}
	if refusal.Err == nil {
		t.Error("the cause is lost to the log")
	}
}
