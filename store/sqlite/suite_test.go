package sqlite_test

import (
	"testing"

	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

// TestSuiteWAL runs the suite on new files, which have a write-ahead log.
func TestSuiteWAL(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		root := t.TempDir()
		s := open(t, root, sqlite.Options{})
		if got := journal(t, root); got != "wal" {
			t.Fatalf("the journal mode is %s", got)
		}
		return s
	})
}

// TestSuiteRollbackJournal runs the suite on files whose journal mode is kept.
func TestSuiteRollbackJournal(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		root := t.TempDir()
		reference.Create(t, root, reference.Schema)
		s := open(t, root, sqlite.Options{})
		if got := journal(t, root); got != "delete" {
			t.Fatalf("the journal mode is %s", got)
		}
		return s
	})
}
