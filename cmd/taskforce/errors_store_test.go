package main

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// openDatabase opens the store's file behind the back of its sidecars.
func openDatabase(t *testing.T, root string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(root, sqlite.FileName))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func runSQL(t *testing.T, root, statements string) {
	t.Helper()
	c := openDatabase(t, root)
	defer c.Close()
	if _, err := c.ExecContext(t.Context(), statements); err != nil {
		t.Fatal(err)
	}
}

// lockStore takes the write lock of the store until release is called.
func lockStore(t *testing.T, root string) (release func()) {
	t.Helper()
	c := openDatabase(t, root)
	if _, err := c.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if _, err := c.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		c.Close()
	}
}

func provokeStoreBusy(t *testing.T) {
	root := t.TempDir()
	s := serve(t, root, "--busy-timeout", "50ms")
	reserve := reserving("run", s.openTask("run", ""), 0, schema.Read, schema.Reuse)
	release := lockStore(t, root)
	s.refused(schema.ErrStoreBusy, "governor.reserve", reserve)
	result(s, schema.GetSummary, schema.RunParams{RunID: "run"}) // reads do not wait
	release()
	result(s, schema.Reserve, reserve)
}

// newStore makes a store with one task and closes it.
func newStore(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	s := serve(t, root)
	s.openTask("run", "s")
	if status := s.end(); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	return root
}

// damage overwrites the table's first page.
func damage(t *testing.T, root, table string) {
	t.Helper()
	c := openDatabase(t, root)
	var page, size int64
	const query = "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?"
	if err := c.QueryRowContext(t.Context(), query, table).Scan(&page, &size); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ExecContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	c.Close()
	file, err := os.OpenFile(filepath.Join(root, sqlite.FileName), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte(strings.Repeat("\xff", int(size))), (page-1)*size); err != nil {
		t.Fatal(err)
	}
}

// The file is overwritten while no sidecar has it open, and while one has.
func provokeStoreCorrupt(t *testing.T) {
	root := newStore(t)
	damage(t, root, "governor_reservation")
	s := serve(t, root)
	s.refused(schema.ErrStoreCorrupt, "governor.reserve", reserving("run", 1, 0, schema.Read, schema.Reuse))
	s.refused(schema.ErrStoreCorrupt, "governor.snapshot", schema.RunParams{RunID: "run"})
	result(s, schema.GetTask, schema.TaskParams{RunID: "run", Authority: lead, Input: schema.TaskInput{TaskID: 1}})

	root = newStore(t)
	s = serve(t, root)
	result(s, schema.Ping, schema.NoParams{}) // it has opened the file
	damage(t, root, "task")
	s.refused(schema.ErrStoreCorrupt, "task.get", schema.TaskParams{RunID: "run", Authority: lead, Input: schema.TaskInput{TaskID: 1}})
	s.refused(schema.ErrStoreCorrupt, "task.submit", noting("run", 1))
}

func provokeStoreVersion(t *testing.T) {
	root := newStore(t)
	runSQL(t, root, "UPDATE sidecar_meta SET value = '999' WHERE key = 'schema_version'")
	serve(t, root).refusesToStart(string(schema.ErrStoreVersion), "upgrade it")
}

func provokeStoreConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	serve(t, file).refusesToStart(string(schema.ErrStoreConfig), file)
}
