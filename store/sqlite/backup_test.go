package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

func unwatched(done, total int) {}

// backUp makes a backup of the store in a folder and returns its path.
func backUp(t *testing.T, root string) (path string, copied *sqlite.Copied) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "backup")
	s := open(t, root, sqlite.Options{ReadOnly: true})
	copied, err := s.Backup(t.Context(), path, unwatched)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	return path, copied
}

// rows is everything in the file of a folder but what sidecars remember of it.
func rows(t *testing.T, root string) string {
	t.Helper()
	db := reference.Open(t, root)
	var text strings.Builder
	for _, table := range []string{"task", "task_event", "governor_run", "governor_reservation", "governor_retry_charge", "governor_hold", "governor_audit"} {
		fmt.Fprintf(&text, "%s\n%s\n", table, reference.Rows(t, db, "SELECT rowid, * FROM "+table+" ORDER BY rowid"))
	}
	text.WriteString(reference.Rows(t, db, "SELECT name, sql FROM sqlite_schema ORDER BY name"))
	return text.String()
}

// nothingIn checks that a folder is empty, or does not exist.
func nothingIn(t *testing.T, folder string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, entry := range entries {
		t.Errorf("%s was left behind", entry.Name())
	}
}

func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	root := soundLedger(t)
	before := content(t, root)
	path, backup := backUp(t, root)
	unchanged(t, root, before)
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("the backup is %d files (%v)", len(entries), err)
	}
	if runtime.GOOS != "windows" {
		mode(t, path, 0o600)
	}

	restored := filepath.Join(t.TempDir(), "a", "root")
	made, err := sqlite.Restore(t.Context(), path, restored, sqlite.Options{}, unwatched)
	if err != nil {
		t.Fatal(err)
	}
	if backup.Rows != made.Rows || backup.Bytes == 0 || made.File != filepath.Join(restored, sqlite.FileName) {
		t.Errorf("a backup of %+v became %+v", backup, made)
	}
	if runtime.GOOS != "windows" {
		mode(t, filepath.Dir(restored), 0o700)
		mode(t, restored, 0o700)
		mode(t, made.File, 0o600)
	}
	if got := journal(t, restored); got != "wal" {
		t.Errorf("the restored store has the journal mode %s", got)
	}
	if want, got := rows(t, root), rows(t, restored); got != want {
		t.Errorf("the store\n%s\nwas restored as\n%s", want, got)
	}
	s := &scribe{t, open(t, restored, sqlite.Options{})}
	s.task("run", "s")
}

// A backup is a copy of the store it was taken from; a restored store is another one.
func TestRestoredStoreHasItsOwnIdentity(t *testing.T) {
	t.Parallel()
	root := soundLedger(t)
	path, backup := backUp(t, root)
	original := open(t, root, sqlite.Options{}).Identity().ID
	restored := t.TempDir()
	made, err := sqlite.Restore(t.Context(), path, restored, sqlite.Options{}, unwatched)
	if err != nil {
		t.Fatal(err)
	}
	if backup.StoreID != original || made.StoreID == original || len(made.StoreID) != 36 {
		t.Errorf("the store %s was backed up as %s and restored as %s", original, backup.StoreID, made.StoreID)
	}
	if got := open(t, restored, sqlite.Options{}).Identity().ID; got != made.StoreID {
		t.Errorf("it is served as %s, not %s", got, made.StoreID)
	}
	if from := reference.Rows(t, reference.Open(t, restored), "SELECT value FROM sidecar_meta WHERE key = 'restored_from'"); from != "'"+original+"'\n" {
		t.Errorf("it remembers that it comes from %s, want %s", from, original)
	}
}

// What is acknowledged before a backup begins is in it; it is sound whatever
// others write meanwhile, and writers go on.
func TestBackupBesideWriters(t *testing.T) {
	for _, statements := range []string{"PRAGMA journal_mode = WAL", "PRAGMA journal_mode = DELETE"} {
		t.Run(statements, func(t *testing.T) {
			t.Parallel()
			root := soundLedger(t)
			execute(t, root, statements)
			live := &scribe{t, open(t, root, sqlite.Options{})}
			written := make(chan int64)
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for n := int64(1); ; n++ {
					if err := add(live.store, "busy", fmt.Sprint(n)); err != nil {
						t.Error(err)
						return
					}
					select {
					case written <- n:
					case <-stop:
						return
					}
				}
			}()
			for range 5 {
				n := <-written
				path, copied := backUp(t, root)
				if copied.Rows.Tasks < 5+n {
					t.Errorf("%d tasks are in the backup, but %d were acknowledged before", copied.Rows.Tasks, 5+n)
				}
				if _, err := sqlite.Restore(t.Context(), path, filepath.Join(t.TempDir(), "root"), sqlite.Options{}, unwatched); err != nil {
					t.Error(err)
				}
			}
			close(stop)
			<-stopped
		})
	}
}

func TestBackupOfTheOtherWritersFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	reference.Unpack(t, "legacy-2001", root)
	path, copied := backUp(t, root)
	if copied.StoreID != "" {
		t.Errorf("a file that no sidecar has served got the identity %s", copied.StoreID)
	}
	restored := t.TempDir()
	if _, err := sqlite.Restore(t.Context(), path, restored, sqlite.Options{}, unwatched); err != nil {
		t.Fatal(err)
	}
	if id := open(t, restored, sqlite.Options{}).Identity().ID; len(id) != 36 {
		t.Errorf("the restored store is served with the identity %q", id)
	}
}

// Nothing is ever overwritten, and what is left of another store is not mixed with this one.
func TestCopiesNeverOverwrite(t *testing.T) {
	t.Parallel()
	root := soundLedger(t)
	path, _ := backUp(t, root)
	s := open(t, root, sqlite.Options{ReadOnly: true})
	for _, ending := range []string{"", "-wal", "-shm", "-journal"} {
		folder := t.TempDir()
		target := filepath.Join(folder, "target")
		writeFile(t, target+ending, "precious")
		_, err := s.Backup(t.Context(), target, unwatched)
		failed(t, err, schema.ErrStoreConfig)
		writeFile(t, file(folder)+ending, "precious")
		_, err = sqlite.Restore(t.Context(), path, folder, sqlite.Options{}, unwatched)
		failed(t, err, schema.ErrStoreConfig)
		unchanged(t, folder, map[string]string{"target" + ending: "-rw-r--r--precious", sqlite.FileName + ending: "-rw-r--r--precious"})
	}
	folder := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(folder, "target")); err == nil {
		_, err := s.Backup(t.Context(), filepath.Join(folder, "target"), unwatched)
		failed(t, err, schema.ErrStoreConfig)
	}
	_, err := s.Backup(t.Context(), filepath.Join(folder, "absent", "target"), unwatched)
	failed(t, err, schema.ErrStoreConfig)
}

// A file that takes the name while the copy is made is left alone too.
func TestCopyFindsItsNameTaken(t *testing.T) {
	t.Parallel()
	target := filepath.Join(t.TempDir(), "target")
	s := open(t, soundLedger(t), sqlite.Options{ReadOnly: true})
	_, err := s.Backup(t.Context(), target, func(int, int) { writeFile(t, target, "precious") })
	failed(t, err, schema.ErrStoreConfig)
	unchanged(t, filepath.Dir(target), map[string]string{"target": "-rw-r--r--precious"})
}

// Neither a damaged file nor a ledger with faults is copied or restored.
func TestCopiesRefuseFaults(t *testing.T) {
	t.Parallel()
	damage := map[string]func(*testing.T, string){
		"page":   func(t *testing.T, root string) { overwrite(t, root, "governor_hold") },
		"index":  func(t *testing.T, root string) { overwrite(t, root, "sidecar_audit_run") },
		"ledger": func(t *testing.T, root string) { execute(t, root, "DELETE FROM governor_hold") },
	}
	for name, do := range damage {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := soundLedger(t)
			do(t, root)
			folder := t.TempDir()
			_, err := open(t, root, sqlite.Options{ReadOnly: true}).Backup(t.Context(), filepath.Join(folder, "backup"), unwatched)
			failed(t, err, schema.ErrStoreCorrupt)
			nothingIn(t, folder)
			_, err = sqlite.Restore(t.Context(), file(root), filepath.Join(folder, "root"), sqlite.Options{}, unwatched)
			failed(t, err, schema.ErrStoreCorrupt)
			nothingIn(t, folder)
		})
	}
}

func TestRestoreRefusesWhatIsNoBackup(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path, _ := backUp(t, soundLedger(t))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	another := t.TempDir()
	reference.Create(t, another, "CREATE TABLE address (name, street)")
	strange, err := os.ReadFile(file(another))
	if err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"", "Dear sidecar, this is not a database, however long it may grow.", string(whole[:len(whole)/2]), string(strange)} {
		from := filepath.Join(t.TempDir(), "backup")
		writeFile(t, from, content)
		_, err := sqlite.Restore(t.Context(), from, filepath.Join(folder, "root"), sqlite.Options{}, unwatched)
		failed(t, err, schema.ErrStoreCorrupt)
	}
	_, err = sqlite.Restore(t.Context(), filepath.Join(folder, "absent"), filepath.Join(folder, "root"), sqlite.Options{}, unwatched)
	failed(t, err, schema.ErrStoreConfig)
	nothingIn(t, folder)
}

// An interrupt in the middle leaves nothing behind.
func TestInterruptedCopy(t *testing.T) {
	t.Parallel()
	root := soundLedger(t)
	execute(t, root, "CREATE TABLE ballast AS SELECT zeroblob(8000000) AS bytes")
	s := open(t, root, sqlite.Options{ReadOnly: true})
	folder := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	last := 0
	_, err := s.Backup(ctx, filepath.Join(folder, "backup"), func(done, total int) {
		if done <= last || done > total {
			t.Errorf("%d pages of %d are copied after %d", done, total, last)
		}
		if last = done; done > total/2 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	nothingIn(t, folder)
	if err := s.Read(t.Context(), func(tx store.Tx) error { _, err := tx.Runs("", 1); return err }); err != nil {
		t.Error(err)
	}
}
