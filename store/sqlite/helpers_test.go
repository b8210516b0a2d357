package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

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

// refuses checks that the store in a folder cannot be opened, and why.
func refuses(t *testing.T, root string, options sqlite.Options, code schema.Code) *schema.Error {
	t.Helper()
	s, err := sqlite.Open(context.Background(), root, options)
	if err == nil {
		s.Close()
	}
	return failed(t, err, code)
}

// failed checks the code of an error.
func failed(t *testing.T, err error, code schema.Code) *schema.Error {
	t.Helper()
	var known *schema.Error
	if !errors.As(err, &known) || known.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return known
}

// add opens a task in the run.
func add(s store.Store, run, title string) error {
	return s.Write(context.Background(), func(tx store.Tx) error {
		_, err := store.Open(tx, &schema.OpenParams{
			Input: schema.OpenInput{Title: title}, RunID: run, Authority: schema.Authority{Role: schema.Lead, SessionID: "root"},
		})
		return err
	})
}

// titles lists the titles of the run's tasks.
func titles(t *testing.T, s store.Store, run string) string {
	t.Helper()
	var names []string
	err := s.Read(context.Background(), func(tx store.Tx) error {
		tasks, err := tx.Tasks(run, "", store.Page{})
		for _, task := range tasks {
			names = append(names, task.Title)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

// file is the path of the database in a folder.
func file(root string) string { return filepath.Join(root, sqlite.FileName) }

// journal is the journal mode of the file in a folder.
func journal(t *testing.T, root string) string {
	t.Helper()
	return strings.Trim(reference.Rows(t, reference.Open(t, root), "PRAGMA journal_mode"), "'\n")
}

// content maps every file in a folder to its mode and bytes. Nothing in this
// process may have the database open: closing any handle drops SQLite's locks.
func content(t *testing.T, root string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		bytes, err := os.ReadFile(filepath.Join(root, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[entry.Name()] = info.Mode().String() + string(bytes)
	}
	return files
}

// unchanged checks that a folder holds what it held.
func unchanged(t *testing.T, root string, before map[string]string) {
	t.Helper()
	after := content(t, root)
	for name := range after {
		if _, existed := before[name]; !existed {
			t.Errorf("%s has appeared", name)
		}
	}
	for name, bytes := range before {
		if after[name] != bytes {
			t.Errorf("%s has changed", name)
		}
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
