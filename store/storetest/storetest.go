// Package storetest is the suite that every engine of the store passes.
//
// It speaks only of what [store.Store] and [store.Tx] promise; what an engine
// keeps its state in, and what that needs, is tested beside the engine.
package storetest

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// Run runs the suite. open returns a new, empty store, which open closes after the test.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, part := range [][]test{tasks, reservations, histories, keys, transactions, submissions, closing, counts} {
		for _, test := range part {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				test.run(t, open(t))
			})
		}
	}
}

type test struct {
	name string
	run  func(*testing.T, store.Store)
}

// write runs fn in a write that must succeed.
func write(t *testing.T, s store.Store, fn func(store.Tx) error) {
	t.Helper()
	if err := s.Write(context.Background(), fn); err != nil {
		t.Fatalf("write: %v", err)
	}
}

// read returns what fn reads in a transaction of its own.
func read[R any](t *testing.T, s store.Store, fn func(store.Tx) (R, error)) R {
	t.Helper()
	var result R
	err := s.Read(context.Background(), func(tx store.Tx) (err error) {
		result, err = fn(tx)
		return err
	})
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return result
}

// equal compares what is read with what was written.
func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %+v, want %+v", what, show(got), show(want))
	}
}

// show makes pointers readable in a failure.
func show(value any) string {
	text, err := schema.Encode(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// fails checks that an error has a code of the error table.
func fails(t *testing.T, what string, err error, code schema.Code) {
	t.Helper()
	var known *schema.Error
	if !errors.As(err, &known) || known.Code != code {
		t.Errorf("%s: got %v, want %s", what, err, code)
	}
}

// exactly checks that an error is returned as it is, and not wrapped.
func exactly(t *testing.T, what string, err, want error) {
	t.Helper()
	if any(err) != any(want) {
		t.Errorf("%s: got %#v, want %#v", what, err, want)
	}
}

var errRefused = errors.New("refused by the test")

// addTask adds an open task of the run.
func addTask(tx store.Tx, run, title string) (int64, error) {
	now := store.Timestamp(tx.Now())
	task := &store.Task{Task: schema.Task{Title: title, Status: schema.TaskOpen, RunID: &run, CreatedAt: now, UpdatedAt: now}}
	err := tx.InsertTask(task)
	return task.TaskID, err
}

// titles lists the titles of the run's tasks.
func titles(run string) func(store.Tx) ([]string, error) {
	return func(tx store.Tx) ([]string, error) {
		list, err := tx.Tasks(run, "", store.Page{})
		names := make([]string, 0, len(list))
		for _, task := range list {
			names = append(names, task.Title)
		}
		return names, err
	}
}

// reservation describes an admission with everything set that a new one has.
func reservation(id, run string, task, generation int64, mode schema.Mode, resources ...string) *store.Reservation {
	r := &store.Reservation{
		Reservation: schema.Reservation{
			ReservationID: id, RunID: run, TaskID: task, Generation: generation, State: schema.Reserved,
			Mode: mode, Kind: schema.New, Resources: append([]string{}, resources...),
		},
		OperationKey: "op " + id,
	}
	payload, err := schema.Encode(map[string]any{"resources": r.Resources})
	if err != nil {
		panic(err)
	}
	r.Payload = string(payload)
	return r
}

func admit(tx store.Tx, r *store.Reservation, rework, charge int64) error {
	return tx.InsertReservation(r, schema.RetryCharge{
		ReservationID: r.ReservationID, ReworkGeneration: rework, RetryCharge: charge, Source: schema.FromAdmission,
	})
}

// move gives a reservation a state.
func move(tx store.Tx, id string, to schema.State) error {
	r, err := tx.Reservation(id)
	if err != nil {
		return err
	}
	r.State = to
	if to == schema.Settled {
		r.Settlement = new(`{"kind":"never_started"}`)
	}
	return tx.SaveReservation(r)
}
