package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

var counts = []test{
	{"usage and admissions count what is retained", countsOfOne},
	{"counts follow what is undone", countsFollow},
}

func countsOfOne(t *testing.T, s store.Store) {
	m := newModel()
	write(t, s, func(tx store.Tx) error {
		for _, step := range []func() error{
			func() error { return m.admit(tx, "1", "run", 1, schema.Write, schema.New, 3, 2) },
			func() error { return m.move(tx, "1", schema.Settled) },
			func() error { return m.admit(tx, "2", "run", 1, schema.Read, schema.Retry, 2, 1) },
			func() error { return m.move(tx, "2", schema.Unknown) },
			func() error { return m.admit(tx, "3", "run", 2, schema.Write, schema.New, 0, 0) },
			func() error { return m.admit(tx, "4", "other", 3, schema.Write, schema.Reuse, 0, 0) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	equal(t, "usage", read(t, s, func(tx store.Tx) (store.Usage, error) { return tx.Usage("run") }),
		store.Usage{Usage: schema.Usage{Active: 2, Writers: 1, Created: 2, Unknown: 1}})
	equal(t, "admissions", read(t, s, func(tx store.Tx) (store.Admissions, error) { return tx.Admissions(1) }),
		store.Admissions{Generation: 2, ReworkGeneration: 3, Charged: 3})
	read(t, s, func(tx store.Tx) (any, error) { return nil, m.compare(tx) })
}

// countsFollow runs random transactions, nested ones and failing ones among
// them, against a model. An engine may remember counts; undone changes must
// never be among them.
func countsFollow(t *testing.T, s store.Store) {
	seed := rand.Uint64()
	defer func() {
		if t.Failed() {
			t.Logf("the seed was %d", seed)
		}
	}()
	d := &driver{rand: rand.New(rand.NewPCG(seed, 0)), model: newModel()}
	for range 40 {
		before := d.model.clone()
		err := s.Write(t.Context(), func(tx store.Tx) error { return d.play(tx, 0) })
		switch {
		case errors.Is(err, errRefused):
			d.model = before
		case err != nil:
			t.Fatal(err)
		}
		if err := s.Read(t.Context(), d.model.compare); err != nil {
			t.Fatal(err)
		}
		if d.rand.IntN(4) == 0 {
			if err := s.Write(t.Context(), d.model.compare); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// driver plays random steps on a transaction and on the model.
type driver struct {
	rand  *rand.Rand
	model *model
	last  int
}

func (d *driver) id() string {
	d.last++
	return fmt.Sprint("r", d.last)
}

// play takes a few steps and fails by chance.
func (d *driver) play(tx store.Tx, depth int) error {
	for range 1 + d.rand.IntN(6) {
		if err := d.step(tx, depth); err != nil {
			return err
		}
	}
	if d.rand.IntN(4) == 0 {
		return errRefused
	}
	return nil
}

func (d *driver) step(tx store.Tx, depth int) error {
	runs := []string{"run-0", "run-1"}
	switch roll := d.rand.IntN(10); {
	case roll < 3:
		task := int64(1 + d.rand.IntN(6))
		if d.model.active(task) != "" {
			return d.model.compareSome(tx, d.rand)
		}
		mode := []schema.Mode{schema.Read, schema.Write}[d.rand.IntN(2)]
		kind := []schema.Kind{schema.New, schema.Reuse, schema.Retry}[d.rand.IntN(3)]
		return d.model.admit(tx, d.id(), runs[task%2], task, mode, kind, d.rand.Int64N(5), d.rand.Int64N(3))
	case roll < 5:
		id := d.model.active(int64(1 + d.rand.IntN(6)))
		if id == "" {
			return nil
		}
		return d.model.move(tx, id, []schema.State{schema.Running, schema.Unknown, schema.Settled}[d.rand.IntN(3)])
	case roll < 6:
		return d.model.setLimits(tx, runs[d.rand.IntN(2)], 1+d.rand.Int64N(9))
	case roll < 7:
		// A charge without a reservation counts for nothing.
		return tx.InsertRetryCharge(schema.RetryCharge{ReservationID: "orphan " + d.id(), RetryCharge: 7, Source: schema.FromLegacy})
	case roll < 9 && depth < 3:
		before := d.model.clone()
		err := tx.Nested(func(tx store.Tx) error { return d.play(tx, depth+1) })
		if errors.Is(err, errRefused) {
			d.model = before
			return nil
		}
		return err
	}
	return d.model.compareSome(tx, d.rand)
}

// model is what the store should count.
type model struct {
	limits map[string]schema.Limits
	usage  map[string]schema.Usage
	tasks  map[int64]store.Admissions
	rows   map[string]store.Reservation
}

func newModel() *model {
	return &model{map[string]schema.Limits{}, map[string]schema.Usage{}, map[int64]store.Admissions{}, map[string]store.Reservation{}}
}

func (m *model) clone() *model {
	return &model{maps.Clone(m.limits), maps.Clone(m.usage), maps.Clone(m.tasks), maps.Clone(m.rows)}
}

func (m *model) active(task int64) string {
	for id, r := range m.rows {
		if r.TaskID == task && r.State != schema.Settled {
			return id
		}
	}
	return ""
}

func (m *model) admit(tx store.Tx, id, run string, task int64, mode schema.Mode, kind schema.Kind, rework, charge int64) error {
	before := m.tasks[task]
	r := reservation(id, run, task, before.Generation+1, mode)
	r.Kind = kind
	m.rows[id] = *r
	m.tasks[task] = store.Admissions{
		Generation: r.Generation, ReworkGeneration: max(before.ReworkGeneration, rework), Charged: before.Charged + charge,
	}
	u := m.usage[run]
	u.Active++
	if mode == schema.Write {
		u.Writers++
	}
	if kind == schema.New {
		u.Created++
	}
	m.usage[run] = u
	return admit(tx, r, rework, charge)
}

func (m *model) move(tx store.Tx, id string, to schema.State) error {
	r := m.rows[id]
	u := m.usage[r.RunID]
	if r.State == schema.Unknown {
		u.Unknown--
	}
	if to == schema.Unknown {
		u.Unknown++
	}
	if to == schema.Settled {
		u.Active--
		if r.Mode == schema.Write {
			u.Writers--
		}
	}
	r.State = to
	m.usage[r.RunID], m.rows[id] = u, r
	return move(tx, id, to)
}

func (m *model) setLimits(tx store.Tx, run string, n int64) error {
	l := schema.Limits{MaxActive: n, MaxWriters: n + 1, MaxCreated: n + 2, MaxRetries: n + 3}
	m.limits[run] = l
	return tx.SetLimits(run, l)
}

// compareSome compares a part, so that an engine has remembered now this, now that.
func (m *model) compareSome(tx store.Tx, r *rand.Rand) error {
	if r.IntN(2) == 0 {
		return m.compareRun(tx, fmt.Sprint("run-", r.IntN(2)))
	}
	return m.compareTask(tx, int64(1+r.IntN(6)))
}

func (m *model) compare(tx store.Tx) error {
	for _, run := range []string{"run-0", "run-1", "run", "other"} {
		if err := m.compareRun(tx, run); err != nil {
			return err
		}
	}
	for task := range int64(7) {
		if err := m.compareTask(tx, task); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) compareRun(tx store.Tx, run string) error {
	usage, err := tx.Usage(run)
	if err != nil {
		return err
	}
	if want := (store.Usage{Usage: m.usage[run]}); usage != want {
		return fmt.Errorf("usage of %s: got %+v, want %+v", run, usage, want)
	}
	limits, err := tx.Limits(run)
	if err != nil {
		return err
	}
	want, ok := m.limits[run]
	if !ok {
		want = schema.DefaultLimits()
	}
	if limits != want {
		return fmt.Errorf("limits of %s: got %+v, want %+v", run, limits, want)
	}
	return nil
}

func (m *model) compareTask(tx store.Tx, task int64) error {
	got, err := tx.Admissions(task)
	if err != nil {
		return err
	}
	if got != m.tasks[task] {
		return fmt.Errorf("admissions of task %d: got %+v, want %+v", task, got, m.tasks[task])
	}
	active, err := tx.ActiveAdmission(task)
	if err != nil {
		return err
	}
	if want := m.active(task); (active == nil) != (want == "") || active != nil && active.ReservationID != want {
		return fmt.Errorf("active admission of task %d: got %+v, want %q", task, active, want)
	}
	return nil
}
