package governor_test

import (
	"fmt"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// GOVERNOR.md, "Scope and guarantees": the limits of a root run.

func TestDefaultLimits(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	want := schema.Limits{MaxActive: 6, MaxWriters: 2, MaxCreated: 3, MaxRetries: 2}
	if got := l.lead().snapshot().Limits; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestActiveTotalIncludesWritersAndEveryKind(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	kinds := []schema.Kind{schema.New, schema.Reuse, schema.Retry}
	for i := range 6 {
		a := ask(fmt.Sprint("op-", i), lead.task("s")).as(kinds[i%3])
		if i < 2 {
			a = a.writing()
		}
		lead.reserve(a).ok()
	}
	refused := lead.reserve(ask("op-7", lead.task("s"))).exhausted(schema.LimitActive, 6, 6, 1)
	if len(refused.Users) != 6 {
		t.Errorf("the refusal names %d users of the slots, want 6", len(refused.Users))
	}
}

func TestActiveTotalCountsEveryCallerOfTheRun(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "a small run", MaxActive: new(int64(7))}).ok()
	for i := range 7 {
		session := fmt.Sprint("nested-", i)
		l.worker(session).reserve(ask(session, lead.task(session))).ok()
	}
	l.worker("nested-8").reserve(ask("op-8", lead.task("nested-8"))).exhausted(schema.LimitActive, 7, 7, 1)
}

func TestActiveLimitIsOfOneRootRun(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	for i := range 6 {
		lead.reserve(ask(fmt.Sprint("op-", i), lead.task("s"))).ok()
	}
	other := lead.in("run-2")
	other.reserve(ask("op-0", other.task("s"))).ok()
}

func TestActiveWritersAreASubset(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	reader := lead.reserve(ask("reader", lead.task("s"))).ok()
	first := lead.reserve(ask("writer-1", lead.task("s")).writing()).ok()
	second := lead.reserve(ask("writer-2", lead.task("s")).writing()).ok()

	refused := lead.reserve(ask("writer-3", lead.task("s")).writing()).exhausted(schema.LimitWriters, 2, 2, 1)
	for i, want := range []*schema.Reservation{first, second} {
		if refused.Users[i].ReservationID != want.ReservationID {
			t.Errorf("user %d is %s, want %s", i, refused.Users[i].ReservationID, want.ReservationID)
		}
	}
	if len(refused.Users) != 2 {
		t.Errorf("the reader %s is named too", reader.ReservationID)
	}
	lead.reserve(ask("reader-2", lead.task("s"))).ok()
	if s := lead.snapshot(); s.ActiveTotal != 4 || s.ActiveWriters != 2 {
		t.Errorf("got %d active, %d writers", s.ActiveTotal, s.ActiveWriters)
	}
}

func TestOnlyNewCountsAsCreated(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	for i := range 3 {
		lead.reserve(ask(fmt.Sprint("new-", i), lead.task("s")).as(schema.New)).ok()
	}
	refused := lead.reserve(ask("new-4", lead.task("s")).as(schema.New)).exhausted(schema.LimitCreated, 3, 3, 1)
	if refused.Users != nil {
		t.Errorf("a cumulative limit has no present users, got %v", refused.Users)
	}
	lead.reserve(ask("reuse", lead.task("s")).as(schema.Reuse)).ok()
	lead.reserve(ask("retry", lead.task("s")).as(schema.Retry)).ok()
	if s := lead.snapshot(); s.CreatedTotal != 3 {
		t.Errorf("created %d, want 3", s.CreatedTotal)
	}
}

func TestCreatedIsNeverRefunded(t *testing.T) {
	t.Parallel()
	proofs := map[string]schema.Proof{"never started": neverStarted, "terminal": succeeded}
	for name, proof := range proofs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			lead := l.lead()
			for i := range 3 {
				r := lead.reserve(ask(fmt.Sprint("op-", i), lead.task("s")).as(schema.New)).ok()
				lead.settle(r, proof).ok()
			}
			l.reopen()
			lead.reserve(ask("op-4", lead.task("s")).as(schema.New)).exhausted(schema.LimitCreated, 3, 3, 1)
			if s := lead.snapshot(); s.ActiveTotal != 0 || s.CreatedTotal != 3 {
				t.Errorf("got %d active, %d created", s.ActiveTotal, s.CreatedTotal)
			}
		})
	}
}

func TestReservedRunningAndUnknownOccupySlotsAndHolds(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	admitted := func(key string) *schema.Reservation {
		return lead.reserve(ask(key, lead.task("s")).reading("repo", key)).ok()
	}
	reserved, running, unknown := admitted("reserved"), admitted("running"), admitted("unknown")
	lead.bind(running, "s").ok()
	lead.markUnknown(unknown).ok()

	s := lead.snapshot()
	if s.ActiveTotal != 3 || s.UnknownTotal != 1 || len(s.Holds) != 6 {
		t.Errorf("got %d active, %d unknown, %d holds", s.ActiveTotal, s.UnknownTotal, len(s.Holds))
	}
	for _, key := range []string{"reserved", "running", "unknown"} {
		lead.reserve(ask("writer", lead.task("s")).writing(key)).refused(schema.ErrResourceBusy)
	}
	for _, r := range []*schema.Reservation{reserved, running, unknown} {
		lead.settle(r, succeeded).ok()
	}
	if s := lead.snapshot(); s.ActiveTotal != 0 || s.UnknownTotal != 0 || len(s.Holds) != 0 {
		t.Errorf("settled work still occupies: %+v", s)
	}
	lead.reserve(ask("writer", lead.task("s")).writing("reserved", "running", "unknown")).ok()
}

func TestNothingExpires(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	lead.reserve(ask("op-1", lead.task("s")).writing("repo")).ok()
	l.exec("UPDATE governor_audit SET created_at = '1999-12-31T23:59:59.999Z'",
		"UPDATE task SET created_at = '1999-12-31T23:59:59.999Z', updated_at = '1999-12-31T23:59:59.999Z'")
	l.reopen()
	refused := lead.reserve(ask("op-2", lead.task("s")).writing("repo")).refused(schema.ErrResourceBusy)
	if since := refused.Details.Holders[0].Execution.Since; since == nil || *since != "1999-12-31T23:59:59.999Z" {
		t.Errorf("held since %v", since)
	}
}

func TestOneActiveAdmissionPerTask(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	first := lead.reserve(ask("op-1", task).writing("repo")).ok()

	refused := lead.reserve(ask("op-2", task).after(1)).conflict(schema.ReasonActiveAdmission)
	if e := refused.Details.Execution; e == nil || e.ReservationID != first.ReservationID {
		t.Errorf("the refusal names %+v, want %s", e, first.ReservationID)
	}
	lead.markUnknown(first).ok()
	lead.reserve(ask("op-2", task).after(1)).conflict(schema.ReasonActiveAdmission)
	lead.settle(first, neverStarted).ok()
	second := lead.reserve(ask("op-2", task).after(1)).ok()
	if second.Generation != 2 {
		t.Errorf("the second admission has generation %d, want 2", second.Generation)
	}
}

func TestEmptyResourcesDoNotExemptFromLimits(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	for i := range 2 {
		lead.reserve(ask(fmt.Sprint("op-", i), lead.task("s")).writing()).ok()
	}
	lead.reserve(ask("op-3", lead.task("s")).writing()).exhausted(schema.LimitWriters, 2, 2, 1)
	if s := lead.snapshot(); len(s.Holds) != 0 {
		t.Errorf("holds without resources: %v", s.Holds)
	}
}

func TestRollbackRestoresTheEntireMutation(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	// The audit entry is written last; without its table nothing of the admission may stay.
	l.exec("CREATE TRIGGER fail BEFORE INSERT ON governor_audit BEGIN SELECT RAISE(ABORT, 'no audit'); END")
	lead.reserve(ask("op-1", task).as(schema.New).writing("repo")).refused(schema.ErrStoreCorrupt)
	l.exec("DROP TRIGGER fail")
	lead.reserve(ask("op-1", task).as(schema.New).writing("repo")).ok()
}
