package sqlite_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
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

// olderFile makes a file whose task table lacks the columns from `first` on,
// or only the column `only` if that is not negative.
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

// TestReadOnlyReadsOlderFiles and leaves them byte for byte as they are.
func TestReadOnlyReadsOlderFiles(t *testing.T) {
	t.Parallel()
	olderFiles(t, func(t *testing.T, root, want string) {
		before := content(t, root)
		s := open(t, root, sqlite.Options{ReadOnly: true})
		var got *store.Task
		err := s.Read(t.Context(), func(tx store.Tx) (err error) {
			got, err = tx.Task(7)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if got == nil || got.Title != "old" || !strings.Contains(want, fmt.Sprintf("'%s'", got.Status)) {
			t.Errorf("got %+v", got)
		}
		readEverything(t, s)
		s.Close()
		unchanged(t, root, before)
	})
}

// readEverything calls every method that reads.
func readEverything(t *testing.T, s *sqlite.Store) {
	t.Helper()
	err := s.Read(t.Context(), func(tx store.Tx) error {
		for name, read := range map[string]func() error{
			"Tasks":           func() error { _, err := tx.Tasks("run", "", store.Page{}); return err },
			"Tasks by status": func() error { _, err := tx.Tasks("run", schema.TaskOpen, store.Page{}); return err },
			"TaskEvents":      func() error { _, err := tx.TaskEvents(7, store.Page{}); return err },
			"Limits":          func() error { _, err := tx.Limits("run"); return err },
			"Usage":           func() error { _, err := tx.Usage("run"); return err },
			"Admissions":      func() error { _, err := tx.Admissions(7); return err },
			"ActiveAdmission": func() error { _, err := tx.ActiveAdmission(7); return err },
			"Reservation":     func() error { _, err := tx.Reservation("r"); return err },
			"Conflicts":       func() error { _, err := tx.Conflicts("k", schema.Write); return err },
			"RetryCharge":     func() error { _, err := tx.RetryCharge("r"); return err },
			"Unaccounted":     func() error { _, err := tx.Unaccounted(); return err },
			"Executions":      func() error { _, err := tx.Executions("run"); return err },
			"Holds":           func() error { _, err := tx.Holds("run"); return err },
			"Reservations":    func() error { _, err := tx.Reservations("run", store.Page{}); return err },
			"RetryCharges":    func() error { _, err := tx.RetryCharges("run", store.Page{}); return err },
			"Audit":           func() error { _, err := tx.Audit("run", store.Page{}); return err },
			"Runs":            func() error { _, err := tx.Runs("", 10); return err },
			"Version":         func() error { _, err := tx.Version("run"); return err },
		} {
			if err := read(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestReadOnlyReadsTheOtherWritersFiles.
func TestReadOnlyReadsTheOtherWritersFiles(t *testing.T) {
	t.Parallel()
	for _, name := range reference.Names(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			reference.Unpack(t, name, root)
			before := content(t, root)
			s := open(t, root, sqlite.Options{ReadOnly: true})
			var reservations int
			err := s.Read(t.Context(), func(tx store.Tx) error {
				runs, err := tx.Runs("", 100)
				for _, run := range runs {
					list, err := tx.Reservations(run, store.Page{})
					if err != nil {
						return err
					}
					reservations += len(list)
				}
				return err
			})
			if err != nil || reservations == 0 {
				t.Errorf("%d reservations, %v", reservations, err)
			}
			readEverything(t, s)
			failed(t, add(s, "run", "t"), schema.ErrStoreReadonly)
			s.Close()
			unchanged(t, root, before)
		})
	}
}

func TestReadOnlyTakesAnEmptyFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeFile(t, file(root), "")
	before := content(t, root)
	s := open(t, root, sqlite.Options{ReadOnly: true})
	readEverything(t, s)
	s.Close()
	unchanged(t, root, before)
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
	const theirs = "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sidecar_%' AND tbl_name NOT IN ('governor_retry_charge', 'task_event', 'sidecar_meta') ORDER BY name"
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

// TestManagedTasks: the other writer's table may be there, or come while the
// store is open, or be dropped.
func TestManagedTasks(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, sqlite.Options{})
	db := reference.Open(t, root)
	for range 2 {
		if err := add(s, "run", "t"); err != nil {
			t.Fatal(err)
		}
	}
	managed := func() (list []int64) {
		t.Helper()
		look := func(tx store.Tx) error {
			list = nil
			for id := range int64(4) {
				if task, err := tx.Task(id); err != nil {
					return err
				} else if task != nil && task.Managed {
					list = append(list, id)
				}
			}
			return nil
		}
		if err := s.Read(context.Background(), look); err != nil {
			t.Fatal(err)
		}
		reading := list
		if err := s.Write(context.Background(), look); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(reading, list) {
			t.Errorf("a read says %v, a write %v", reading, list)
		}
		return list
	}
	const manage = "INSERT INTO workflow VALUES (2, 'run', 't', 's', 1, 1, '{}', NULL, 1, 0, 'root', '', '')"
	for _, step := range []struct {
		statements []string
		want       []int64
	}{
		{nil, nil},
		{[]string{reference.Workflow}, nil},
		{[]string{manage}, []int64{2}},
		{[]string{"UPDATE workflow SET stage = 'x'"}, []int64{2}},
		{[]string{"DROP TABLE workflow"}, nil},
		{[]string{reference.Workflow, manage}, []int64{2}},
	} {
		reference.Exec(t, db, step.statements...)
		if got := managed(); !slices.Equal(got, step.want) {
			t.Errorf("after %v: managed are %v, want %v", step.statements, got, step.want)
		}
	}
}
