package governor_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/governor/model"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"pgregory.net/rapid"
)

// machine drives the reference model and the real governor by the same calls
// and compares every answer, and after each step everything that is retained.
// Two sidecars and another writer share the real store.
type machine struct {
	t        rapid.TB
	engine   engine
	sidecars [2]store.Store
	model    *model.Ledger
	// real and modelled translate identities of reservations in both directions.
	real, modelled map[string]string
	// steps tells in words what was done, for whoever reads a failure.
	steps []string
}

// newMachine opens an empty store. The caller closes the machine.
func newMachine(t rapid.TB, engine engine) *machine {
	m := &machine{t: t, engine: engine, model: model.New(), real: map[string]string{}, modelled: map[string]string{}}
	for i := range m.sidecars {
		m.open(i)
	}
	return m
}

func (m *machine) close() {
	if m.t.Failed() {
		m.t.Logf("after\n%s", strings.Join(m.steps, "\n"))
	}
	for _, s := range m.sidecars {
		if s != nil {
			s.Close()
		}
	}
	m.engine.close()
}

// open starts a sidecar on the store, migration included.
func (m *machine) open(i int) {
	s, err := m.engine.open()
	if err == nil {
		m.sidecars[i] = s
		err = governor.Prepare(context.Background(), s)
	}
	if err != nil {
		m.t.Fatalf("opening: %v", err)
	}
	m.model.Migrate()
}

// reopen ends a sidecar and starts another in its place.
func (m *machine) reopen(i int) {
	m.steps = append(m.steps, fmt.Sprintf("sidecar %d starts again", i))
	m.sidecars[i].Close()
	m.open(i)
	m.compareAll(m.sidecars[i])
}

// run makes calls on a sidecar, sent before the first is answered, so that
// they may share a commit.
func (m *machine) run(on int, calls ...model.Call) {
	m.note(on, "", calls)
	s, results, errs := m.sidecars[on], make([]any, len(calls)), make([]error, len(calls))
	var pending sync.WaitGroup
	for i, c := range calls {
		step, err := m.bind(c)
		if err != nil {
			errs[i] = err
			continue
		}
		pending.Add(1)
		s.Submit(context.Background(), func(tx store.Tx) (err error) {
			results[i], err = step(tx)
			return err
		}, func(err error) {
			errs[i] = err
			pending.Done()
		})
	}
	pending.Wait()
	for i, c := range calls {
		m.compare(c, m.model.Do(c), results[i], errs[i])
	}
	m.compareAll(m.sidecars[1-on])
}

// transact makes calls in one transaction, of which all take effect or none.
func (m *machine) transact(on int, calls ...model.Call) {
	m.note(on, "in one transaction: ", calls)
	answers, failed := m.model.Transaction(calls)
	results, at, err := m.transaction(m.sidecars[on], calls, answers)
	switch {
	case at != failed:
		m.t.Fatalf("the transaction fails at call %d (%v); the model says at %d (%v)", at, err, failed, answers)
	case err != nil:
		m.compare(calls[failed], answers[failed], nil, err)
	default:
		for i, c := range calls {
			m.compare(c, answers[i], results[i], nil)
		}
	}
	m.compareAll(m.sidecars[1-on])
}

// transaction returns every result, or where and how it failed. What it admits
// is known by the model's answers.
func (m *machine) transaction(s store.Store, calls []model.Call, answers []model.Answer) (results []any, failed int, err error) {
	for i, c := range calls {
		if _, err := m.bind(c); err != nil {
			return nil, i, err
		}
	}
	real, modelled := m.real, m.modelled
	err = s.Write(context.Background(), func(tx store.Tx) error {
		m.real, m.modelled = maps.Clone(real), maps.Clone(modelled)
		results = make([]any, len(calls))
		for i, c := range calls {
			step, err := m.bind(c) // again: it may name what an earlier call has admitted
			if err == nil {
				results[i], err = step(tx)
			}
			if err != nil {
				failed = i
				return err
			}
			m.learn(answers[i].Result, results[i])
		}
		failed = -1
		return nil
	})
	if err != nil {
		m.real, m.modelled = real, modelled
		err = errors.Join(err, m.engine.undone())
	}
	return results, failed, err
}

// check asks what a reserve would answer; the model answers by trying it.
func (m *machine) check(on int, c model.Call) {
	m.note(on, "would it: ", []model.Call{c})
	want := m.model.Clone().Do(c)
	step, err := m.bind(model.Call{Method: schema.Check.Name, Params: c.Params, Unknown: c.Unknown})
	var result any
	if err == nil {
		err = m.sidecars[on].Read(context.Background(), func(tx store.Tx) (err error) {
			result, err = step(tx)
			return err
		})
	}
	if err != nil {
		m.compare(c, want, nil, err)
		return
	}
	got := result.(*schema.CheckResult)
	switch first := m.firstObstacle(got); {
	case got.Admissible != (want.Code == "") || first != want.Code:
		m.t.Fatalf("check says admissible %v, first obstacle %q; the model says %q", got.Admissible, first, want.Code)
	case got.Replay != nil:
		m.compare(c, want, got.Replay, nil)
	}
	m.compareAll(m.sidecars[on])
}

func (m *machine) firstObstacle(r *schema.CheckResult) schema.Code {
	if len(r.Obstacles) == 0 {
		return ""
	}
	return r.Obstacles[0].Code
}

// furnish opens tasks in both runs, most of them owned.
func (m *machine) furnish() {
	var calls []model.Call
	for i, run := range []string{"run", "run", "run ", "run ", "run"} {
		calls = append(calls, model.Call{Method: schema.OpenTask.Name, Params: schema.OpenParams{RunID: run, Authority: modelLead,
			Input: schema.OpenInput{Title: "a task"}}})
		if i < 4 {
			calls = append(calls, model.Call{Method: schema.ClaimTask.Name, Params: schema.ClaimParams{RunID: run, Authority: modelLead,
				Input: schema.ClaimInput{TaskID: int64(i) + 1, Owner: "Ann", OwnerSession: sessions[i%2]}}})
		}
	}
	m.transact(0, calls...)
}

var modelLead = schema.Authority{Role: schema.Lead, SessionID: "lead"}
