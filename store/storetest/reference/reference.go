// Package reference makes database files as the contract's own JavaScript
// store writes them, for tests of what a sidecar does with such a file.
//
// [Create] runs that store's own DDL; [Unpack] takes one of the files that the
// store really wrote: "interop-*" with retry accounting, "legacy-*" from before
// it. [Open] then plays the other process on the same file.
package reference

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the driver
)

// FileName is the name that the file has in its folder.
const FileName = "taskforce.db"

// Schema is the DDL of a store that knew the governor but not its retry
// accounting, without [Workflow].
//
//go:embed schema.sql
var Schema string

// Workflow is the table of the tasks that the other writer manages itself.
const Workflow = `CREATE TABLE workflow (
  task_id INTEGER PRIMARY KEY, run_id TEXT NOT NULL, template TEXT NOT NULL,
  stage TEXT NOT NULL, row_version INTEGER NOT NULL, plan_version INTEGER NOT NULL,
  plan TEXT NOT NULL, revision_id INTEGER, max_reworks INTEGER NOT NULL, rework_count INTEGER NOT NULL,
  created_by_session TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL
);`

// RetryCharge is the table that keeps retry accounting.
const RetryCharge = `CREATE TABLE governor_retry_charge (
  reservation_id TEXT PRIMARY KEY, rework_generation INTEGER NOT NULL,
  retry_charge INTEGER NOT NULL, source TEXT NOT NULL
);`

//go:embed databases/*.db.gz
var databases embed.FS

// Names lists the files that [Unpack] knows.
func Names(tb testing.TB) []string {
	tb.Helper()
	entries, err := databases.ReadDir("databases")
	check(tb, err)
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".db.gz"))
	}
	return names
}

// Unpack puts a file that the other writer really wrote into the folder.
func Unpack(tb testing.TB, name, folder string) {
	tb.Helper()
	packed, err := databases.ReadFile("databases/" + name + ".db.gz")
	check(tb, err)
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	check(tb, err)
	content, err := io.ReadAll(unzipped)
	check(tb, err)
	check(tb, os.WriteFile(filepath.Join(folder, FileName), content, 0o600))
}

// Create makes a file in the folder by statements, with a rollback journal
// unless they say otherwise.
func Create(tb testing.TB, folder string, statements ...string) {
	tb.Helper()
	db := Open(tb, folder)
	Exec(tb, db, statements...)
	check(tb, db.Close())
}

// Open opens the file in the folder as another process would, for the time of the test.
func Open(tb testing.TB, folder string) *sql.DB {
	tb.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(folder, FileName)+"?_pragma=busy_timeout(5000)")
	check(tb, err)
	db.SetMaxOpenConns(1)
	tb.Cleanup(func() { db.Close() })
	return db
}

// Exec runs statements that must succeed.
func Exec(tb testing.TB, db *sql.DB, statements ...string) {
	tb.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(context.Background(), statement); err != nil {
			tb.Fatalf("%v in:\n%s", err, statement)
		}
	}
}

// Rows returns the result of a query as text: a line a row, quoted as SQL does.
func Rows(tb testing.TB, db *sql.DB, query string, args ...any) string {
	tb.Helper()
	rows, err := db.QueryContext(context.Background(), query, args...)
	check(tb, err)
	defer rows.Close()
	columns, err := rows.Columns()
	check(tb, err)
	values, into := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		into[i] = &values[i]
	}
	var text strings.Builder
	for rows.Next() {
		check(tb, rows.Scan(into...))
		for i, value := range values {
			if i > 0 {
				text.WriteString(" | ")
			}
			text.WriteString(literal(value))
		}
		text.WriteByte('\n')
	}
	check(tb, rows.Err())
	return text.String()
}

func literal(value any) string {
	switch v := value.(type) {
	case nil:
		return "NULL"
	case string:
		return "'" + v + "'"
	case []byte:
		return fmt.Sprintf("x'%x'", v)
	}
	return fmt.Sprint(value)
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
