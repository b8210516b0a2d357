package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// healthy is a ledger that keeps every promise: a settled and a running
// execution of task 1, a reserved one of task 2, a legacy charge past the limit.
const healthy = `
	INSERT INTO task (id, title, status, owner_session, run_id, created_at, updated_at, evidence_generation) VALUES
		(1, 'one', 'claimed', 's', 'run', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', 1),
		(2, 'two', 'open', NULL, 'run', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', 3);
	INSERT INTO governor_run VALUES ('run', 6, 2, 3, 2), ('empty', 6, 2, 3, 2);
	INSERT INTO governor_reservation VALUES
		('a', 'run', 1, 'op-a', '{"resources":["x"]}', 1, 'write', 'new', 'settled', 's', NULL, '{"kind":"never_started"}'),
		('b', 'run', 1, 'op-b', '{"resources":["x","y\u0000z"]}', 2, 'write', 'retry', 'running', 's', 's', NULL),
		('c', 'run', 2, 'op-c', '{"resources":["r"]}', 1, 'read', 'new', 'reserved', NULL, NULL, NULL);
	INSERT INTO governor_retry_charge VALUES ('a', 0, 0, 'admission'), ('b', 1, 1, 'admission'), ('c', 3, 3, 'legacy');
	INSERT INTO governor_hold VALUES ('b', 'x', 'write'), ('b', CAST(x'79007a' AS TEXT), 'write'), ('c', 'r', 'read');
	INSERT INTO governor_audit (run_id, reservation_id, action, role, session_id, details, created_at) VALUES
		('run', 'a', 'reserve', 'lead', 'l', '{}', ''), ('run', 'a', 'settle', 'lead', 'l', '{}', ''),
		('run', 'b', 'reserve', 'lead', 'l', '{}', ''), ('run', 'b', 'bind', 'lead', 'l', '{}', ''),
		('run', 'c', 'reserve', 'lead', 'l', '{}', ''), ('run', NULL, 'extendBudget', 'lead', 'l', '{}', '');`

// newLedger makes a store with the healthy ledger and whatever is done to it.
func newLedger(t *testing.T, statements ...string) (root string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "root")
	if err := open(t, root, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(root, FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, statement := range append([]string{healthy}, statements...) {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// examine returns what is not fine about a store.
func examine(t *testing.T, root string) map[string]Level {
	t.Helper()
	before := contents(t, root)
	s := open(t, root, Options{ReadOnly: true, AllowNetworkFS: true})
	findings, err := s.Examine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if !maps.Equal(before, contents(t, root)) {
		t.Error("the examination has changed the store")
	}
	bad := map[string]Level{}
	for _, f := range findings {
		if f.Explanation == "" || strings.Contains(f.Explanation, "\n") {
			t.Errorf("%s: the explanation %q is not a line", f.Name, f.Explanation)
		}
		if f.Level != Fine {
			t.Logf("%s %s: %s", f.Level, f.Name, f.Explanation)
			bad[f.Name] = f.Level
		}
	}
	return bad
}

func TestExamineHealthy(t *testing.T) {
	if bad := examine(t, newLedger(t)); len(bad) > 0 {
		t.Errorf("a healthy store has faults: %v", bad)
	}
}

// Every promise is broken on its own, and the one check that is about it says so.
func TestExamineFindsFaults(t *testing.T) {
	const anotherTask = "INSERT INTO task (id, title, run_id, created_at, updated_at) VALUES (%[1]d, 't', 'run', '', '');"
	const another = anotherTask + `
		INSERT INTO governor_reservation VALUES ('n%[1]d', 'run', %[1]d, 'op-%[1]d', '{}', 1, '%[2]s', '%[3]s', '%[4]s', NULL, NULL, %[5]s);
		INSERT INTO governor_retry_charge VALUES ('n%[1]d', 0, 0, 'admission');
		INSERT INTO governor_audit (run_id, reservation_id, action, role, session_id, details, created_at) VALUES ('run', 'n%[1]d', 'reserve', 'lead', 'l', '{}', '');`
	more := func(n int, mode, kind, state string) (statements string) {
		settlement := "NULL"
		if state == "settled" {
			settlement = "'{}'"
		}
		for i := range n {
			statements += fmt.Sprintf(another, 100+i, mode, kind, state, settlement)
		}
		return statements
	}
	tests := []struct {
		name, statements string
		want             map[string]Level
	}{
		{"unknown state", "UPDATE governor_reservation SET state = 'lost' WHERE reservation_id = 'b'", map[string]Level{"reservation_rows": Fault}},
		{"running without a session", "UPDATE governor_reservation SET session_id = NULL WHERE reservation_id = 'b'", map[string]Level{"reservation_rows": Fault}},
		{"settled without a proof", "UPDATE governor_reservation SET settlement = NULL WHERE reservation_id = 'a'", map[string]Level{"reservation_rows": Fault}},
		{"payload", "UPDATE governor_reservation SET payload = 'x' WHERE reservation_id = 'a'", map[string]Level{"reservation_rows": Fault}},
		{"task gone", "DELETE FROM task WHERE id = 2", map[string]Level{"reservation_task": Fault}},
		{"task in another run", "UPDATE task SET run_id = 'other' WHERE id = 2", map[string]Level{"reservation_task": Fault}},
		{"two active", `DROP INDEX idx_governor_active_task; UPDATE governor_reservation SET state = 'unknown', settlement = NULL, payload = '{}' WHERE reservation_id = 'a'`,
			map[string]Level{"one_active": Fault, "indexes": Fault}},
		{"generation gap", "UPDATE governor_reservation SET generation = 3 WHERE reservation_id = 'b'", map[string]Level{"generations": Fault}},
		{"too many active", more(5, "read", "reuse", "reserved"), map[string]Level{"limit_active": Fault}},
		{"too many writers", more(2, "write", "reuse", "unknown"), map[string]Level{"limit_writers": Fault}},
		{"too many new", more(2, "read", "new", "settled"), map[string]Level{"limit_new": Fault}},
		{"within extended limits", "UPDATE governor_run SET max_active = 20, max_writers = 20, max_created = 20;" + more(12, "write", "new", "reserved"), map[string]Level{}},
		{"too many retries", "UPDATE governor_retry_charge SET retry_charge = 3 WHERE reservation_id = 'b'", map[string]Level{"limit_retries": Fault}},
		{"limit of nothing", "UPDATE governor_run SET max_created = 0 WHERE run_id = 'empty'", map[string]Level{"limit_values": Fault}},
		{"unaccounted", "DELETE FROM governor_retry_charge WHERE reservation_id = 'a'", map[string]Level{"accounting": Warning}},
		{"charge of nothing", "INSERT INTO governor_retry_charge VALUES ('z', 0, 0, 'legacy')", map[string]Level{"charge_reservation": Fault}},
		{"charge below zero", "UPDATE governor_retry_charge SET retry_charge = -1 WHERE reservation_id = 'a'", map[string]Level{"charge_values": Fault}},
		{"charge of the future", "UPDATE governor_retry_charge SET rework_generation = 2 WHERE reservation_id = 'b'", map[string]Level{"charge_values": Fault}},
		{"audit of nothing", "UPDATE governor_audit SET reservation_id = 'z' WHERE action = 'settle'", map[string]Level{"audit_reservation": Fault}},
		{"admission not in the audit", "DELETE FROM governor_audit WHERE reservation_id = 'c'", map[string]Level{"audit_admission": Fault}},
		{"lost reservation", "DELETE FROM governor_reservation WHERE reservation_id = 'b'",
			map[string]Level{"charge_reservation": Fault, "audit_reservation": Fault, "holds_active": Fault}},
		{"hold of settled work", "INSERT INTO governor_hold VALUES ('a', 'old', 'write')", map[string]Level{"holds_active": Fault}},
		{"two writers", "UPDATE governor_reservation SET payload = '{\"resources\":[\"x\"]}' WHERE reservation_id = 'c'; UPDATE governor_hold SET resource_key = 'x' WHERE reservation_id = 'c'",
			map[string]Level{"holds_exclusive": Fault}},
		{"lost hold", "DELETE FROM governor_hold WHERE reservation_id = 'b' AND resource_key = 'x'", map[string]Level{"holds_complete": Fault}},
		{"weaker hold", "UPDATE governor_hold SET mode = 'read' WHERE reservation_id = 'b'", map[string]Level{"holds_complete": Fault}},
		{"trigger", "CREATE TRIGGER t AFTER INSERT ON governor_hold BEGIN DELETE FROM governor_hold; END", map[string]Level{"other_writer": Warning}},
		{"foreign key", "CREATE TABLE child (task INTEGER REFERENCES task(id)); INSERT INTO child VALUES (99)", map[string]Level{"foreign_keys": Warning}},
		{"missing index", "DROP INDEX sidecar_audit_run", map[string]Level{"indexes": Fault}},
		{"rollback journal", "PRAGMA journal_mode = DELETE", map[string]Level{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := examine(t, newLedger(t, test.statements)); !maps.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestExamineNamesAreUnique(t *testing.T) {
	var names []string
	for _, c := range append(slices.Clone(fileChecks), ledgerChecks()...) {
		names = append(names, c.name)
	}
	slices.Sort(names)
	if unique := slices.Compact(slices.Clone(names)); len(unique) != len(names) {
		t.Errorf("names are not unique: %v", names)
	}
}

// A damaged page is found, and the checks that do not need it are answered.
func TestExamineDamage(t *testing.T) {
	root := newLedger(t, "PRAGMA wal_checkpoint(TRUNCATE)")
	path := filepath.Join(root, FileName)
	var page, size int64
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	const query = "SELECT rootpage, page_size FROM sqlite_schema, pragma_page_size WHERE name = 'governor_hold'"
	if err := db.QueryRow(query).Scan(&page, &size); err != nil {
		t.Fatal(err)
	}
	db.Close()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte(strings.Repeat("\xff", int(size))), (page-1)*size); err != nil {
		t.Fatal(err)
	}
	file.Close()

	want := map[string]Level{"integrity": Fault, "holds_exclusive": Fault, "holds_complete": Fault}
	if got := examine(t, root); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestExamineModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no file modes")
	}
	root := newLedger(t)
	for _, path := range []string{root, filepath.Join(root, FileName)} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]Level{"folder_mode": Warning, "file_mode": Warning}
	if got := examine(t, root); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The examination reads one state while a sidecar writes, and does not hold it up.
func TestExamineLiveStore(t *testing.T) {
	root := newLedger(t)
	live := open(t, root, Options{})
	openTask(t, live, "run")
	s := open(t, root, Options{ReadOnly: true})
	findings, err := s.Examine(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Level != Fine {
			t.Errorf("%s %s: %s", f.Level, f.Name, f.Explanation)
		}
	}
	openTask(t, live, "run")
}
