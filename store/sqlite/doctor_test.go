package sqlite_test

import (
	"database/sql"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

type levels = map[string]sqlite.Level

// examine returns what is not fine about a store.
func examine(t *testing.T, root string) levels {
	t.Helper()
	before := content(t, root)
	s := open(t, root, sqlite.Options{ReadOnly: true, AllowNetworkFS: true})
	findings, err := s.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if !maps.Equal(before, content(t, root)) {
		t.Error("the examination has changed the store")
	}
	bad, seen := levels{}, levels{}
	for _, f := range findings {
		if f.Explanation == "" || strings.Contains(f.Explanation, "\n") {
			t.Errorf("%s: the explanation %q is not a line", f.Name, f.Explanation)
		}
		if seen[f.Name] != "" {
			t.Errorf("two findings have the name %s", f.Name)
		}
		if seen[f.Name] = f.Level; f.Level != sqlite.Fine {
			t.Logf("%s %s: %s", f.Level, f.Name, f.Explanation)
			bad[f.Name] = f.Level
		}
	}
	return bad
}

func TestExamineHealthy(t *testing.T) {
	if bad := examine(t, soundLedger(t)); len(bad) > 0 {
		t.Errorf("a healthy store has faults: %v", bad)
	}
}

// What is wrong with the file is found, and what is wrong with the rows summed up.
func TestExamineFindsFaults(t *testing.T) {
	tests := []struct {
		name, statements string
		want             levels
	}{
		{"rows", "DELETE FROM governor_hold", levels{"holds_complete": sqlite.Fault}},
		{"trigger", "CREATE TRIGGER t AFTER INSERT ON governor_hold BEGIN DELETE FROM governor_hold; END", levels{"other_writer": sqlite.Warning}},
		{"foreign key", "CREATE TABLE child (task INTEGER REFERENCES task(id)); INSERT INTO child VALUES (99)", levels{"foreign_keys": sqlite.Warning}},
		{"missing index", "DROP INDEX sidecar_audit_run", levels{"indexes": sqlite.Fault}},
		{"rollback journal", "PRAGMA journal_mode = DELETE", levels{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			root := soundLedger(t)
			execute(t, root, test.statements)
			if got := examine(t, root); !maps.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// overwrite damages the first page of a table.
func overwrite(t *testing.T, root, table string) {
	t.Helper()
	path := filepath.Join(root, sqlite.FileName)
	var page, size int64
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	const query = "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = ?"
	if err := db.QueryRow(query, table).Scan(&page, &size); err != nil {
		t.Fatal(err)
	}
	db.Close()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte(strings.Repeat("\xff", int(size))), (page-1)*size); err != nil {
		t.Fatal(err)
	}
}

// A damaged page is found, and the checks that do not need it are answered.
func TestExamineDamage(t *testing.T) {
	root := soundLedger(t)
	overwrite(t, root, "governor_hold")
	want := levels{"integrity": sqlite.Fault, "unique_keys": sqlite.Fault, "holds_exclusive": sqlite.Fault, "holds_complete": sqlite.Fault}
	if got := examine(t, root); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestExamineModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no file modes")
	}
	root := soundLedger(t)
	for _, path := range []string{root, filepath.Join(root, sqlite.FileName)} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := levels{"folder_mode": sqlite.Warning, "file_mode": sqlite.Warning}
	if got := examine(t, root); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The examination reads one state while a sidecar writes, and does not hold it up.
func TestExamineLiveStore(t *testing.T) {
	root := soundLedger(t)
	live := &scribe{t, open(t, root, sqlite.Options{})}
	live.task("run", "s")
	findings, err := open(t, root, sqlite.Options{ReadOnly: true}).Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Level != sqlite.Fine {
			t.Errorf("%s %s: %s", f.Level, f.Name, f.Explanation)
		}
	}
	live.task("run", "s")
}

// A file without any row, and an older one without most tables, are sound.
func TestExamineEmpty(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "root")
	open(t, empty, sqlite.Options{}).Close()
	older := t.TempDir()
	reference.Create(t, older, "CREATE TABLE task (id INTEGER PRIMARY KEY, title TEXT NOT NULL, run_id TEXT)")
	for _, root := range []string{empty, older} {
		bad := examine(t, root)
		delete(bad, "file_mode")
		delete(bad, "folder_mode")
		if len(bad) > 0 {
			t.Errorf("got %v", bad)
		}
	}
}
