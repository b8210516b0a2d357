package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
	driver "modernc.org/sqlite"
)

// restoreOver writes a backup over the database of a folder as another process
// would, by SQLite's own means.
func restoreOver(t *testing.T, root, backup string) {
	t.Helper()
	c, err := reference.Open(t, root).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Raw(func(raw any) error {
		restoring, err := raw.(interface {
			NewRestore(string) (*driver.Backup, error)
		}).NewRestore(backup)
		if err != nil {
			return err
		}
		_, err = restoring.Step(-1)
		return errors.Join(err, restoring.Finish())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// refusesCalls checks that a store answers neither writes nor reads.
func refusesCalls(t *testing.T, s *sqlite.Store) {
	t.Helper()
	for range 2 {
		failed(t, add(s, "run", "lost"), schema.ErrStoreReplaced)
		err := s.Read(context.Background(), func(store.Tx) error { t.Error("it read"); return nil })
		failed(t, err, schema.ErrStoreReplaced)
	}
}

// An older state of the store, or another store, that was restored over an open
// one is refused, by writes and reads, until the store is opened again.
func TestRestoredOverFailsClosed(t *testing.T) {
	t.Parallel()
	acts := map[string]func(*scribe){
		"an admission": func(s *scribe) { s.reserve("run", s.task("run", ""), 0, "late", schema.Read, schema.Reuse) },
		"a task":       func(s *scribe) { s.task("run", "") },
		"nothing":      func(*scribe) {},
	}
	for name, act := range acts {
		t.Run(name+" is lost", func(t *testing.T) {
			t.Parallel()
			root := soundLedger(t)
			s := &scribe{t, open(t, root, sqlite.Options{})}
			s.task("run", "")
			path, _ := backUp(t, root)
			act(s)
			restoreOver(t, root, path)
			if name == "nothing" {
				s.task("run", "")
				return
			}
			refusesCalls(t, s.store)
			open(t, root, sqlite.Options{})
			refusesCalls(t, s.store)
			again := &scribe{t, open(t, root, sqlite.Options{})}
			again.task("run", "")
			refusesCalls(t, s.store) // although there is an event of the same number now
			verify := open(t, root, sqlite.Options{ReadOnly: true})
			if v, err := verify.Verify(t.Context()); err != nil || len(v.Breaches) > 0 {
				t.Errorf("the restored ledger: %+v (%v)", v, err)
			}
		})
	}
	t.Run("another store", func(t *testing.T) {
		t.Parallel()
		root, other := soundLedger(t), filepath.Join(t.TempDir(), "other")
		path, _ := backUp(t, root)
		if _, err := sqlite.Restore(t.Context(), path, other, sqlite.Options{}, unwatched); err != nil {
			t.Fatal(err)
		}
		s := open(t, root, sqlite.Options{})
		if got := titles(t, s, "run"); got == "" {
			t.Fatal("there are no tasks")
		}
		restoreOver(t, root, file(other))
		refusesCalls(t, s)
	})
}

// What a call has added and undone is not missed later.
func TestUndoneEntriesAreNotMissed(t *testing.T) {
	t.Parallel()
	root := soundLedger(t)
	s := &scribe{t, open(t, root, sqlite.Options{})}
	undo := errors.New("undo")
	record := func(tx store.Tx) error {
		return tx.AppendAudit(&schema.AuditEntry{RunID: "run", Action: "none", Role: schema.Lead, SessionID: "s", Details: []byte("{}")})
	}
	err := s.store.Write(t.Context(), func(tx store.Tx) error {
		err := tx.Nested(func(tx store.Tx) error { return errors.Join(record(tx), undo) })
		if !errors.Is(err, undo) {
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.store.Write(t.Context(), func(tx store.Tx) error { return errors.Join(record(tx), undo) }); !errors.Is(err, undo) {
		t.Fatal(err)
	}
	other := open(t, root, sqlite.Options{})
	for range 3 {
		if err := add(other, "run", "another"); err != nil {
			t.Fatal(err)
		}
		s.task("run", "")
		if err := s.store.Read(context.Background(), func(store.Tx) error { return nil }); err != nil {
			t.Error(err)
		}
	}
}
