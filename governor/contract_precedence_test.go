package governor_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// DESIGN.md, section 5, "Precedence of the governor's checks".

// obstacles names what check foresees, in its order.
func obstacles(result *schema.CheckResult) (names []string) {
	for _, o := range result.Obstacles {
		name := string(o.Reason)
		switch {
		case o.Fence != nil:
			name = string(o.Fence.Fence)
		case o.Budget != nil:
			name = string(o.Budget.Limit)
		case o.Holders != nil:
			name = "busy"
		}
		names = append(names, name)
	}
	return names
}

// TestReserveChecksInOrder puts everything in the way at once, and clears it
// away one by one: reserve always refuses for the first of what is left.
func TestReserveChecksInOrder(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	active := lead.reserve(ask("active", task).as(schema.Retry).writing("repo")).ok()
	for _, key := range []string{"1", "2", "3"} {
		lead.settle(lead.reserve(ask(key, lead.task("s")).as(schema.New)).ok(), neverStarted).ok()
	}
	writer := lead.reserve(ask("writer", lead.task("s")).writing("branch")).ok()
	for i := range 4 {
		lead.reserve(ask(fmt.Sprint("reader ", i), lead.task("s"))).ok()
	}
	lead.rework(task, "s")
	lead.rework(task, "s")
	lead.accept(task)

	a := ask("op", task).as(schema.New).writing("repo", "branch")
	remaining := []string{"admission", "terminal_task", "active_admission", "max_active", "max_writers", "max_created", "max_retries", "busy"}
	expect := func(refuse func(outcome[schema.Reservation])) {
		t.Helper()
		if got := obstacles(lead.check(a).unchanged()); !slices.Equal(got, remaining) {
			t.Fatalf("check foresees %v, want %v", got, remaining)
		}
		refuse(lead.reserve(a))
	}
	type reserved = outcome[schema.Reservation]

	expect(func(o reserved) { o.fenced(schema.FenceAdmission, 0, 1) })
	a, remaining = a.after(1), remaining[1:]
	expect(func(o reserved) { o.conflict(schema.ReasonTerminalTask) })
	l.exec(fmt.Sprintf("UPDATE task SET status = 'claimed' WHERE id = %d", task))
	remaining = remaining[1:]
	expect(func(o reserved) { o.conflict(schema.ReasonActiveAdmission) })
	lead.settle(active, neverStarted).ok()
	lead.reserve(ask("writer 2", lead.task("s")).writing("repo")).ok() // takes over slot and hold
	remaining = remaining[1:]
	expect(func(o reserved) { o.exhausted(schema.LimitActive, 6, 6, 1) })
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "r", MaxActive: new(int64(7))}).ok()
	remaining = remaining[1:]
	expect(func(o reserved) { o.exhausted(schema.LimitWriters, 2, 2, 1) })
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "r", MaxWriters: new(int64(3))}).ok()
	remaining = remaining[1:]
	expect(func(o reserved) { o.exhausted(schema.LimitCreated, 3, 3, 1) })
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "r", MaxCreated: new(int64(4))}).ok()
	remaining = remaining[1:]
	expect(func(o reserved) { o.exhausted(schema.LimitRetries, 2, 1, 2) })
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "r", MaxRetries: new(int64(3))}).ok()
	remaining = remaining[1:]
	expect(func(o reserved) { o.refused(schema.ErrResourceBusy) })
	lead.settle(writer, neverStarted).ok()
	a = a.writing("branch")
	remaining = nil
	if result := lead.check(a).unchanged(); !result.Admissible {
		t.Fatalf("check still foresees %v", obstacles(result))
	}
	lead.reserve(a).ok()
}

// TestScopeComesBeforeOwnerComesBeforeReplay: what a stranger learns.
func TestScopeComesBeforeOwnerComesBeforeReplay(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	a := ask("op", lead.task("s-1"))
	lead.reserve(a).ok()
	l.worker("s-2").in("run-2").reserve(a).conflict(schema.ReasonCrossRun)
	l.worker("s-2").reserve(a.writing("other")).conflict(schema.ReasonOwner)
	lead.reject(a.TaskID)
	lead.claim(a.TaskID, "s-2")
	l.worker("s-2").reserve(a.writing("other")).conflict(schema.ReasonCapturedOwner)
	lead.reserve(a.writing("other")).conflict(schema.ReasonOperationKey)
	lead.cancel(a.TaskID)
	lead.reserve(a.writing("other")).conflict(schema.ReasonOperationKey)
}

// TestTransitionsCheckInOrder puts everything in the way of a bind.
func TestTransitionsCheckInOrder(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s-1")
	old := lead.reserve(ask("op-1", task)).ok()
	lead.settle(old, succeeded).ok()
	lead.reserve(ask("op-2", task).after(1)).ok()
	lead.reject(task)
	lead.claim(task, "s-2")
	lead.cancel(task)
	wrong := *old
	wrong.Generation = 9

	l.worker("s-1").in("run-2").bind(&wrong, "s-3").conflict(schema.ReasonCrossRun)
	l.worker("s-1").bind(&wrong, "s-3").conflict(schema.ReasonOwner)
	l.worker("s-2").bind(&wrong, "s-3").conflict(schema.ReasonCapturedOwner)
	lead.bind(&wrong, "s-3").fenced(schema.FenceReservation, 9, 1)
	lead.bind(old, "s-3").fenced(schema.FenceAdmission, 1, 2)
	lead.markUnknown(&wrong).fenced(schema.FenceReservation, 9, 1)
	lead.markUnknown(old).fenced(schema.FenceAdmission, 1, 2)
	lead.settle(&wrong, neverStarted).fenced(schema.FenceReservation, 9, 1)
	lead.settle(old, neverStarted).conflict(schema.ReasonProof)
}

// TestBindChecksInOrder: terminal task, rework, session, state.
func TestBindChecksInOrder(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	r := lead.reserve(ask("op-1", task)).ok()
	lead.markUnknown(r).ok()
	lead.rework(task, "s")
	lead.accept(task)

	lead.bind(r, "s-2").conflict(schema.ReasonTerminalTask)
	l.exec("UPDATE task SET status = 'claimed'")
	lead.manage(task)
	lead.bind(r, "s-2").conflict(schema.ReasonWorkflow)
	l.exec("DELETE FROM workflow")
	lead.bind(r, "s-2").fenced(schema.FenceRework, 0, 1)
	l.exec("UPDATE task SET evidence_generation = 0")
	lead.bind(r, "s-2").conflict(schema.ReasonSession)
	lead.bind(r, "s").conflict(schema.ReasonState)
}
