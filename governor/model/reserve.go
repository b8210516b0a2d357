package model

import (
	"slices"
	"unicode/utf16"

	"github.com/dsh-taskforce/sidecar/schema"
)

// request is what an admission was asked for. Two requests are the same if
// these are equal, whatever the order and duplicates of the resources.
type request struct {
	TaskID     int64       `json:"task_id"`
	Generation int64       `json:"generation"`
	Mode       schema.Mode `json:"mode"`
	Kind       schema.Kind `json:"kind"`
	Resources  []string    `json:"resources"`
}

// reserve admits one execution of a task, or says why not. The checks are made
// in the order of DESIGN.md, section 5.
func (l *Ledger) reserve(p schema.ReserveParams) Answer {
	in := p.Input
	asked := request{in.TaskID, in.Generation, in.Mode, in.Kind, canonical(in.Resources)}
	task := l.taskOf(in.TaskID, p.RunID)
	if task == nil || !owns(task, p.Authority) {
		return conflict()
	}
	if r := l.find(ID(p.RunID, in.OperationKey)); r != nil {
		if !captured(r, p.Authority) || !r.answers(asked) {
			return conflict()
		}
		return Answer{Result: r.public()}
	}
	switch {
	case l.unaccounted(p.RunID):
		return conflict()
	case in.Generation != l.Generation(in.TaskID):
		return stale()
	case task.Status.Terminal() || task.Managed:
		return conflict()
	case count(l.ofTask(in.TaskID), active) > 0: // one active admission a task
		return conflict()
	case l.exhausted(p, task):
		return refused(schema.ErrBudgetExhausted)
	case slices.ContainsFunc(asked.Resources, func(key string) bool { return l.excludes(key, in.Mode) }):
		return refused(schema.ErrResourceBusy)
	}
	return l.admit(p, task, asked)
}

// exhausted says whether the admission would exceed a limit.
func (l *Ledger) exhausted(p schema.ReserveParams, task *Task) bool {
	limits, run := l.limits(p.RunID), l.ofRun(p.RunID)
	occupied := l.of(func(r *Reservation) bool { return r.RunID == p.RunID && active(r) })
	charged, _ := l.charged(task.TaskID)
	switch {
	case int64(len(occupied)) >= limits.MaxActive:
		return true
	case p.Input.Mode == schema.Write && count(occupied, writes) >= limits.MaxWriters:
		return true
	case p.Input.Kind == schema.New && count(run, created) >= limits.MaxCreated:
		return true
	}
	return charged+l.charge(p.Input.Kind, task) > limits.MaxRetries
}

// created chooses what counts as new, settled or not: that is never refunded.
func created(r *Reservation) bool { return r.Kind == schema.New }

// charge is what an admission costs of the task's retries: each rejection that
// no admission has recorded, and at least one for an explicit retry.
func (l *Ledger) charge(kind schema.Kind, task *Task) int64 {
	_, recorded := l.charged(task.TaskID)
	rework := max(task.EvidenceGeneration-recorded, 0)
	if kind == schema.Retry {
		return max(rework, 1)
	}
	return rework
}

// excludes says whether some hold, of whichever run, excludes a new one: reads
// share, and a write conflicts with everything.
func (l *Ledger) excludes(key string, mode schema.Mode) bool {
	return len(l.of(func(r *Reservation) bool {
		return active(r) && slices.Contains(r.Resources, key) && (writes(r) || mode == schema.Write)
	})) > 0
}

func (l *Ledger) admit(p schema.ReserveParams, task *Task, asked request) Answer {
	r := Reservation{
		Reservation: schema.Reservation{
			ReservationID: ID(p.RunID, p.Input.OperationKey), RunID: p.RunID, TaskID: task.TaskID, Generation: asked.Generation + 1,
			State: schema.Reserved, Mode: asked.Mode, Kind: asked.Kind, Resources: asked.Resources,
		},
		Key: p.Input.OperationKey, Expected: asked.Generation, Owner: task.OwnerSession,
	}
	r.Charge = &schema.RetryCharge{
		ReservationID: r.ReservationID, ReworkGeneration: task.EvidenceGeneration,
		RetryCharge: l.charge(asked.Kind, task), Source: schema.FromAdmission,
	}
	l.Reservations = append(l.Reservations, r)
	l.record(p.RunID, r.ReservationID, "reserve", p.Authority, struct {
		OperationKey string `json:"operation_key"`
		request
		ReworkGeneration int64 `json:"rework_generation"`
		RetryCharge      int64 `json:"retry_charge"`
	}{r.Key, asked, r.Charge.ReworkGeneration, r.Charge.RetryCharge})
	return Answer{Result: r.public()}
}

// answers says whether the reservation was admitted for the same request.
func (r *Reservation) answers(asked request) bool {
	return r.TaskID == asked.TaskID && r.Expected == asked.Generation && r.Mode == asked.Mode && r.Kind == asked.Kind &&
		slices.Equal(r.Resources, asked.Resources)
}

// public is the reservation as calls return it.
func (r *Reservation) public() *schema.Reservation {
	public := r.Reservation
	return &public
}

// canonical drops duplicates and sorts by UTF-16 code units.
func canonical(resources []string) []string {
	sorted := append([]string{}, resources...)
	slices.SortFunc(sorted, func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	return slices.Compact(sorted)
}
