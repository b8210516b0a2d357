package main

import (
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// The clock is set back by a day. What was written before is then from
// tomorrow, and a test can write that without touching the clock of the machine:
// the sidecar compares the clock with nothing else. Nothing expires, so nothing
// is decided by time; numbers give the order.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := serve(t, root)
	before := s.reserve("run", "s", schema.Write, "repo")
	for _, change := range []string{
		"task SET created_at = strftime(form, created_at, '+1 day'), updated_at = strftime(form, updated_at, '+1 day')",
		"task_event SET created_at = strftime(form, created_at, '+1 day')", "governor_audit SET created_at = strftime(form, created_at, '+1 day')",
	} {
		runSQL(t, root, "UPDATE "+strings.ReplaceAll(change, "form", "'%Y-%m-%dT%H:%M:%fZ'"))
	}
	s.end()

	s, watcher := serve(t, root), serve(t, root)
	result(watcher, schema.Watch, schema.RunParams{RunID: "run"})
	s.refused(schema.ErrResourceBusy, schema.Reserve.Name, reserving("run", s.openTask("run", ""), 0, schema.Write, schema.Reuse, "repo"))
	result(s, schema.Bind, binding(before, "s"))
	for told := ""; !strings.Contains(told, "governor.changed"); {
		line, err := watcher.out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		told = line
	}
	after := s.reserve("run", "s", schema.Read, "docs")
	snapshot := result(s, schema.GetSnapshot, schema.RunParams{RunID: "run"})
	if n := len(snapshot.Reservations); n != 2 || snapshot.Reservations[0].ReservationID != before.ReservationID || snapshot.Reservations[1].ReservationID != after.ReservationID {
		t.Errorf("the reservations are %s", encode(t, snapshot.Reservations))
	}
	if audit := snapshot.Audit; len(audit) != 3 || audit[0].CreatedAt < audit[2].CreatedAt {
		t.Errorf("the audit is %s", encode(t, audit))
	}
	if out := run(t, "status", "--root", root, "run"); !strings.Contains(out, "0s") {
		t.Errorf("work from tomorrow has an age:\n%s", out)
	}
	sound(t, root)
}
