package sqlite_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

// liveLog puts a file with a log that was never checkpointed into a folder, as
// a killed process leaves it.
func liveLog(t *testing.T, withIndex bool) (root string) {
	t.Helper()
	origin := t.TempDir()
	db := reference.Open(t, origin)
	reference.Exec(t, db, "PRAGMA journal_mode = WAL", "PRAGMA wal_autocheckpoint = 0", reference.Schema, reference.RetryCharge)
	for i := range 20 {
		reference.Exec(t, db, fmt.Sprintf("INSERT INTO task (title, run_id, created_at, updated_at) VALUES ('t%d', 'run', '', '')", i))
	}
	root = t.TempDir()
	suffixes := []string{"", "-wal"}
	if withIndex {
		suffixes = append(suffixes, "-shm")
	}
	for _, suffix := range suffixes {
		copyFile(t, file(origin)+suffix, file(root)+suffix)
	}
	return root
}

// copyFile copies a file of a database that this process has open; its locks
// are lost, but nobody else is there to notice.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	bytes, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, to, string(bytes))
}

// TestLiveLogIsRecovered: what was committed to the log is part of the store.
func TestLiveLogIsRecovered(t *testing.T) {
	t.Parallel()
	for _, withIndex := range []bool{false, true} {
		for _, options := range []sqlite.Options{{}, {ReadOnly: true}} {
			t.Run(fmt.Sprintf("index %t, read only %t", withIndex, options.ReadOnly), func(t *testing.T) {
				t.Parallel()
				root := liveLog(t, withIndex)
				before := content(t, root)
				s := open(t, root, options)
				if got := len(strings.Fields(titles(t, s, "run"))); got != 20 {
					t.Errorf("%d tasks, want 20", got)
				}
				if options.ReadOnly {
					readEverything(t, s)
					s.Close()
					after := content(t, root)
					for _, name := range []string{sqlite.FileName, sqlite.FileName + "-wal"} {
						if after[name] != before[name] {
							t.Errorf("%s has changed", name)
						}
					}
					return
				}
				if err := add(s, "run", "new"); err != nil {
					t.Fatal(err)
				}
				s.Close()
				if got := journal(t, root); got != "wal" {
					t.Errorf("the journal mode became %s", got)
				}
				if got := len(strings.Fields(titles(t, open(t, root, sqlite.Options{}), "run"))); got != 21 {
					t.Errorf("%d tasks after reopening, want 21", got)
				}
			})
		}
	}
}

// TestReadOnlySeesACommittedWriteOfALiveProcess.
func TestReadOnlySeesALiveProcess(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, sqlite.Options{})
	if err := add(s, "run", "first"); err != nil {
		t.Fatal(err)
	}
	reader := open(t, root, sqlite.Options{ReadOnly: true})
	if got := titles(t, reader, "run"); got != "first" {
		t.Errorf("tasks %q", got)
	}
	if err := add(s, "run", "second"); err != nil {
		t.Fatal(err)
	}
	if got := titles(t, reader, "run"); got != "first second" {
		t.Errorf("tasks %q", got)
	}
	reader.Close()
	if err := add(s, "run", "third"); err != nil {
		t.Fatal(err)
	}
	if got := titles(t, s, "run"); got != "first second third" {
		t.Errorf("tasks %q", got)
	}
}
