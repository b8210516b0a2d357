package governor_test

import (
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// GOVERNOR.md, "Trusted identity and API": operation keys.

func TestSameKeyAndRequestReturnsTheCurrentState(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	a := ask("op", task).as(schema.New).writing("repo")
	r := lead.reserve(a).ok()
	replay := func(state schema.State, session string) {
		t.Helper()
		got := lead.reserve(a).unchanged()
		if got.ReservationID != r.ReservationID || got.Generation != 1 || got.State != state || text(got.SessionID) != session {
			t.Errorf("want %s by %q, got %+v", state, session, *got)
		}
	}
	replay(schema.Reserved, "")
	lead.bind(r, "s").ok()
	replay(schema.Running, "s")
	lead.markUnknown(r).ok()
	replay(schema.Unknown, "s")
	lead.settle(r, succeeded).ok()
	replay(schema.Settled, "s")
	lead.reject(task)
	replay(schema.Settled, "s")
	lead.claim(task, "s")
	lead.reserve(ask("op-2", task).after(1)).ok()
	replay(schema.Settled, "s")
	l.reopen()
	replay(schema.Settled, "s")
}

func TestSameKeyWithAnotherRequestConflicts(t *testing.T) {
	t.Parallel()
	others := map[string]func(asking, int64) asking{
		"generation":   func(a asking, _ int64) asking { return a.after(1) },
		"mode":         func(a asking, _ int64) asking { a.Mode = schema.Read; return a },
		"kind":         func(a asking, _ int64) asking { return a.as(schema.Retry) },
		"resources":    func(a asking, _ int64) asking { return a.writing("repo", "more") },
		"no resources": func(a asking, _ int64) asking { return a.writing() },
		"task":         func(a asking, other int64) asking { a.TaskID = other; return a },
	}
	for name, change := range others {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			lead := l.lead()
			a := ask("op", lead.task("s")).writing("repo")
			r := lead.reserve(a).ok()
			other := lead.task("s")
			lead.reserve(change(a, other)).conflict(schema.ReasonOperationKey)
			lead.settle(r, neverStarted).ok()
			lead.reserve(change(a, other)).conflict(schema.ReasonOperationKey)
		})
	}
}

func TestKeysAreUniqueWithinARunOnly(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead, other := l.lead(), l.lead().in("run-2")
	first := lead.reserve(ask("op", lead.task("s"))).ok()
	second := other.reserve(ask("op", other.task("s")).as(schema.New)).ok()
	if first.ReservationID == second.ReservationID {
		t.Error("two runs share a reservation")
	}
}

func TestKeysPreserveSpaces(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	for _, run := range []string{"run", " run", "run "} {
		for _, key := range []string{"op", " op", "op "} {
			lead := l.lead().in(run)
			lead.extendBudget(schema.ExtendBudgetInput{Reason: "more of them", MaxActive: new(lead.snapshot().Limits.MaxActive + 1)}).ok()
			lead.reserve(ask(key, lead.task("s"))).ok()
		}
		if s := l.lead().in(run).snapshot(); s.ActiveTotal != 3 {
			t.Errorf("%q has %d active, want 3", run, s.ActiveTotal)
		}
	}
}

// TestReplayComesBeforeEveryFence: a lookup answers whatever would refuse an admission now.
func TestReplayComesBeforeEveryFence(t *testing.T) {
	t.Parallel()
	changes := map[string]func(caller, *schema.Reservation){
		"newer admission": func(c caller, r *schema.Reservation) {
			c.settle(r, neverStarted).ok()
			c.reserve(ask("newer", r.TaskID).after(1)).ok()
		},
		"rejection":     func(c caller, r *schema.Reservation) { c.reject(r.TaskID) },
		"terminal task": func(c caller, r *schema.Reservation) { c.cancel(r.TaskID) },
		"full run": func(c caller, _ *schema.Reservation) {
			for _, key := range []string{"1", "2", "3", "4", "5"} {
				c.reserve(ask(key, c.task("s"))).ok()
			}
		},
		"workflow": func(c caller, r *schema.Reservation) { c.manage(r.TaskID) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			lead := l.lead()
			a := ask("op", lead.task("s")).as(schema.New)
			r := lead.reserve(a).ok()
			change(lead, r)
			if again := lead.reserve(a).unchanged(); again.ReservationID != r.ReservationID {
				t.Errorf("replayed as %s, want %s", again.ReservationID, r.ReservationID)
			}
		})
	}
}

// TestReplayComesAfterTheOwnerChecks: a key is no way around scope and ownership.
func TestReplayComesAfterTheOwnerChecks(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	a := ask("op", lead.task("s-1"))
	l.worker("s-1").reserve(a).ok()
	l.worker("s-2").reserve(a).conflict(schema.ReasonOwner)
	lead.reject(a.TaskID)
	lead.claim(a.TaskID, "s-2")
	l.worker("s-1").reserve(a).conflict(schema.ReasonOwner)
	l.worker("s-2").reserve(a).conflict(schema.ReasonCapturedOwner)
	lead.reserve(a).unchanged()
	lead.in("run-2").reserve(a).conflict(schema.ReasonCrossRun)
}

func TestRefusedKeyIsNotUsedUp(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	holder := lead.reserve(ask("holder", lead.task("s")).writing("repo")).ok()
	lead.reserve(ask("op", task).writing("repo")).refused(schema.ErrResourceBusy)
	lead.settle(holder, neverStarted).ok()
	lead.reserve(ask("op", task).writing("repo", "and another")).ok()
}

func TestReservationHasTheContractsNineMembers(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	r := lead.reserve(ask("op", lead.task("s")).as(schema.New).writing("b", "a")).ok()
	if r.Generation != 1 || r.State != schema.Reserved || r.Mode != schema.Write || r.Kind != schema.New || r.RunID != run || r.SessionID != nil {
		t.Errorf("got %+v", *r)
	}
	encoded, err := schema.Encode(r)
	want := `{"reservation_id":"` + r.ReservationID + `","run_id":"run-1","task_id":1,"generation":1,"state":"reserved","mode":"write","kind":"new","session_id":null,"resources":["a","b"]}`
	if err != nil || string(encoded) != want {
		t.Errorf("got  %s\nwant %s", encoded, want)
	}
}
