package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// contents maps the name of every file in a folder to its bytes and mode.
func contents(t *testing.T, folder string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = info.Mode().String() + string(data)
	}
	return files
}

// A store that was opened for reading leaves the folder as it was: no write-ahead
// log that the next writer has to recover, no schema upgrade, nothing.
func TestReadOnlyLeavesNothingBehind(t *testing.T) {
	root := t.TempDir()
	s := open(t, root, Options{})
	openTask(t, s, "run")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before := contents(t, root)
	for n := range before {
		t.Log("before", n)
	}

	s = open(t, root, Options{ReadOnly: true})
	var runs []string
	err := s.Read(t.Context(), func(tx store.Tx) (err error) {
		runs, err = tx.Runs("", 10)
		return err
	})
	if err != nil || len(runs) != 1 || runs[0] != "run" {
		t.Errorf("Runs = %q, %v; want the one run", runs, err)
	}
	err = s.Read(t.Context(), func(tx store.Tx) error { return tx.SetLimits("run", schema.DefaultLimits()) })
	if err == nil {
		t.Error("a read could write")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	after := contents(t, root)
	for name := range after {
		if before[name] != after[name] {
			t.Errorf("%s was left changed", name)
		}
	}
}

func open(t *testing.T, root string, options Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), root, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openTask(t *testing.T, s *Store, run string) {
	t.Helper()
	err := s.Write(t.Context(), func(tx store.Tx) error {
		_, err := store.Open(tx, &schema.OpenParams{
			RunID: run, Input: schema.OpenInput{Title: "a task"}, Authority: schema.Authority{Role: schema.Lead, SessionID: "lead"},
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
