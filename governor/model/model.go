// Package model is the contract of the governor (GOVERNOR.md) with the rules of
// tasks (DESIGN.md, section 5), said once more and as plainly as possible: a
// [Ledger] is a few slices and a map, and a call changes them or is refused. It
// has no database, no transactions and no counters; whatever can be derived is
// derived anew, so that there is nothing to keep in step.
//
// It is what the governor is tested against, so it shares no code with it. Read
// it beside the contract: input.go says what a call must look like, reserve.go
// and transitions.go follow "Trusted identity and API", legacy.go follows
// "Additive retry-accounting migration".
//
// Two things of the real store are left out. A reservation's identity is made of
// its run and operation key, which are as unique, and times are empty.
package model

import (
	"maps"
	"slices"

	"github.com/dsh-taskforce/sidecar/schema"
)

// Ledger is everything that the contract calls durable.
type Ledger struct {
	// Tasks holds task n at n-1.
	Tasks []Task
	// Reservations stand in the order of admission.
	Reservations []Reservation
	// Limits are those of the runs whose budget was extended.
	Limits map[string]schema.Limits
	// Audit stands in the order of the transitions.
	Audit []schema.AuditEntry
}

// Task is a task, which the other writer's workflow may have in hand.
type Task struct {
	schema.Task
	Managed bool
}

// Reservation is an admission with what only the governor may see. It holds its
// resources as long as it is not settled.
type Reservation struct {
	schema.Reservation
	Key string
	// Expected is the generation that was asked with.
	Expected int64
	// Owner is the task's owner session captured at admission, nil if there was none.
	Owner *string
	// Proof is what settled it.
	Proof *schema.Proof
	// Charge is its retry accounting, nil if an older writer left it without.
	Charge *schema.RetryCharge
}

// Call is a call of a method with parameters of the method's Go type, as values.
type Call struct {
	Method string
	Params any
	// Unknown says that the input has a member that the method does not know.
	Unknown bool
}

// Answer is what a call answers: a result, or the code of a refusal.
type Answer struct {
	Result any
	Code   schema.Code
}

// New returns the ledger of an empty store.
func New() *Ledger { return &Ledger{Limits: map[string]schema.Limits{}} }

// Clone returns a copy that shares nothing that either will change.
func (l *Ledger) Clone() *Ledger {
	return &Ledger{slices.Clone(l.Tasks), slices.Clone(l.Reservations), maps.Clone(l.Limits), slices.Clip(l.Audit)}
}

// ID is the identity of the reservation that the operation key names in the run.
func ID(run, key string) string { return run + "/" + key }

// Do makes a call.
func (l *Ledger) Do(c Call) Answer {
	if c.Unknown || !valid(c.Params) {
		return refused(schema.Lookup(c.Method).InvalidCode())
	}
	switch p := c.Params.(type) {
	case schema.ReserveParams:
		return l.reserve(p)
	case schema.BindParams:
		return l.bind(p)
	case schema.MarkUnknownParams:
		return l.markUnknown(p)
	case schema.SettleParams:
		return l.settle(p)
	case schema.ExtendBudgetParams:
		return l.extendBudget(p)
	case schema.RunParams:
		return l.snapshot(p.RunID)
	case schema.OpenParams:
		return l.openTask(p)
	case schema.ClaimParams:
		return l.claimTask(p)
	case schema.RejectParams:
		return l.rejectTask(p)
	case schema.TaskParams:
		return l.getTask(p)
	case schema.TaskNoteParams:
		switch c.Method {
		case schema.SubmitTask.Name:
			return l.submitTask(p)
		case schema.AcceptTask.Name:
			return l.acceptTask(p)
		case schema.CancelTask.Name:
			return l.cancelTask(p)
		}
	}
	panic("model: no such call: " + c.Method)
}

// Transaction makes all the calls, or none if one is refused. Calls are checked
// for their form before any is made. It returns the answers as far as it came,
// and the position of the refusal, -1 if there was none.
func (l *Ledger) Transaction(calls []Call) (answers []Answer, failed int) {
	answers = make([]Answer, len(calls))
	for i, c := range calls {
		if c.Unknown || !valid(c.Params) {
			answers[i] = refused(schema.Lookup(c.Method).InvalidCode())
			return answers, i
		}
	}
	attempt := l.Clone()
	for i, c := range calls {
		if answers[i] = attempt.Do(c); answers[i].Code != "" {
			return answers, i
		}
	}
	*l = *attempt
	return answers, -1
}

func refused(code schema.Code) Answer { return Answer{Code: code} }

// conflict is the refusal of invalid scope, owner, operation or state.
func conflict() Answer { return refused(schema.ErrGovernorConflict) }

// stale is the refusal of a generation that is no longer current.
func stale() Answer { return refused(schema.ErrGovernorFence) }

func (l *Ledger) limits(run string) schema.Limits {
	if limits, extended := l.Limits[run]; extended {
		return limits
	}
	return schema.DefaultLimits()
}

// of returns the reservations that the condition chooses.
func (l *Ledger) of(condition func(*Reservation) bool) (chosen []*Reservation) {
	for i := range l.Reservations {
		if r := &l.Reservations[i]; condition(r) {
			chosen = append(chosen, r)
		}
	}
	return chosen
}

func (l *Ledger) ofTask(task int64) []*Reservation {
	return l.of(func(r *Reservation) bool { return r.TaskID == task })
}

func (l *Ledger) ofRun(run string) []*Reservation {
	return l.of(func(r *Reservation) bool { return r.RunID == run })
}

// active chooses reservations that occupy a slot and keep their holds: there is
// no timeout, only a settlement ends that.
func active(r *Reservation) bool { return r.State != schema.Settled }

func writes(r *Reservation) bool { return r.Mode == schema.Write }

func count(list []*Reservation, condition func(*Reservation) bool) (n int64) {
	for _, r := range list {
		if condition(r) {
			n++
		}
	}
	return n
}

// Generation is the task's current admission generation, 0 before the first.
func (l *Ledger) Generation(task int64) (latest int64) {
	for _, r := range l.ofTask(task) {
		latest = max(latest, r.Generation)
	}
	return latest
}

// charged is the sum of the task's retry charges, and the latest rework
// generation that any of them recorded.
func (l *Ledger) charged(task int64) (total, recorded int64) {
	for _, r := range l.ofTask(task) {
		if r.Charge != nil {
			total += r.Charge.RetryCharge
			recorded = max(recorded, r.Charge.ReworkGeneration)
		}
	}
	return total, recorded
}

// record appends to the audit. Details are stored as text, in the order of their members.
func (l *Ledger) record(run, reservation, action string, by schema.Authority, details any) {
	text, err := schema.Encode(details)
	if err != nil {
		panic(err)
	}
	entry := schema.AuditEntry{
		ID: int64(len(l.Audit)) + 1, RunID: run, Action: action, Role: by.Role, SessionID: by.SessionID, Details: text,
	}
	if reservation != "" {
		entry.ReservationID = &reservation
	}
	l.Audit = append(l.Audit, entry)
}
