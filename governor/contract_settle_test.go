package governor_test

import (
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// GOVERNOR.md, "Trusted identity and API" and "Settlement and recovery":
// markUnknown and settle.

func TestUnknownRetainsEverything(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	r := lead.reserve(ask("op", lead.task("s")).as(schema.New).writing("repo")).ok()
	lead.bind(r, "s").ok()
	unknown := lead.markUnknown(r).ok()
	if unknown.State != schema.Unknown || text(unknown.SessionID) != "s" {
		t.Errorf("got %+v", *unknown)
	}
	s := lead.snapshot()
	if s.ActiveTotal != 1 || s.ActiveWriters != 1 || s.UnknownTotal != 1 || s.CreatedTotal != 1 || len(s.Holds) != 1 {
		t.Errorf("got %+v", s)
	}
}

func TestUnknownIsIdempotent(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	r := lead.reserve(ask("op", lead.task("s"))).ok()
	l.worker("s").markUnknown(r).ok()
	lead.markUnknown(r).unchanged() // another actor, the same observation
}

func TestSettledDoesNotBecomeUnknown(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	r := lead.reserve(ask("op", lead.task("s"))).ok()
	lead.settle(r, neverStarted).ok()
	if refusal := lead.markUnknown(r).conflict(schema.ReasonState); refusal.Details.State != schema.Settled {
		t.Errorf("the refusal names the state %q", refusal.Details.State)
	}
}

// TestProofs: never_started settles only what was never bound; terminal settles either.
func TestProofs(t *testing.T) {
	t.Parallel()
	reserved := func(caller, *schema.Reservation) {}
	bound := func(c caller, r *schema.Reservation) { c.bind(r, "s").ok() }
	unknown := func(c caller, r *schema.Reservation) { c.markUnknown(r).ok() }
	boundUnknown := func(c caller, r *schema.Reservation) { bound(c, r); unknown(c, r) }
	tests := []struct {
		name     string
		prepare  func(caller, *schema.Reservation)
		proof    schema.Proof
		accepted bool
	}{
		{"never started, reserved", reserved, neverStarted, true},
		{"never started, unknown and never bound", unknown, neverStarted, true},
		{"never started, running", bound, neverStarted, false},
		{"never started, unknown and once bound", boundUnknown, neverStarted, false},
		{"succeeded, reserved", reserved, terminal(schema.Succeeded, "e"), true},
		{"failed, unknown and never bound", unknown, terminal(schema.Failed, "e"), true},
		{"cancelled, running", bound, terminal(schema.Cancelled, "e"), true},
		{"succeeded, unknown and once bound", boundUnknown, terminal(schema.Succeeded, "e"), true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			lead := l.lead()
			r := lead.reserve(ask("op", lead.task("s")).writing("repo")).ok()
			test.prepare(lead, r)
			o := lead.settle(r, test.proof)
			if !test.accepted {
				o.conflict(schema.ReasonProof)
				return
			}
			if settled := o.ok(); settled.State != schema.Settled || settled.Generation != r.Generation {
				t.Errorf("got %+v", *settled)
			}
			if s := lead.snapshot(); s.ActiveTotal != 0 || s.UnknownTotal != 0 || len(s.Holds) != 0 || len(s.Reservations) != 1 {
				t.Errorf("got %+v", s)
			}
		})
	}
}

func TestIdenticalSettlementIsIdempotent(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	first := lead.reserve(ask("first", lead.task("s"))).ok()
	lead.settle(first, neverStarted).ok()
	lead.settle(first, neverStarted).unchanged()
	second := lead.reserve(ask("second", lead.task("s"))).ok()
	l.worker("s").settle(second, succeeded).ok()
	lead.settle(second, succeeded).unchanged()
}

func TestConflictingSettlementFails(t *testing.T) {
	t.Parallel()
	proofs := map[string]schema.Proof{
		"never started": neverStarted,
		"failed":        terminal(schema.Failed, "log-1"),
		"cancelled":     terminal(schema.Cancelled, "log-1"),
		"evidence":      terminal(schema.Succeeded, "log-2"),
		"a space":       terminal(schema.Succeeded, "log-1 "),
	}
	for name, proof := range proofs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			lead := l.lead()
			r := lead.reserve(ask("op", lead.task("s"))).ok()
			lead.settle(r, succeeded).ok()
			if refusal := lead.settle(r, proof).conflict(schema.ReasonProof); refusal.Details.State != schema.Settled {
				t.Errorf("the refusal names the state %q", refusal.Details.State)
			}
		})
	}
}

// TestSettledReplayAfterANewerAdmission: the narrow extension of the fence. The
// current and the captured owner are still checked.
func TestSettledReplayAfterANewerAdmission(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead, worker := l.lead(), l.worker("s-1")
	task := lead.task("s-1")
	old := worker.reserve(ask("op-1", task)).ok()
	worker.bind(old, "s-1").ok()
	worker.settle(old, succeeded).ok()
	worker.reserve(ask("op-2", task).after(1).writing("repo")).ok()

	if again := worker.settle(old, succeeded).unchanged(); again.State != schema.Settled || again.Generation != 1 {
		t.Errorf("got %+v", *again)
	}
	lead.settle(old, succeeded).unchanged()
	worker.settle(old, terminal(schema.Failed, "log-1")).conflict(schema.ReasonProof)
	l.worker("s-2").settle(old, succeeded).conflict(schema.ReasonOwner)
	lead.in("run-2").settle(old, succeeded).conflict(schema.ReasonCrossRun)
	stale := *old
	stale.Generation = 2
	lead.settle(&stale, succeeded).fenced(schema.FenceReservation, 2, 1)

	lead.reject(task)
	lead.claim(task, "s-2")
	l.worker("s-2").settle(old, succeeded).conflict(schema.ReasonCapturedOwner)
	worker.settle(old, succeeded).conflict(schema.ReasonOwner)
	lead.settle(old, succeeded).unchanged()
}

func TestSettlementNeedsNoOwner(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	r := lead.reserve(ask("op", lead.task(""))).ok()
	lead.settle(r, neverStarted).ok()
}

func TestTransitionsAreAudited(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	lead.rework(task, "s")
	r := lead.reserve(ask("op", task).as(schema.Retry).writing("b", "a")).ok()
	lead.bind(r, "s").ok()
	lead.markUnknown(r).ok()
	lead.settle(r, succeeded).ok()
	want := []struct{ action, details string }{
		{"reserve", `{"operation_key":"op","task_id":1,"generation":0,"mode":"write","kind":"retry","resources":["a","b"],"rework_generation":1,"retry_charge":1}`},
		{"bind", `{"generation":1,"session_id":"s"}`},
		{"markUnknown", `{"generation":1,"reason":"the host lost it"}`},
		{"settle", `{"generation":1,"proof":{"kind":"terminal","outcome":"succeeded","quiescent":true,"evidence":"log-1"}}`},
	}
	audit := lead.snapshot().Audit
	if len(audit) != len(want) {
		t.Fatalf("%d entries, want %d", len(audit), len(want))
	}
	for i, e := range audit {
		if e.Action != want[i].action || string(e.Details) != want[i].details || text(e.ReservationID) != r.ReservationID || e.RunID != run {
			t.Errorf("entry %d is %s %s", i, e.Action, e.Details)
		}
	}
}
