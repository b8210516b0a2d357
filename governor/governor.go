// Package governor holds the rules of the contract (GOVERNOR.md) over a
// [store.Tx]: who may be admitted, what an admission costs, which proof ends it.
//
// One file holds one method. Each function gathers facts from the transaction,
// decides with pure functions, and writes the outcome with its audit entry; it
// either returns a result whose changes the transaction keeps, or a
// [schema.Error] that says which rule refused, and then has changed nothing.
// A refusal never queues anything, and nothing is released but by proof.
//
// [Prepare] must have run on the store before the first call.
package governor

import (
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// taskOf returns the task if it is in the run, and if a worker calls, its own.
func taskOf(tx store.Tx, id int64, run string, a schema.Authority) (*store.Task, error) {
	task, err := tx.Task(id)
	switch {
	case err != nil:
		return nil, err
	case task == nil:
		return nil, schema.Conflict(schema.ReasonTaskNotFound, "no task %d", id)
	case task.RunID == nil || *task.RunID != run:
		return nil, schema.Conflict(schema.ReasonCrossRun, "task %d belongs to another run", id)
	case a.Role == schema.Worker && (task.OwnerSession == nil || *task.OwnerSession != a.SessionID):
		return nil, schema.Conflict(schema.ReasonOwner, "task %d is not owned by the worker's session", id)
	}
	return task, nil
}

// mayTouch refuses a worker that is not the owner captured at admission: after
// a reassignment the new owner does not control the old execution.
func mayTouch(r *store.Reservation, a schema.Authority) error {
	if a.Role == schema.Worker && (r.OwnerSession == nil || *r.OwnerSession != a.SessionID) {
		return schema.Conflict(schema.ReasonCapturedOwner, "the reservation was admitted for another owner session")
	}
	return nil
}

// target is what a transition acts on.
type target struct {
	reservation *store.Reservation
	task        *store.Task
}

// find returns the reservation and its task after the checks that every
// transition begins with: scope, owner, captured owner, the row's own generation.
func find(tx store.Tx, id string, generation int64, run string, a schema.Authority) (*target, error) {
	r, err := tx.Reservation(id)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, schema.Conflict(schema.ReasonReservationNotFound, "no such reservation")
	case r.RunID != run:
		return nil, schema.Conflict(schema.ReasonCrossRun, "the reservation belongs to another run")
	}
	task, err := taskOf(tx, r.TaskID, run, a)
	if err != nil {
		return nil, err
	}
	if err := mayTouch(r, a); err != nil {
		return nil, err
	}
	if r.Generation != generation {
		return nil, fence(schema.FenceReservation, &generation, r.Generation, "the reservation has generation %d, not %d", r.Generation, generation)
	}
	return &target{r, task}, nil
}

// latest refuses a reservation that is not the task's latest admission.
func (t *target) latest(tx store.Tx) error {
	admissions, err := tx.Admissions(t.task.TaskID)
	if err != nil {
		return err
	}
	own := t.reservation.Generation
	if own != admissions.Generation {
		return fence(schema.FenceAdmission, &own, admissions.Generation, "the task has admission generation %d, the reservation %d", admissions.Generation, own)
	}
	return nil
}

func fence(which schema.Fence, expected *int64, current int64, format string, args ...any) error {
	err := schema.Errorf(schema.ErrGovernorFence, format, args...)
	err.Details.Fence = &schema.FenceDetail{Fence: which, Expected: expected, Current: current}
	return err
}

func wrongState(r *store.Reservation, action string) error {
	err := schema.Conflict(schema.ReasonState, "the reservation is %s and cannot be %s", r.State, action)
	err.Details.State = r.State
	return err
}

// refuseTask refuses work on a task that admits none.
func refuseTask(task *store.Task) error {
	switch {
	case task.Status.Terminal():
		err := schema.Conflict(schema.ReasonTerminalTask, "task %d is %s, which is terminal", task.TaskID, task.Status)
		err.Details.Status = task.Status
		return err
	case task.Managed:
		return schema.Conflict(schema.ReasonWorkflow, "task %d is managed by a workflow of the other writer", task.TaskID)
	}
	return nil
}

// record appends the audit entry of a transition; details are stored as text in
// the order of their members (DESIGN.md, section 6).
func record(tx store.Tx, run, reservation, action string, a schema.Authority, details any) error {
	text, err := schema.Encode(details)
	if err != nil {
		return err
	}
	entry := &schema.AuditEntry{RunID: run, Action: action, Role: a.Role, SessionID: a.SessionID, Details: text}
	if reservation != "" {
		entry.ReservationID = &reservation
	}
	return tx.AppendAudit(entry)
}
