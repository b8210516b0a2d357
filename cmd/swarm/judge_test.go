package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// tamper is a change of the store behind everybody's back, and a part of what
// the queries must say about it.
type tamper struct{ name, statement, words string }

var tampered = []tamper{
	{"active", `UPDATE governor_audit SET details = json_set(details, '$.after.max_active', 7) WHERE action = 'extendBudget'`, " active of 7, "},
	{"writers", `UPDATE governor_audit SET details = json_set(details, '$.after.max_writers', 2) WHERE action = 'extendBudget'`, " writers of 2, "},
	{"new", `UPDATE governor_audit SET details = json_set(details, '$.after.max_created', 3) WHERE action = 'extendBudget'`, " new of 3"},
	{"retries", `UPDATE governor_audit SET details = json_set(details, '$.retry_charge', 9) WHERE action = 'reserve' AND id % 50 = 0`, " retries of 6"},
	{"exclusion", `UPDATE governor_reservation SET mode = 'write', payload = json_set(payload, '$.resources', json('["one"]'))`, "one is taken to write while another has it"},
	{"generation", `UPDATE governor_reservation SET generation = generation + 100 WHERE generation > 1`, " up to generation 10"},
	{"order", `UPDATE governor_reservation SET generation = CASE generation WHEN 1 THEN 1002 WHEN 2 THEN 1001 END WHERE generation IN (1, 2) AND task_id IN (SELECT task_id FROM governor_reservation WHERE generation = 2)`, " goes from generation 0 to 1002"},
	{"two at once", `DELETE FROM governor_audit WHERE action = 'settle'`, " has 2 active admissions"},
	{"gap", `DELETE FROM governor_audit WHERE id = 10`, "the audit has "},
	{"state", `UPDATE governor_reservation SET session_id = 'nobody' WHERE session_id IS NULL`, " is settled, and the audit says otherwise"},
	{"no admission", `DELETE FROM governor_reservation WHERE rowid = 5`, " is absent, and the audit says otherwise"},
	{"no entry", `DELETE FROM governor_audit WHERE action = 'reserve' AND id % 10 = 0`, ", and the audit says otherwise"},
	{"operation key", `UPDATE governor_audit SET details = json_set(details, '$.operation_key', 'another') WHERE action = 'reserve' AND id % 50 = 0`, " was audited as another one"},
	{"charge", `UPDATE governor_retry_charge SET retry_charge = retry_charge + 1 WHERE rowid = 5`, " has another charge than was audited"},
	{"no hold", `DELETE FROM governor_hold`, " is amiss"},
	{"a hold too many", `INSERT INTO governor_hold SELECT reservation_id, 'nobody''s', mode FROM governor_reservation WHERE rowid = 5`, "nobody's is amiss"},
	{"limits", `UPDATE governor_run SET max_retries = max_retries + 1`, " has other limits than were audited"},
}

func (c tamper) check(t *testing.T, content []byte) {
	ctx := context.Background()
	s := newSwarm(options{root: t.TempDir()})
	if err := os.WriteFile(filepath.Join(s.root, sqlite.FileName), content, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	result, err := db.ExecContext(ctx, c.statement)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := result.RowsAffected(); err != nil || changed == 0 {
		t.Fatalf("%d rows were changed (%v)", changed, err)
	}
	db.Close()
	found, err := s.judgeSQL(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(found, "\n"), c.words) {
		t.Errorf("want %q, found %d violations: %q", c.words, len(found), some(found))
	}
}

// TestJudgeInProcess: the queries run in the sidecar's own engine too.
func TestJudgeInProcess(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	root := t.TempDir()
	store, err := sqlite.Open(ctx, root, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store.Close()
	s := newSwarm(options{root: root})
	if found, err := s.judgeInProcess(ctx); err != nil || len(found) > 0 {
		t.Errorf("found %q (%v) in an empty store", found, err)
	}
	db, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "INSERT INTO governor_run VALUES ('run', 7, 7, 7, 7)"); err != nil {
		t.Fatal(err)
	}
	if found, err := s.judgeInProcess(ctx); err != nil || len(found) != 1 {
		t.Errorf("found %q (%v), want one violation", found, err)
	}
}
