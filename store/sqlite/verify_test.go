package sqlite_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

// verify returns what a verification of the store finds, which must change nothing.
func verify(t *testing.T, root string) *sqlite.Verification {
	t.Helper()
	before := content(t, root)
	s := open(t, root, sqlite.Options{ReadOnly: true})
	v, err := s.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if !maps.Equal(before, content(t, root)) {
		t.Error("the verification has changed the store")
	}
	for _, b := range v.Breaches {
		t.Logf("%s %s %s %q: %s", b.Level, b.Check, b.Table, b.Row, b.Explanation)
		if b.Explanation == "" || strings.ContainsAny(b.Explanation, "\n\x00") {
			t.Errorf("%s: the explanation %q is not a line", b.Check, b.Explanation)
		}
	}
	return v
}

// checks are the names of the promises that are broken, in the order of the alphabet.
func checks(v *sqlite.Verification) string {
	var names []string
	for _, b := range v.Breaches {
		names = append(names, b.Check)
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

func TestVerifySound(t *testing.T) {
	v := verify(t, soundLedger(t))
	want := sqlite.Rows{Tasks: 5, Events: 18, Reservations: 7, Holds: 7, Charges: 7, Audit: 17}
	if !v.Sound || len(v.Breaches) > 0 || v.Rows != want || v.StoreID == "" {
		t.Errorf("a sound ledger is found %+v, want the rows %+v", v, want)
	}
}

// The files that the other writer really wrote are sound, before a sidecar has
// migrated them and after.
func TestVerifyOtherWriter(t *testing.T) {
	for _, name := range reference.Names(t) {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			reference.Unpack(t, name, root)
			want := ""
			if strings.HasPrefix(name, "legacy") {
				want = "accounting"
			}
			if v := verify(t, root); !v.Sound || checks(v) != want {
				t.Errorf("as it was written: %v, %q, want only %q", v.Sound, checks(v), want)
			}
			s := open(t, root, sqlite.Options{})
			if err := governor.Prepare(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			s.Close()
			if v := verify(t, root); len(v.Breaches) > 0 {
				t.Error("it is unsound after the migration")
			}
		})
	}
}

// where is the condition for the reservation with an operation key.
func where(key string) string {
	return fmt.Sprintf(" WHERE reservation_id = (SELECT reservation_id FROM governor_reservation WHERE operation_key = '%s')", key)
}

// entered is the condition for its audit entry.
func entered(key, action string) string { return where(key) + " AND action = '" + action + "'" }

// more admits n times as much work as reservation c is, with everything about
// it in order but that nobody asked whether there is room.
func more(n int, mode, kind string) (statements string) {
	for i := range n {
		statements += fmt.Sprintf(`
			INSERT INTO task (title, run_id, created_at, updated_at) SELECT title, run_id, created_at, '2026-01-01T00:00:00.000Z' FROM task WHERE id = 2;
			INSERT INTO governor_reservation SELECT 'n%[1]d', run_id, last_insert_rowid(), 'n%[1]d', '{"task_id":' || last_insert_rowid() || ',"generation":0,"mode":"%[2]s","kind":"%[3]s","resources":[]}',
				1, '%[2]s', '%[3]s', 'reserved', NULL, NULL, NULL FROM governor_reservation WHERE operation_key = 'c';
			INSERT INTO governor_retry_charge VALUES ('n%[1]d', 0, 0, 'admission');
			INSERT INTO governor_audit (run_id, reservation_id, action, role, session_id, details, created_at)
				SELECT run_id, reservation_id, 'reserve', 'lead', 'lead', '{"operation_key":"n%[1]d",' || substr(payload, 2, length(payload) - 2) || ',"rework_generation":0,"retry_charge":0}', '2026-01-01T00:00:00.000Z'
				FROM governor_reservation WHERE reservation_id = 'n%[1]d';`, i, mode, kind)
	}
	return statements
}

// without makes a table anew, as it is but without its constraints.
func without(table string) string {
	return fmt.Sprintf("CREATE TABLE copy AS SELECT * FROM %[1]s; DROP TABLE %[1]s; ALTER TABLE copy RENAME TO %[1]s;", table)
}

// damages are done by hand to a sound ledger. want are the checks that name each
// of them: most concern one, but some rows cannot be lost without others noticing.
var damages = []struct{ name, statements, want string }{
	{"task in no status", "UPDATE task SET status = 'lost', updated_at = '2026-01-01T00:00:00.000Z'", "task_rows"},
	{"task without a time", "UPDATE task SET updated_at = ''", "task_rows"},
	{"task changed without an event", "UPDATE task SET status = 'accepted' WHERE id = 1", "event_latest"},
	{"rejection forgotten", "UPDATE task SET evidence_generation = 0 WHERE id = 1", "charge_values event_evidence event_latest"},
	{"task gone", "DELETE FROM task WHERE id = 2", "event_task reservation_task"},
	{"task in another run", "UPDATE task SET run_id = 'run' WHERE id = 3", "event_task reservation_task"},
	{"event of nobody", "UPDATE task_event SET role = 'boss' WHERE id = 1", "event_rows"},
	{"last event gone", "DELETE FROM task_event WHERE id = 18; UPDATE task SET updated_at = '2026-01-01T00:00:00.000Z'", "events_complete"},

	{"reservation in no state", "UPDATE governor_reservation SET state = 'lost'" + where("c"), "audit_transitions reservation_rows"},
	{"running without a session", "UPDATE governor_reservation SET session_id = NULL" + where("b"), "audit_transitions reservation_session"},
	{"running for another session", "UPDATE governor_reservation SET session_id = 'thief'" + where("b"), "audit_transitions reservation_session"},
	{"reserved with a session", "UPDATE governor_reservation SET session_id = 's', owner_session = 's'" + where("c"), "audit_transitions reservation_session"},
	{"dispatched without a bind", "UPDATE governor_reservation SET state = 'running', session_id = 's', owner_session = 's'" + where("c"), "audit_transitions"},
	{"settled without a proof", "UPDATE governor_reservation SET settlement = NULL" + where("a"), "reservation_settlement"},
	{"settled by another proof", `UPDATE governor_reservation SET settlement = '{"kind":"never_started"}'` + where("e"), "audit_transitions reservation_settlement"},
	{"settled by no proof", `UPDATE governor_reservation SET settlement = '{"kind":"terminal","outcome":"failed","quiescent":false,"evidence":"x"}'` + where("e"), "audit_transitions reservation_settlement"},
	{"settled behind the back", `UPDATE governor_reservation SET state = 'settled', settlement = '{"kind":"never_started"}'` + where("c") + "; DELETE FROM governor_hold" + where("c"), "audit_transitions"},
	{"proof of active work", `UPDATE governor_reservation SET settlement = '{"kind":"never_started"}'` + where("c"), "reservation_settlement"},
	{"payload no JSON", "UPDATE governor_reservation SET payload = 'x'" + where("a"), "audit_admission reservation_payload"},
	{"payload spelt otherwise", "UPDATE governor_reservation SET payload = replace(payload, ',', ', ')" + where("a"), "audit_admission reservation_payload"},
	{"payload out of order", `UPDATE governor_reservation SET payload = replace(payload, '["q\"\\\n","r"]', '["r","q\"\\\n"]')` + where("d"), "audit_admission reservation_payload"},
	{"payload in the order of bytes", `UPDATE governor_reservation SET payload = replace(payload, '"` + "\U0001f600\",\"\uff5e" + `"', '"` + "\uff5e\",\"\U0001f600" + `"')` + where("b"), "audit_admission reservation_payload"},
	{"payload of another request", "UPDATE governor_reservation SET mode = 'write'" + where("e") + "; UPDATE governor_reservation SET kind = 'reuse'" + where("a"), "reservation_payload"},
	{"blank key", "UPDATE governor_reservation SET operation_key = ' ' || char(0xfeff)" + where("a"), "audit_admission reservation_keys"},

	{"reservation lost", "DELETE FROM governor_reservation WHERE operation_key = 'b'", "audit_reservation charge_reservation holds_active"},
	{"earlier reservation lost", "DELETE FROM governor_reservation WHERE operation_key = 'a'", "audit_reservation charge_reservation generations"},
	{"generation skipped", `UPDATE governor_reservation SET generation = 3, payload = replace(payload, '"generation":1', '"generation":2')` + where("b"), "audit_admission audit_transitions generations"},
	{"two active", "DROP INDEX idx_governor_active_task; UPDATE governor_reservation SET state = 'unknown', settlement = NULL" + where("a") + "; UPDATE governor_reservation SET payload = replace(payload, '[\"x\"]', '[]')" + where("a"),
		"audit_admission audit_transitions one_active"},
	{"overtaken", "DROP INDEX idx_governor_active_task; UPDATE governor_reservation SET state = 'reserved', settlement = NULL" + where("f"), "active_latest audit_transitions"},
	{"operation key twice", without("governor_reservation") + "UPDATE governor_reservation SET operation_key = 'e' WHERE operation_key = 'd'", "audit_admission unique_keys"},
	{"reservation twice", without("governor_reservation") + "INSERT INTO governor_reservation SELECT * FROM governor_reservation WHERE operation_key = 'a'", "audit_admission audit_transitions generations unique_keys"},
	{"hold twice", without("governor_hold") + "INSERT INTO governor_hold SELECT * FROM governor_hold WHERE resource_key = 'x'", "holds_exclusive unique_keys"},

	{"too many active", more(5, "read", "reuse"), "limit_active past_limits"},
	{"too many writers", more(2, "write", "reuse"), "limit_writers past_limits"},
	{"too many new", more(2, "read", "new"), "limit_new past_limits"},
	{"too many retries", "UPDATE governor_retry_charge SET retry_charge = 3" + where("b"), "audit_admission charge_amount limit_retries past_limits"},
	{"limit of nothing", "UPDATE governor_run SET max_created = 0", "audit_budget limit_values"},
	{"limit raised by hand", "UPDATE governor_run SET max_active = 20", "audit_budget"},
	{"limit of another run", "INSERT INTO governor_run VALUES ('run', 6, 2, 9, 2)", "audit_budget"},
	{"limits lost", "DELETE FROM governor_run", "audit_budget"},

	{"charge lost", "DELETE FROM governor_retry_charge" + where("a"), "accounting"},
	{"charge lost, and noted", "INSERT INTO sidecar_meta SELECT 'charged_up_to', reservation_id FROM governor_reservation WHERE operation_key = 'd'; DELETE FROM governor_retry_charge" + where("a"), "accounting charge_lost"},
	{"charge lost, not noted", "INSERT INTO sidecar_meta SELECT 'charged_up_to', reservation_id FROM governor_reservation WHERE operation_key = 'a'; DELETE FROM governor_retry_charge" + where("d"), "accounting"},
	{"charge of nothing", "INSERT INTO governor_retry_charge VALUES ('z', 0, 0, 'legacy')", "charge_reservation"},
	{"charge below zero", "UPDATE governor_retry_charge SET retry_charge = -1" + where("a"), "audit_admission charge_amount charge_values"},
	{"charge forgiven", "UPDATE governor_retry_charge SET retry_charge = 0" + where("b"), "audit_admission charge_amount"},
	{"charge of the future", "UPDATE governor_retry_charge SET rework_generation = 9" + where("b"), "audit_admission charge_amount charge_values"},
	{"charge of no source", "UPDATE governor_retry_charge SET source = 'gift'" + where("a"), "charge_values"},
	{"migration forgiven", "UPDATE governor_retry_charge SET retry_charge = 0" + where("g"), "charge_amount"},
	{"migrated retry forgiven", "UPDATE governor_retry_charge SET retry_charge = 0" + where("f"), "charge_amount"},

	{"hold lost", "DELETE FROM governor_hold WHERE resource_key = 'x'", "holds_complete"},
	{"hold weaker", "UPDATE governor_hold SET mode = 'read' WHERE resource_key = 'x'", "holds_complete"},
	{"hold of settled work", "INSERT INTO governor_hold SELECT reservation_id, 'old', 'write' FROM governor_reservation WHERE operation_key = 'a'", "holds_active"},
	{"hold of nobody", "INSERT INTO governor_hold VALUES ('gone', 'old', 'write')", "holds_active"},
	{"hold stolen", "UPDATE governor_hold SET resource_key = 'x'" + where("c"), "holds_complete holds_exclusive"},
	{"writer beside a reader", `UPDATE governor_reservation SET mode = 'write', payload = replace(payload, '"read"', '"write"')` + where("c") + "; UPDATE governor_hold SET mode = 'write'" + where("c"),
		"audit_admission holds_exclusive past_holds"},

	{"audit entry of nobody", "UPDATE governor_audit SET role = 'boss'" + entered("a", "settle"), "audit_rows"},
	{"audit entry at no time", "UPDATE governor_audit SET created_at = 'yesterday'" + entered("a", "settle"), "audit_rows"},
	{"audit entry of nothing", "UPDATE governor_audit SET reservation_id = 'z'" + entered("d", "markUnknown"), "audit_reservation audit_transitions"},
	{"admission not in the audit", "DELETE FROM governor_audit" + entered("e", "reserve"), "audit_admission audit_complete audit_transitions"},
	{"admission twice in the audit", "INSERT INTO governor_audit SELECT NULL, run_id, reservation_id, action, role, session_id, details, created_at FROM governor_audit" + entered("c", "reserve"), "audit_admission"},
	{"admission for another price", `UPDATE governor_audit SET details = replace(details, '"retry_charge":1', '"retry_charge":0')` + entered("b", "reserve"), "audit_admission"},
	{"bind to another session", `UPDATE governor_audit SET details = '{"generation":2,"session_id":"thief"}'` + entered("b", "bind"), "audit_transitions"},
	{"unknown for no reason", `UPDATE governor_audit SET details = '{"generation":1,"reason":" "}'` + entered("d", "markUnknown"), "audit_transitions"},
	{"settle by another proof", `UPDATE governor_audit SET details = '{"generation":1,"proof":{"kind":"never_started"}}'` + entered("e", "settle"), "audit_transitions"},
	{"settle not in the audit", "DELETE FROM governor_audit" + entered("e", "settle"), "audit_complete audit_transitions"},
	{"end of the audit lost", "DELETE FROM governor_audit WHERE id > 10", "audit_admission audit_budget audit_complete audit_transitions"},
	{"extension by a worker", "UPDATE governor_audit SET role = 'worker' WHERE action = 'extendBudget'", "audit_budget"},
	{"extension of other limits", `UPDATE governor_audit SET details = replace(details, '"max_created":3', '"max_created":4') WHERE action = 'extendBudget'`, "audit_budget"},
	{"order of the audit", `UPDATE governor_audit SET id = -id` + entered("a", "settle") + `; UPDATE governor_audit SET id = 99 WHERE id < 0`, "audit_complete past_holds past_order"},
}

func TestVerifyNamesDamage(t *testing.T) {
	for _, damage := range damages {
		t.Run(damage.name, func(t *testing.T) {
			t.Parallel()
			root := soundLedger(t)
			execute(t, root, damage.statements)
			if v := verify(t, root); checks(v) != damage.want || len(v.Breaches) == 0 {
				t.Errorf("the checks %q name it, want %q", checks(v), damage.want)
			}
		})
	}
}

// A page that cannot be read is named by every check that needs it, and keeps
// none of the others from being made.
func TestVerifyDamagedPage(t *testing.T) {
	root := soundLedger(t)
	overwrite(t, root, "governor_hold")
	v := verify(t, root)
	const want = "holds_complete holds_exclusive unique_keys"
	if v.Sound || checks(v) != want {
		t.Errorf("the checks %q name it, want %q", checks(v), want)
	}
}

// What is broken everywhere is counted, but not listed without end.
func TestVerifyCountsManyBreaches(t *testing.T) {
	root := soundLedger(t)
	execute(t, root, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO governor_hold SELECT 'gone', i, 'read' FROM n")
	v := verify(t, root)
	if last := v.Breaches[len(v.Breaches)-1]; len(v.Breaches) != 101 || last.Explanation != "and 900 more" {
		t.Errorf("%d findings, the last one %+v", len(v.Breaches), last)
	}
}

// A verification reads one state beside a writer, and does not hold it up.
func TestVerifyLiveStore(t *testing.T) {
	root := soundLedger(t)
	live := &scribe{t, open(t, root, sqlite.Options{})}
	live.task("run", "s")
	v, err := open(t, root, sqlite.Options{ReadOnly: true}).Verify(t.Context())
	if err != nil || len(v.Breaches) > 0 || v.Rows.Tasks != 6 {
		t.Errorf("it finds %+v (%v)", v, err)
	}
	live.task("run", "s")
}
