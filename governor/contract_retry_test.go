package governor_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// GOVERNOR.md, "Scope and guarantees": what a task is charged for its retries.

// charged is the sum of the task's retry charges.
func (c caller) charged(task int64) int64 {
	c.t.Helper()
	return c.snapshot().Retries[strconv.FormatInt(task, 10)]
}

// TestChargeIsTheLargerOfExplicitRetryAndObservedRework: the two overlap rather than add.
func TestChargeIsTheLargerOfExplicitRetryAndObservedRework(t *testing.T) {
	t.Parallel()
	for _, kind := range []schema.Kind{schema.New, schema.Reuse, schema.Retry} {
		for rejections := range int64(3) {
			want := rejections
			if kind == schema.Retry && want == 0 {
				want = 1
			}
			t.Run(fmt.Sprintf("%s after %d rejections", kind, rejections), func(t *testing.T) {
				t.Parallel()
				l := newLedger(t)
				lead := l.lead()
				task := lead.task("s")
				for range rejections {
					lead.rework(task, "s")
				}
				lead.reserve(ask("op", task).as(kind)).ok()
				if got := lead.charged(task); got != want {
					t.Errorf("charged %d, want %d", got, want)
				}
				charge := lead.snapshot().RetryCharges[0]
				if charge.ReworkGeneration != rejections || charge.RetryCharge != want || charge.Source != schema.FromAdmission {
					t.Errorf("recorded %+v", charge)
				}
			})
		}
	}
}

func TestRejectionHistoryBeforeTheFirstAdmissionIsCharged(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	for range 3 {
		lead.rework(task, "s")
	}
	lead.reserve(ask("op", task).as(schema.New)).exhausted(schema.LimitRetries, 2, 0, 3)
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "worth it", MaxRetries: new(int64(3))}).ok()
	lead.reserve(ask("op", task).as(schema.New)).ok()
	if got := lead.charged(task); got != 3 {
		t.Errorf("charged %d, want 3", got)
	}
}

func TestOnlyReworkSinceTheLastAdmissionIsCharged(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	lead.rework(task, "s")
	lead.settle(lead.reserve(ask("op-1", task)).ok(), neverStarted).ok()
	lead.rework(task, "s")
	lead.settle(lead.reserve(ask("op-2", task).after(1)).ok(), neverStarted).ok()
	if got := lead.charged(task); got != 2 {
		t.Errorf("charged %d, want 2", got)
	}
	lead.rework(task, "s")
	lead.reserve(ask("op-3", task).after(2)).exhausted(schema.LimitRetries, 2, 2, 1)
}

func TestSameGenerationReuseIsNotChargedAgain(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	lead.rework(task, "s")
	for i := range int64(4) {
		r := lead.reserve(ask(fmt.Sprint("op-", i), task).after(i)).ok()
		lead.settle(r, neverStarted).ok()
	}
	if got := lead.charged(task); got != 1 {
		t.Errorf("charged %d, want 1", got)
	}
}

func TestExplicitRetryIsChargedWithoutRejection(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	for i := range int64(2) {
		r := lead.reserve(ask(fmt.Sprint("op-", i), task).after(i).as(schema.Retry)).ok()
		lead.settle(r, neverStarted).ok()
	}
	lead.reserve(ask("op-3", task).after(2).as(schema.Retry)).exhausted(schema.LimitRetries, 2, 2, 1)
}

func TestRetryLimitIsOfOneTask(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	for range 3 {
		task := lead.task("s")
		lead.rework(task, "s")
		lead.rework(task, "s")
		lead.settle(lead.reserve(ask(fmt.Sprint("op-", task), task)).ok(), neverStarted).ok()
	}
}

// TestRetriesAreNeverRefundedOrReset: not by settlement, nor by a milestone of the task, nor by reopening.
func TestRetriesAreNeverRefundedOrReset(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	for i := range int64(2) {
		r := lead.reserve(ask(fmt.Sprint("op-", i), task).after(i).as(schema.Retry)).ok()
		lead.settle(r, neverStarted).ok()
	}
	lead.accept(task)
	call(l, store.Reject, input(lead, schema.RejectInput{TaskID: task, Reason: "reopened"})).ok()
	lead.claim(task, "s")
	l.reopen()
	lead.reserve(ask("op-3", task).after(2).as(schema.New)).exhausted(schema.LimitRetries, 2, 2, 1)
}

func TestReclaimPreservesTheReworkGeneration(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s-1")
	lead.rework(task, "s-1")
	lead.reject(task)
	lead.claim(task, "s-2") // reassigned
	lead.reserve(ask("op", task)).ok()
	if got := lead.charged(task); got != 2 {
		t.Errorf("charged %d, want 2", got)
	}
}

func TestReplayNeverAddsCharges(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	lead.reserve(ask("op", task).as(schema.Retry)).ok()
	lead.rework(task, "s")
	lead.reserve(ask("op", task).as(schema.Retry)).unchanged()
	if got := lead.charged(task); got != 1 {
		t.Errorf("charged %d, want 1", got)
	}
}

// TestRetryLimitRefusesEvenAFreeAdmissionOverIt: a task that migration put over
// its limit is refused whatever the admission itself would cost.
func TestRetryLimitRefusesEvenAFreeAdmissionOverIt(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	r := lead.reserve(ask("op-1", task).as(schema.Retry)).ok()
	lead.settle(r, neverStarted).ok()
	l.exec("UPDATE governor_retry_charge SET retry_charge = 3")
	l.reopen() // charges are append-only, so a running sidecar need not look again
	lead.reserve(ask("op-2", task).after(1)).exhausted(schema.LimitRetries, 2, 3, 0)
	lead.reserve(ask("op-1", task).as(schema.Retry)).unchanged()
	l.exec("UPDATE governor_retry_charge SET retry_charge = 2")
	l.reopen()
	lead.reserve(ask("op-2", task).after(1)).ok()
}
