package governor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/governor/model"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// compare compares one answer with the model's.
func (m *machine) compare(c model.Call, want model.Answer, result any, err error) {
	var refusal *schema.Error
	switch {
	case err != nil && !errors.As(err, &refusal):
		m.t.Fatalf("%s fails: %v", c.Method, err)
	case err != nil && refusal.Code != want.Code:
		m.t.Fatalf("%s is refused: %v; the model says %s", c.Method, err, describe(want))
	case err == nil && want.Code != "":
		m.t.Fatalf("%s is answered %s; the model says %s", c.Method, describe(model.Answer{Result: result}), want.Code)
	case err == nil:
		m.learn(want.Result, result)
		m.equal(c.Method, want.Result, result)
	}
}

func describe(a model.Answer) string {
	if a.Code != "" {
		return string(a.Code)
	}
	text, err := schema.Encode(a.Result)
	return fmt.Sprint(string(text), err)
}

// learn pairs the identities of a reservation that is seen for the first time.
func (m *machine) learn(want, got any) {
	modelled, ok := want.(*schema.Reservation)
	real, same := got.(*schema.Reservation)
	if !ok || !same {
		return
	}
	id := real.ReservationID
	if m.real[modelled.ReservationID] == "" && m.modelled[id] == "" {
		m.real[modelled.ReservationID], m.modelled[id] = id, modelled.ReservationID
	}
}

// equal compares a result with the model's, but for identities and times.
func (m *machine) equal(what string, want, got any) {
	m.normalize(got)
	if m.engine.gaps() {
		want, got = withoutNumbers(want), withoutNumbers(got)
	}
	wanted, gotten := describe(model.Answer{Result: want}), describe(model.Answer{Result: got})
	if wanted != gotten {
		m.t.Fatalf("%s is answered\n%s\nthe model says\n%s", what, gotten, wanted)
	}
}

// withoutNumbers is a result without the numbers of audit entries, of which an
// engine may lack those of transactions that it has undone.
func withoutNumbers(result any) any {
	s, ok := result.(*schema.Snapshot)
	if !ok {
		return result
	}
	numberless := *s
	numberless.Audit = slices.Clone(s.Audit)
	for i := range numberless.Audit {
		numberless.Audit[i].ID = int64(i)
	}
	return &numberless
}

// normalize gives a real result the model's identities, and no times.
func (m *machine) normalize(result any) {
	rename := func(id *string) {
		if name, known := m.modelled[*id]; known {
			*id = name
		}
	}
	switch r := result.(type) {
	case *schema.Reservation:
		rename(&r.ReservationID)
	case *schema.Task:
		r.CreatedAt, r.UpdatedAt = "", ""
	case *schema.ClaimResult:
		m.normalize(&r.Task)
	case *schema.RejectResult:
		m.normalize(&r.Task)
	case *schema.Snapshot:
		for i := range r.Reservations {
			rename(&r.Reservations[i].ReservationID)
		}
		for i := range r.RetryCharges {
			rename(&r.RetryCharges[i].ReservationID)
		}
		for i := range r.Holds {
			rename(&r.Holds[i].ReservationID)
		}
		model.SortHolds(r.Holds)
		for i := range r.Audit {
			entry := &r.Audit[i]
			entry.CreatedAt = ""
			if entry.ReservationID != nil {
				rename(entry.ReservationID)
			}
		}
	}
}

// compareAll compares everything that the store retains, as the sidecar sees it.
func (m *machine) compareAll(s store.Store) {
	err := s.Read(context.Background(), func(tx store.Tx) error {
		for _, run := range modelRuns {
			p := schema.RunParams{RunID: run}
			snapshot, err := governor.Snapshot(tx, &p)
			m.compare(model.Call{Method: schema.GetSnapshot.Name}, m.model.Do(model.Call{Method: schema.GetSnapshot.Name, Params: p}), snapshot, err)
			if err := m.compareTasks(tx, run); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		m.t.Fatalf("reading: %v", err)
	}
}

func (m *machine) compareTasks(tx store.Tx, run string) error {
	page, err := store.List(tx, &schema.ListParams{RunID: run, Input: schema.ListInput{Limit: 1000}})
	if err != nil {
		return err
	}
	want := []schema.Task{}
	for _, task := range m.model.Tasks {
		if *task.RunID == run {
			want = append(want, task.Task)
		}
	}
	for i := range page.Items {
		m.normalize(&page.Items[i])
	}
	m.equal("task.list", want, page.Items)
	return nil
}
