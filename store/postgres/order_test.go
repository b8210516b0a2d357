package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/postgres"
	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
)

// later submits a call of a run and returns where its outcome will be.
func later[P, R any](s store.Store, run string, scope store.Scope, method func(store.Tx, *P) (*R, error), p P) chan error {
	scope.Runs = []string{run}
	outcome := make(chan error, 1)
	s.Submit(store.WithScope(context.Background(), scope), func(tx store.Tx) error {
		_, err := method(tx, &p)
		return err
	}, func(err error) { outcome <- err })
	return outcome
}

// Calls of two runs that can see each other by a resource take effect in the
// order of their submission, though runs go on side by side. The host knows the
// reservation from its own admission, or not at all.
func TestOrderAcrossRuns(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.URL(server.Schema())
	s := open(t, url, postgres.Options{})
	tasks := map[string]int64{}
	for _, name := range []string{"a", "b"} {
		task, err := addTask(s, name)
		if err != nil {
			t.Fatal(err)
		}
		tasks[name] = task.TaskID
	}
	asking := func(run string, n int64) (store.Scope, schema.ReserveParams) {
		return store.Scope{Resources: []string{"key"}}, schema.ReserveParams{RunID: run, Authority: lead, Input: schema.ReserveInput{
			OperationKey: fmt.Sprint(n), TaskID: tasks[run], Generation: n, Mode: schema.Write, Kind: schema.Reuse, Resources: []string{"key"}}}
	}
	settling := func(r *schema.Reservation) (store.Scope, schema.SettleParams) {
		return store.Scope{Reservations: []string{r.ReservationID}}, schema.SettleParams{RunID: r.RunID, Authority: lead, Input: schema.SettleInput{
			ReservationID: r.ReservationID, Generation: r.Generation, Proof: schema.Proof{Kind: schema.NeverStarted}}}
	}
	for n := range int64(30) {
		if n == 15 {
			s = open(t, url, postgres.Options{}) // it has not made the admissions that it settles
		}
		holder, err := reserve(s, "a", tasks["a"], n, schema.Reuse, "key")
		if err != nil {
			t.Fatal(err)
		}
		other := open(t, url, postgres.Options{})
		if n < 15 {
			other = s
		}
		scope, ask := asking("b", n)
		busy := later(other, "b", scope, governor.Reserve, ask)
		settleScope, settle := settling(holder)
		free := later(other, "a", settleScope, governor.Settle, settle)
		taken := later(other, "b", scope, governor.Reserve, ask)
		failed(t, <-busy, schema.ErrResourceBusy)
		for _, outcome := range []chan error{free, taken} {
			if err := <-outcome; err != nil {
				t.Fatal(err)
			}
		}
		last := snapshot(t, s, "b").Reservations
		releaseScope, release := settling(&last[len(last)-1])
		if err := <-later(s, "b", releaseScope, governor.Settle, release); err != nil {
			t.Fatal(err)
		}
	}
	sound(t, s)
}

// A call that takes long keeps only those waiting that can see it.
func TestRunsGoOnSideBySide(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	s := open(t, server.URL(server.Schema()), postgres.Options{})
	begun, end := make(chan struct{}), make(chan struct{})
	slow := make(chan error, 1)
	s.Submit(store.WithScope(context.Background(), store.Scope{Runs: []string{"slow"}}), func(store.Tx) error {
		close(begun)
		<-end
		return nil
	}, func(err error) { slow <- err })
	<-begun
	same := later(s, "slow", store.Scope{}, store.Open, schema.OpenParams{RunID: "slow", Authority: lead, Input: schema.OpenInput{Title: "t"}})
	if _, err := addTask(s, "other"); err != nil {
		t.Fatal(err)
	}
	everything := make(chan error, 1)
	s.Submit(context.Background(), func(tx store.Tx) error {
		for _, run := range []string{"slow", "other"} {
			if tasks, err := tx.Tasks(run, "", store.Page{}); err != nil || len(tasks) != 1 {
				t.Errorf("%s has %d tasks (%v)", run, len(tasks), err)
			}
		}
		return nil
	}, func(err error) { everything <- err })
	close(end)
	for _, outcome := range []chan error{slow, same, everything} {
		if err := <-outcome; err != nil {
			t.Error(err)
		}
	}
}

// A write that changes another run than it said is refused: that run's lock is not held.
func TestWriteKeepsToItsScope(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	s := open(t, server.URL(server.Schema()), postgres.Options{})
	outcome := later(s, "run", store.Scope{}, store.Open, schema.OpenParams{RunID: "other", Authority: lead, Input: schema.OpenInput{Title: "t"}})
	failed(t, <-outcome, schema.ErrInternal)
}
