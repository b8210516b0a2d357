package sqlite_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

// Files that the other writer made, as older and newer versions of it did.

// laterColumns are the columns of task that an older file may lack, with what
// a row of it then reads as.
var laterColumns = []struct{ definition, absent string }{
	{"note TEXT", "NULL"},
	{"status TEXT NOT NULL DEFAULT 'open'", "'open'"},
	{"owner TEXT", "NULL"},
	{"owner_session TEXT", "NULL"},
	{"run_id TEXT", "NULL"},
	{"created_at TEXT NOT NULL DEFAULT ''", "''"},
	{"updated_at TEXT NOT NULL DEFAULT ''", "''"},
	{"evidence_policy TEXT NOT NULL DEFAULT 'legacy'", "'legacy'"},
	{"verification_files TEXT", "NULL"},
	{"verification_command TEXT", "NULL"},
	{"verification_cwd TEXT", "NULL"},
	{"evidence_generation INTEGER NOT NULL DEFAULT 0", "0"},
}

// olderFile makes a file whose task table lacks some of the later columns, and
// returns what its one row then reads as.
func olderFile(t *testing.T, lacks func(column int) bool) (root, want string) {
	t.Helper()
	columns, values := []string{"id INTEGER PRIMARY KEY", "title TEXT NOT NULL"}, []string{"7", "'old'"}
	want = "7 | 'old'"
	for i, column := range laterColumns {
		if lacks(i) {
			want += " | " + column.absent
			continue
		}
		name, _, _ := strings.Cut(column.definition, " ")
		value := "'" + name + "'"
		switch name {
		case "evidence_generation":
			value = "3"
		case "status":
			value = "'claimed'"
		}
		columns, values = append(columns, column.definition), append(values, value)
		want += " | " + value
	}
	root = t.TempDir()
	reference.Create(t, root, "CREATE TABLE task ("+strings.Join(columns, ", ")+")",
		"INSERT INTO task VALUES ("+strings.Join(values, ", ")+")")
	return root, want + "\n"
}

const wholeTask = "SELECT id, title, note, status, owner, owner_session, run_id, created_at, updated_at, evidence_policy, verification_files, verification_command, verification_cwd, evidence_generation FROM task WHERE id = 7"

// olderFiles runs a test on files that lack the last columns, and on files that lack one.
func olderFiles(t *testing.T, run func(t *testing.T, root, want string)) {
	for i := range len(laterColumns) + 1 {
		t.Run(fmt.Sprintf("%d later columns", i), func(t *testing.T) {
			t.Parallel()
			root, want := olderFile(t, func(column int) bool { return column >= i })
			run(t, root, want)
		})
	}
	for i, column := range laterColumns {
		t.Run("without "+column.definition, func(t *testing.T) {
			t.Parallel()
			root, want := olderFile(t, func(c int) bool { return c == i })
			run(t, root, want)
		})
	}
}

// TestOlderTaskTablesAreCompleted: columns are added, rows kept, and both
// writers can go on.
func TestOlderTaskTablesAreCompleted(t *testing.T) {
	t.Parallel()
	olderFiles(t, func(t *testing.T, root, want string) {
		s := open(t, root, sqlite.Options{})
		db := reference.Open(t, root)
		if got := reference.Rows(t, db, wholeTask); got != want {
			t.Errorf("the row became\n%s, want\n%s", got, want)
		}
		if err := add(s, "run", "new"); err != nil {
			t.Fatal(err)
		}
		if got := titles(t, s, "run"); got != "new" {
			t.Errorf("tasks %q", got)
		}
		reference.Exec(t, db, "INSERT INTO task (title, run_id, created_at, updated_at) VALUES ('theirs', 'run', '', '')")
		if got := titles(t, s, "run"); got != "new theirs" {
			t.Errorf("tasks %q", got)
		}
	})
}

// TestWhatElseIsInTheFileIsLeftAlone: tables, columns and indexes of the other writer.
func TestWhatElseIsInTheFileIsLeftAlone(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	reference.Create(t, root, reference.Schema, reference.Workflow,
		"ALTER TABLE task ADD COLUMN priority INTEGER NOT NULL DEFAULT 5",
		"ALTER TABLE governor_reservation ADD COLUMN label TEXT DEFAULT 'l'",
		"CREATE TABLE message (id INTEGER PRIMARY KEY, body TEXT)", "INSERT INTO message VALUES (1, 'hello')",
		"CREATE INDEX theirs ON task(priority)", "PRAGMA user_version = 42", "PRAGMA application_id = 7",
		"INSERT INTO task (id, title, created_at, updated_at, priority) VALUES (7, 'old', '', '', 9)")
	db := reference.Open(t, root)
	const theirs = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sidecar_%' AND tbl_name NOT LIKE 'sidecar_%' AND tbl_name NOT IN ('governor_retry_charge', 'task_event') ORDER BY name"
	before := reference.Rows(t, db, theirs)
	s := open(t, root, sqlite.Options{})
	if err := add(s, "run", "new"); err != nil {
		t.Fatal(err)
	}
	if after := reference.Rows(t, db, theirs); after != before {
		t.Errorf("the schema changed from\n%s\nto\n%s", before, after)
	}
	for query, want := range map[string]string{
		"SELECT id, priority FROM task ORDER BY id": "7 | 9\n8 | 5\n",
		"SELECT * FROM message":                     "1 | 'hello'\n",
		"PRAGMA user_version":                       "42\n",
		"PRAGMA application_id":                     "7\n",
	} {
		if got := reference.Rows(t, db, query); got != want {
			t.Errorf("%s: %s", query, got)
		}
	}
}

// TestFailedUpgradeChangesNothing: two active admissions of a task, which the
// unique index does not allow.
func TestFailedUpgradeChangesNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	reference.Create(t, root, reference.Schema, "DROP INDEX idx_governor_active_task",
		"INSERT INTO governor_reservation VALUES ('a', 'run', 1, 'k1', '{}', 1, 'read', 'new', 'reserved', NULL, NULL, NULL)",
		"INSERT INTO governor_reservation VALUES ('b', 'run', 1, 'k2', '{}', 2, 'read', 'new', 'reserved', NULL, NULL, NULL)")
	before := content(t, root)
	refuses(t, root, sqlite.Options{}, schema.ErrStoreCorrupt)
	unchanged(t, root, before)
}
