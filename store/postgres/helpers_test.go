package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/postgres"
)

// open opens a store and closes it after the test.
func open(t testing.TB, url string, options postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), url, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// refuses checks that a store cannot be opened, why, and that no secret is told.
func refuses(t *testing.T, url string, options postgres.Options, code schema.Code) {
	t.Helper()
	s, err := postgres.Open(context.Background(), url, options)
	if err == nil {
		s.Close()
	}
	failed(t, err, code)
	if strings.Contains(err.Error(), "secret") {
		t.Errorf("the password is told: %v", err)
	}
}

// failed checks the code of an error.
func failed(t *testing.T, err error, code schema.Code) {
	t.Helper()
	if codeOf(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
}

func codeOf(err error) schema.Code {
	var known *schema.Error
	if errors.As(err, &known) {
		return known.Code
	}
	return ""
}

var lead = schema.Authority{Role: schema.Lead, SessionID: "lead"}

// write makes a call of one run.
func write[P, R any](s store.Store, run string, scope store.Scope, method func(store.Tx, *P) (*R, error), p P) (result *R, err error) {
	scope.Runs = []string{run}
	err = s.Write(store.WithScope(context.Background(), scope), func(tx store.Tx) (err error) {
		result, err = method(tx, &p)
		return err
	})
	return result, err
}

// addTask opens a task of a run.
func addTask(s store.Store, run string) (*schema.Task, error) {
	return write(s, run, store.Scope{}, store.Open, schema.OpenParams{RunID: run, Authority: lead, Input: schema.OpenInput{Title: "a task"}})
}

// reserve makes the n-th admission of a task, from 0.
func reserve(s store.Store, run string, task, n int64, kind schema.Kind, resources ...string) (*schema.Reservation, error) {
	return write(s, run, store.Scope{Resources: resources, Tasks: []int64{task}, Operations: []string{fmt.Sprintf("task %d, admission %d", task, n)}}, governor.Reserve, schema.ReserveParams{RunID: run, Authority: lead, Input: schema.ReserveInput{
		OperationKey: fmt.Sprintf("task %d, admission %d", task, n), TaskID: task, Generation: n,
		Mode: schema.Write, Kind: kind, Resources: append([]string{}, resources...)}})
}

// settle ends an admission that was never bound.
func settle(s store.Store, r *schema.Reservation) error {
	_, err := write(s, r.RunID, store.Scope{Reservations: []string{r.ReservationID}}, governor.Settle, schema.SettleParams{RunID: r.RunID, Authority: lead,
		Input: schema.SettleInput{ReservationID: r.ReservationID, Generation: r.Generation, Proof: schema.Proof{Kind: schema.NeverStarted}}})
	return err
}

// snapshot is everything that is known of a run.
func snapshot(t *testing.T, s store.Store, run string) (snapshot *schema.Snapshot) {
	t.Helper()
	err := s.Read(context.Background(), func(tx store.Tx) (err error) {
		snapshot, err = governor.Snapshot(tx, &schema.RunParams{RunID: run})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// sound checks that the ledger keeps every promise.
func sound(t *testing.T, s *postgres.Store) {
	t.Helper()
	v, err := transferVerify(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range v.Breaches {
		t.Errorf("%s %s %s %q: %s", b.Level, b.Check, b.Table, b.Row, b.Explanation)
	}
}
