package governor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// Calls composed in one transaction, and calls of several sidecars at once.

// compose opens and claims a task, and reserves and binds its execution, all in one transaction.
func compose(tx store.Tx, c caller, key string, last func(*schema.Reservation) error) error {
	task, err := store.Open(tx, new(input(c, schema.OpenInput{Title: "t"})))
	if err != nil {
		return err
	}
	if _, err := store.Claim(tx, new(input(c, schema.ClaimInput{TaskID: task.TaskID, Owner: "o", OwnerSession: "s"}))); err != nil {
		return err
	}
	r, err := governor.Reserve(tx, new(input(c, ask(key, task.TaskID).as(schema.New).writing("repo").ReserveInput)))
	if err != nil {
		return err
	}
	bound, err := governor.Bind(tx, new(input(c, schema.BindInput{ReservationID: r.ReservationID, Generation: r.Generation, SessionID: "s"})))
	if err != nil {
		return err
	}
	return last(bound)
}

func TestComposedCallsTakeEffectTogether(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	err := l.Write(t.Context(), func(tx store.Tx) error {
		return compose(tx, lead, "op", func(r *schema.Reservation) error {
			if r.State != schema.Running {
				return fmt.Errorf("the reservation is %s", r.State)
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := lead.snapshot(); s.ActiveTotal != 1 || s.CreatedTotal != 1 || len(s.Holds) != 1 || len(s.Audit) != 2 {
		t.Errorf("got %+v", s)
	}
}

// TestRefusalUndoesTheWholeTransaction: the outermost one decides.
func TestRefusalUndoesTheWholeTransaction(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	before := l.content()
	err := l.Write(t.Context(), func(tx store.Tx) error {
		return compose(tx, lead, "op", func(r *schema.Reservation) error {
			_, err := governor.Settle(tx, new(input(lead, schema.SettleInput{ReservationID: r.ReservationID, Generation: 1, Proof: neverStarted})))
			return err
		})
	})
	var refusal *schema.Error
	if !errors.As(err, &refusal) || refusal.Details.Reason != schema.ReasonProof {
		t.Errorf("got %v", err)
	}
	if after := l.content(); after != before {
		t.Errorf("the store changed to\n%s", after)
	}
	lead.reserve(ask("op", lead.task("s")).as(schema.New).writing("repo")).ok()
}

// TestRefusalHasChangedNothing: a caller may go on in the same transaction.
func TestRefusalHasChangedNothing(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	holder, free := lead.task("s"), lead.task("s")
	lead.reserve(ask("holder", holder).writing("repo")).ok()
	err := l.Write(t.Context(), func(tx store.Tx) error {
		if _, err := governor.Reserve(tx, new(input(lead, ask("op", free).writing("repo").ReserveInput))); err == nil {
			t.Error("two writers hold the repo")
		}
		_, err := governor.Reserve(tx, new(input(lead, ask("op", free).writing("other").ReserveInput)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := lead.snapshot(); s.ActiveTotal != 2 || len(s.Audit) != 2 {
		t.Errorf("got %+v", s)
	}
}

// atOnce runs n calls at once, by turns on two sidecars, and returns what they answered.
func atOnce(l *ledger, n int, ask func(i int) schema.ReserveParams) (results []*schema.Reservation, refusals []error) {
	l.t.Helper()
	sidecars := []*ledger{l, openLedger(l.t, l.root)}
	results, refusals = make([]*schema.Reservation, n), make([]error, n)
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			p := ask(i)
			refusals[i] = sidecars[i%2].Write(context.Background(), func(tx store.Tx) (err error) {
				results[i], err = governor.Reserve(tx, &p)
				return err
			})
		})
	}
	close(start)
	group.Wait()
	return results, refusals
}

func admitted(refusals []error) (n int) {
	for _, err := range refusals {
		if err == nil {
			n++
		}
	}
	return n
}

func TestAdmissionsAtOnceNeverExceedALimit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		ask  func(asking) asking
		want int
	}{
		"active":   {func(a asking) asking { return a }, 6},
		"writers":  {func(a asking) asking { return a.writing() }, 2},
		"created":  {func(a asking) asking { return a.as(schema.New) }, 3},
		"one lock": {func(a asking) asking { return a.writing("repo") }, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			lead := l.lead()
			var tasks []int64
			for range 12 {
				tasks = append(tasks, lead.task("s"))
			}
			_, refusals := atOnce(l, len(tasks), func(i int) schema.ReserveParams {
				return input(lead, test.ask(ask(fmt.Sprint("op-", i), tasks[i])).ReserveInput)
			})
			if got := admitted(refusals); got != test.want {
				t.Errorf("%d were admitted, want %d: %v", got, test.want, refusals)
			}
			if s := lead.snapshot(); len(s.Reservations) != test.want || len(s.Audit) != test.want {
				t.Errorf("%d reservations, %d audit entries", len(s.Reservations), len(s.Audit))
			}
		})
	}
}

// TestOneKeyAtOnceIsOneAdmission.
func TestOneKeyAtOnceIsOneAdmission(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	a := ask("op", lead.task("s")).as(schema.New).writing("repo")
	results, refusals := atOnce(l, 12, func(int) schema.ReserveParams { return input(lead, a.ReserveInput) })
	for i, err := range refusals {
		if err != nil || results[i].ReservationID != results[0].ReservationID {
			t.Errorf("call %d: %+v, %v", i, results[i], err)
		}
	}
	if s := lead.snapshot(); len(s.Reservations) != 1 || len(s.Audit) != 1 || s.CreatedTotal != 1 {
		t.Errorf("got %+v", s)
	}
}

// TestOneTaskAtOnceIsOneAdmission: the expected generation fences all others.
func TestOneTaskAtOnceIsOneAdmission(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	_, refusals := atOnce(l, 12, func(i int) schema.ReserveParams { return input(lead, ask(fmt.Sprint("op-", i), task).ReserveInput) })
	if got := admitted(refusals); got != 1 {
		t.Errorf("%d were admitted", got)
	}
	for _, err := range refusals {
		var refusal *schema.Error
		if err != nil && (!errors.As(err, &refusal) || refusal.Code != schema.ErrGovernorFence) {
			t.Errorf("got %v", err)
		}
	}
}

// TestBusyStoreFailsTheAdmission: E_STORE_BUSY is the store's own, and nothing is queued.
func TestBusyStoreFailsTheAdmission(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	a := ask("op", lead.task("s"))
	impatient, err := sqlite.Open(t.Context(), l.root, sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer impatient.Close()
	reserve := func() error {
		return impatient.Write(t.Context(), func(tx store.Tx) error {
			_, err := governor.Reserve(tx, new(input(lead, a.ReserveInput)))
			return err
		})
	}
	l.exec("BEGIN IMMEDIATE")
	busy := reserve()
	l.exec("ROLLBACK")
	var refusal *schema.Error
	if !errors.As(busy, &refusal) || refusal.Code != schema.ErrStoreBusy {
		t.Fatalf("got %v", busy)
	}
	if s := lead.snapshot(); s.ActiveTotal != 0 {
		t.Error("the refused admission took effect")
	}
	if err := reserve(); err != nil {
		t.Error(err)
	}
}

func TestClosedStoreStaysClosed(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	a := ask("op", lead.task("s"))
	l.Close()
	lead.reserve(a).refused(schema.ErrStoreClosed)
	err := governor.Prepare(t.Context(), l.Store)
	var refusal *schema.Error
	if !errors.As(err, &refusal) || refusal.Code != schema.ErrStoreClosed {
		t.Errorf("got %v", err)
	}
}
