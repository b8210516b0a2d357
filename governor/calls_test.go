package governor_test

import (
	"fmt"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

// input wraps what is asked into the shape that every call shares.
func input[I any](c caller, in I) schema.Call[I] {
	return schema.Call[I]{Input: in, RunID: c.run, Authority: c.authority}
}

// asking describes an admission; its zero form reads nothing and reuses an executor.
type asking struct{ schema.ReserveInput }

// ask asks for the first admission of a task.
func ask(key string, task int64) asking {
	return asking{schema.ReserveInput{OperationKey: key, TaskID: task, Mode: schema.Read, Kind: schema.Reuse, Resources: []string{}}}
}

// after expects the task to have had that many admissions.
func (a asking) after(generation int64) asking { a.Generation = generation; return a }

func (a asking) as(kind schema.Kind) asking { a.Kind = kind; return a }

func (a asking) reading(resources ...string) asking { a.Resources = resources; return a }

func (a asking) writing(resources ...string) asking {
	a.Mode = schema.Write
	a.Resources = append([]string{}, resources...)
	return a
}

func (c caller) reserve(a asking) outcome[schema.Reservation] {
	c.t.Helper()
	return call(c.ledger, governor.Reserve, input(c, a.ReserveInput))
}

func (c caller) check(a asking) outcome[schema.CheckResult] {
	c.t.Helper()
	return call(c.ledger, governor.Check, input(c, a.ReserveInput))
}

func (c caller) bind(r *schema.Reservation, session string) outcome[schema.Reservation] {
	c.t.Helper()
	return call(c.ledger, governor.Bind, input(c, schema.BindInput{ReservationID: r.ReservationID, Generation: r.Generation, SessionID: session}))
}

func (c caller) markUnknown(r *schema.Reservation) outcome[schema.Reservation] {
	c.t.Helper()
	return c.markUnknownFor(r, "the host lost it")
}

func (c caller) markUnknownFor(r *schema.Reservation, reason string) outcome[schema.Reservation] {
	c.t.Helper()
	return call(c.ledger, governor.MarkUnknown, input(c, schema.MarkUnknownInput{ReservationID: r.ReservationID, Generation: r.Generation, Reason: reason}))
}

func (c caller) settle(r *schema.Reservation, proof schema.Proof) outcome[schema.Reservation] {
	c.t.Helper()
	return call(c.ledger, governor.Settle, input(c, schema.SettleInput{ReservationID: r.ReservationID, Generation: r.Generation, Proof: proof}))
}

// The two proofs.
var (
	neverStarted = schema.Proof{Kind: schema.NeverStarted}
	succeeded    = terminal(schema.Succeeded, "log-1")
)

func terminal(outcome schema.Outcome, evidence string) schema.Proof {
	return schema.Proof{Kind: schema.Terminal, Outcome: outcome, Quiescent: true, Evidence: evidence}
}

func (c caller) extendBudget(in schema.ExtendBudgetInput) outcome[schema.Limits] {
	c.t.Helper()
	return call(c.ledger, governor.ExtendBudget, input(c, in))
}

func (c caller) snapshot() *schema.Snapshot {
	c.t.Helper()
	return call(c.ledger, governor.Snapshot, schema.RunParams{RunID: c.run}).unchanged()
}

func (c caller) summary() *schema.Summary {
	c.t.Helper()
	return call(c.ledger, governor.Summary, schema.RunParams{RunID: c.run}).unchanged()
}

// task opens a task that the session owns; nobody does if the session is "".
func (c caller) task(session string) int64 {
	c.t.Helper()
	task := call(c.ledger, store.Open, input(c, schema.OpenInput{Title: "a task"})).ok()
	if session != "" {
		c.claim(task.TaskID, session)
	}
	return task.TaskID
}

// claim makes the session the owner of the task.
func (c caller) claim(task int64, session string) {
	c.t.Helper()
	call(c.ledger, store.Claim, input(c, schema.ClaimInput{TaskID: task, Owner: "a worker", OwnerSession: session})).ok()
}

func (c caller) submit(task int64) {
	c.t.Helper()
	call(c.ledger, store.Submit, input(c, schema.TaskNoteInput{TaskID: task})).ok()
}

func (c caller) accept(task int64) {
	c.t.Helper()
	c.submit(task)
	call(c.ledger, store.Accept, input(c, schema.TaskNoteInput{TaskID: task})).ok()
}

func (c caller) cancel(task int64) {
	c.t.Helper()
	call(c.ledger, store.Cancel, input(c, schema.TaskNoteInput{TaskID: task})).ok()
}

// reject sends the task back, which leaves it rejected.
func (c caller) reject(task int64) {
	c.t.Helper()
	c.submit(task)
	call(c.ledger, store.Reject, input(c, schema.RejectInput{TaskID: task, Reason: "not good enough"})).ok()
}

// rework sends the task back and lets the session claim it again.
func (c caller) rework(task int64, session string) {
	c.t.Helper()
	c.reject(task)
	c.claim(task, session)
}

// manage makes the task one of the other writer's workflow.
func (c caller) manage(task int64) {
	c.t.Helper()
	if c.rows("SELECT 1 FROM sqlite_schema WHERE name = 'workflow'") == "" {
		c.exec(reference.Workflow)
	}
	c.exec(fmt.Sprintf("INSERT INTO workflow VALUES (%d, 'run-1', 't', 's', 1, 1, '{}', NULL, 1, 0, 'root', '', '')", task))
}
