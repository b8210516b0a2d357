package sqlite_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open opens the store in a folder and closes it after the test.
func open(t *testing.T, root string, options sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), root, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// journal is the journal mode of the file in a folder.
func journal(t *testing.T, root string) string {
	t.Helper()
	return strings.Trim(reference.Rows(t, reference.Open(t, root), "PRAGMA journal_mode"), "'\n")
}

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
