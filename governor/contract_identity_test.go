package governor_test

import (
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// GOVERNOR.md, "Trusted identity and API": runs, roles, owners.

// transitions are the calls about a reservation, by name.
var transitions = map[string]func(caller, *schema.Reservation) outcome[schema.Reservation]{
	"bind":        func(c caller, r *schema.Reservation) outcome[schema.Reservation] { return c.bind(r, "s-1") },
	"markUnknown": caller.markUnknown,
	"settle":      func(c caller, r *schema.Reservation) outcome[schema.Reservation] { return c.settle(r, neverStarted) },
}

func TestWorkerMatchesTheCurrentOwner(t *testing.T) {
	t.Parallel()
	for name, transition := range transitions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			task := l.lead().task("s-1")
			l.worker("s-2").reserve(ask("op", task)).conflict(schema.ReasonOwner)
			r := l.worker("s-1").reserve(ask("op", task)).ok()
			for _, session := range []string{"s-2", " s-1", "s-1 ", "S-1"} {
				transition(l.worker(session), r).conflict(schema.ReasonOwner)
			}
			transition(l.worker("s-1"), r).ok()
		})
	}
}

func TestWorkerHasNothingToDoWithAnUnownedTask(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	task := l.lead().task("")
	l.worker("s-1").reserve(ask("op", task)).conflict(schema.ReasonOwner)
	r := l.lead().reserve(ask("op", task)).ok()
	for _, transition := range transitions {
		transition(l.worker("s-1"), r).conflict(schema.ReasonOwner)
	}
}

func TestReassignmentDoesNotGrantControlOfAnOldExecution(t *testing.T) {
	t.Parallel()
	for name, transition := range transitions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			lead := l.lead()
			task := lead.task("s-1")
			r := l.worker("s-1").reserve(ask("op", task)).ok()
			lead.reject(task)
			lead.claim(task, "s-2")
			transition(l.worker("s-2"), r).conflict(schema.ReasonCapturedOwner)
			transition(l.worker("s-1"), r).conflict(schema.ReasonOwner)
		})
	}
}

func TestLeadRecoversOldExecutions(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s-1")
	r := l.worker("s-1").reserve(ask("op", task)).ok()
	l.worker("s-1").bind(r, "s-1").ok()
	lead.reject(task)
	lead.claim(task, "s-2")
	l.reopen()
	lead.markUnknown(r).ok()
	lead.settle(r, succeeded).ok()
	l.worker("s-2").reserve(ask("op-2", task).after(1)).ok()
}

// TestUnownedAdmissionBelongsToNoWorkerUntilALeadsBind: an admission made while
// the task had no owner captures none.
func TestUnownedAdmissionBelongsToNoWorkerUntilALeadsBind(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("")
	r := lead.reserve(ask("op", task)).ok()
	lead.bind(r, "s-1").conflict(schema.ReasonUnowned)
	lead.claim(task, "s-1")
	l.worker("s-1").reserve(ask("op", task)).conflict(schema.ReasonCapturedOwner)
	for _, transition := range transitions {
		transition(l.worker("s-1"), r).conflict(schema.ReasonCapturedOwner)
	}
	lead.bind(r, "s-1").ok()
	l.worker("s-1").reserve(ask("op", task)).unchanged()
	l.worker("s-1").bind(r, "s-1").unchanged()
	l.worker("s-1").markUnknown(r).ok()
	l.worker("s-1").settle(r, succeeded).ok()
}

// TestLeadsBindHandsTheExecutionToTheBoundSession: a lead that binds after a
// reassignment dispatches to the new owner, who is then in charge.
func TestLeadsBindHandsTheExecutionToTheBoundSession(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s-1")
	lead.reject(task)
	r := l.worker("s-1").reserve(ask("op", task)).ok()
	lead.claim(task, "s-2")
	l.worker("s-2").bind(r, "s-2").conflict(schema.ReasonCapturedOwner)
	lead.bind(r, "s-2").ok()
	l.worker("s-2").settle(r, succeeded).ok()
}

func TestWorkerNamedLeadIsStillAWorker(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	impostor := l.worker("lead")
	task := lead.task("s-1")
	impostor.reserve(ask("op", task)).conflict(schema.ReasonOwner)
	r := lead.reserve(ask("op", task)).ok()
	for _, transition := range transitions {
		transition(impostor, r).conflict(schema.ReasonOwner)
	}
	impostor.extendBudget(schema.ExtendBudgetInput{Reason: "more", MaxActive: new(int64(7))}).conflict(schema.ReasonNotLead)

	own := lead.task("lead")
	impostor.bind(impostor.reserve(ask("own", own)).ok(), "lead").ok()
}

func TestLeadIsLeadWhateverItsSession(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	lead.authority.SessionID = "worker"
	r := lead.reserve(ask("op", lead.task("s-1"))).ok()
	lead.bind(r, "s-1").ok()
	lead.settle(r, succeeded).ok()
}

func TestSessionKeysAreExact(t *testing.T) {
	t.Parallel()
	for _, session := range []string{" s ", "s\x00", "\U0001f600", "caf\u00e9", "\u2028s"} {
		l := newLedger(t)
		worker := l.worker(session)
		r := worker.reserve(ask("op", l.lead().task(session))).ok()
		if got := worker.bind(r, session).ok(); text(got.SessionID) != session {
			t.Errorf("%q came back as %q", session, text(got.SessionID))
		}
	}
}

func TestCrossRunAccessIsRejected(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"run-2", " run-1", "run-1 ", "RUN-1"} {
		l := newLedger(t)
		lead := l.lead()
		r := lead.reserve(ask("op", lead.task("s-1"))).ok()
		stranger := lead.in(other)
		stranger.reserve(ask("op", r.TaskID)).conflict(schema.ReasonCrossRun)
		stranger.reserve(ask("op-2", r.TaskID).after(1)).conflict(schema.ReasonCrossRun)
		for _, transition := range transitions {
			transition(stranger, r).conflict(schema.ReasonCrossRun)
			transition(l.worker("s-1").in(other), r).conflict(schema.ReasonCrossRun)
		}
		if s := stranger.snapshot(); len(s.Reservations) != 0 || len(s.Audit) != 0 || s.ActiveTotal != 0 {
			t.Errorf("%q sees %+v", other, s)
		}
	}
}

// TestTaskWithoutRunBelongsToNone: another writer left run_id unset.
func TestTaskWithoutRunBelongsToNone(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	l.exec("UPDATE task SET run_id = NULL")
	lead.reserve(ask("op", task)).conflict(schema.ReasonCrossRun)
}

func TestMissingTaskAndReservation(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.lead().reserve(ask("op", 1)).conflict(schema.ReasonTaskNotFound)
	ghost := &schema.Reservation{ReservationID: "nobody", Generation: 1}
	for _, transition := range transitions {
		transition(l.lead(), ghost).conflict(schema.ReasonReservationNotFound)
	}
}

func TestAuditNamesTheExactActor(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	worker := l.worker(" s-1 ")
	r := worker.reserve(ask("op", l.lead().task(" s-1 "))).ok()
	l.lead().bind(r, " s-1 ").ok()
	audit := worker.snapshot().Audit
	if e := audit[0]; e.Action != "reserve" || e.Role != schema.Worker || e.SessionID != " s-1 " {
		t.Errorf("got %+v", e)
	}
	if e := audit[1]; e.Action != "bind" || e.Role != schema.Lead || e.SessionID != "root" || text(e.ReservationID) != r.ReservationID {
		t.Errorf("got %+v", e)
	}
}
