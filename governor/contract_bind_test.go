package governor_test

import (
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// GOVERNOR.md, "Trusted identity and API": bind and the fences.

func TestBindMovesReservedToRunning(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	worker := l.worker("s")
	r := worker.reserve(ask("op", l.lead().task("s")).writing("repo")).ok()
	bound := worker.bind(r, "s").ok()
	if bound.State != schema.Running || text(bound.SessionID) != "s" || bound.Generation != r.Generation {
		t.Errorf("got %+v", *bound)
	}
	if s := worker.snapshot(); s.ActiveTotal != 1 || len(s.Holds) != 1 || s.Reservations[0].State != schema.Running {
		t.Errorf("got %+v", s)
	}
}

func TestRepeatedBindIsIdempotent(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	r := lead.reserve(ask("op", lead.task("s"))).ok()
	lead.bind(r, "s").ok()
	lead.bind(r, "s").unchanged()
	l.worker("s").bind(r, "s").unchanged()
	l.reopen()
	lead.bind(r, "s").unchanged()
}

func TestBindDemandsTheExactCurrentOwner(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	r := lead.reserve(ask("op", lead.task("s"))).ok()
	for _, session := range []string{"s-2", " s", "s ", "root"} {
		lead.bind(r, session).conflict(schema.ReasonSession)
		l.worker("s").bind(r, session).conflict(schema.ReasonSession)
	}
}

func TestUnknownIsNotBound(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	never := lead.reserve(ask("never bound", lead.task("s"))).ok()
	lead.markUnknown(never).ok()
	once := lead.reserve(ask("once bound", lead.task("s"))).ok()
	lead.bind(once, "s").ok()
	lead.markUnknown(once).ok()
	for _, r := range []*schema.Reservation{never, once} {
		if refusal := lead.bind(r, "s").conflict(schema.ReasonState); refusal.Details.State != schema.Unknown {
			t.Errorf("the refusal names the state %q", refusal.Details.State)
		}
	}
}

func TestSettledIsNotBound(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	r := lead.reserve(ask("op", lead.task("s"))).ok()
	lead.settle(r, neverStarted).ok()
	if refusal := lead.bind(r, "s").conflict(schema.ReasonState); refusal.Details.State != schema.Settled {
		t.Errorf("the refusal names the state %q", refusal.Details.State)
	}
}

// TestAdmissionFence: the expected generation is the task's current one.
func TestAdmissionFence(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	lead.reserve(ask("op-1", task).after(1)).fenced(schema.FenceAdmission, 1, 0)
	lead.settle(lead.reserve(ask("op-1", task)).ok(), neverStarted).ok()
	lead.reserve(ask("op-2", task)).fenced(schema.FenceAdmission, 0, 1)
	lead.reserve(ask("op-2", task).after(2)).fenced(schema.FenceAdmission, 2, 1)
	lead.reserve(ask("op-2", task).after(1)).ok()
}

// TestAdmissionGenerationIsIndependentOfTheRework: rejections do not move it.
func TestAdmissionGenerationIsIndependentOfTheRework(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	lead.rework(task, "s")
	lead.rework(task, "s")
	if r := lead.reserve(ask("op", task)).ok(); r.Generation != 1 {
		t.Errorf("got generation %d, want 1", r.Generation)
	}
}

// TestReservationFence: every transition carries the row's own generation; 0 never is one.
func TestReservationFence(t *testing.T) {
	t.Parallel()
	for name, transition := range transitions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			lead := l.lead()
			r := lead.reserve(ask("op", lead.task("s-1"))).ok()
			for _, wrong := range []int64{0, 2, schema.MaxInteger} {
				stale := *r
				stale.Generation = wrong
				transition(lead, &stale).fenced(schema.FenceReservation, wrong, 1)
			}
			transition(lead, r).ok()
		})
	}
}

// TestTransitionsRequireTheLatestAdmission: an old reservation, which can only
// be settled by then, moves no more.
func TestTransitionsRequireTheLatestAdmission(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	old := lead.reserve(ask("op-1", task)).ok()
	lead.settle(old, neverStarted).ok()
	lead.reserve(ask("op-2", task).after(1)).ok()
	lead.bind(old, "s").fenced(schema.FenceAdmission, 1, 2)
	lead.markUnknown(old).fenced(schema.FenceAdmission, 1, 2)
	lead.settle(old, neverStarted).unchanged()
	lead.settle(old, succeeded).conflict(schema.ReasonProof)
}

// TestReworkFence: what was admitted before a rejection is not dispatched after it.
func TestReworkFence(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	r := lead.reserve(ask("op-1", task).writing("repo")).ok()
	lead.rework(task, "s")
	lead.bind(r, "s").fenced(schema.FenceRework, 0, 1)
	lead.bind(r, "s-2").fenced(schema.FenceRework, 0, 1) // before the session is looked at
	if s := lead.snapshot(); len(s.Holds) != 1 || s.ActiveTotal != 1 {
		t.Error("the fence released something")
	}
	lead.settle(r, neverStarted).ok()
	fresh := lead.reserve(ask("op-2", task).after(1).writing("repo")).ok()
	if got := lead.charged(task); got != 1 {
		t.Errorf("the new admission was charged %d, want 1", got)
	}
	lead.bind(fresh, "s").ok()
}

func TestReworkFenceHoldsForRunningWork(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	r := lead.reserve(ask("op-1", task)).ok()
	lead.bind(r, "s").ok()
	lead.rework(task, "s")
	lead.bind(r, "s").fenced(schema.FenceRework, 0, 1)
	lead.markUnknown(r).ok()
	lead.settle(r, succeeded).ok()
}

func TestReopeningATerminalTaskIsReworkToo(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	r := lead.reserve(ask("op-1", task)).ok()
	lead.accept(task)
	call(l, store.Reject, input(lead, schema.RejectInput{TaskID: task, Reason: "reopened"})).ok()
	lead.bind(r, "s").fenced(schema.FenceRework, 0, 1)
}

func TestTerminalTasksAdmitAndDispatchNothing(t *testing.T) {
	t.Parallel()
	for _, status := range []schema.TaskStatus{schema.TaskAccepted, schema.TaskCancelled, schema.TaskDone, schema.TaskPartial, schema.TaskFailed} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			lead := l.lead()
			r := lead.reserve(ask("op", lead.task("s"))).ok()
			fresh := lead.task("s")
			l.exec("UPDATE task SET status = '" + string(status) + "'")
			if refusal := lead.reserve(ask("fresh", fresh)).conflict(schema.ReasonTerminalTask); refusal.Details.Status != status {
				t.Errorf("the refusal names the status %q", refusal.Details.Status)
			}
			lead.bind(r, "s").conflict(schema.ReasonTerminalTask)
			lead.markUnknown(r).ok()
			lead.settle(r, neverStarted).ok()
		})
	}
}

// TestOtherStatusesAdmitAndDispatch: a submitted or rejected task still takes work.
func TestOtherStatusesAdmitAndDispatch(t *testing.T) {
	t.Parallel()
	for _, status := range []schema.TaskStatus{schema.TaskOpen, schema.TaskClaimed, schema.TaskSubmitted, schema.TaskRejected} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			lead := l.lead()
			task := lead.task("s")
			l.exec("UPDATE task SET status = '" + string(status) + "'")
			lead.bind(lead.reserve(ask("op", task)).ok(), "s").ok()
		})
	}
}

// TestTerminalTaskIsNamedBeforeTheRework: a task can be terminal and reworked at once.
func TestTerminalTaskIsNamedBeforeTheRework(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	r := lead.reserve(ask("op", task)).ok()
	lead.rework(task, "s")
	lead.cancel(task)
	lead.bind(r, "s").conflict(schema.ReasonTerminalTask)
}

func TestManagedTasksAdmitAndDispatchNothing(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	r := lead.reserve(ask("op", lead.task("s"))).ok()
	fresh := lead.task("s")
	lead.manage(r.TaskID)
	lead.manage(fresh)
	lead.reserve(ask("fresh", fresh)).conflict(schema.ReasonWorkflow)
	lead.bind(r, "s").conflict(schema.ReasonWorkflow)
	lead.markUnknown(r).ok()
	lead.settle(r, neverStarted).ok()
	l.exec("DELETE FROM workflow")
	lead.reserve(ask("fresh", fresh)).ok()
}
