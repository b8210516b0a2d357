package governor

import (
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// Bind records which session executes a reservation and moves it to running
// (GOVERNOR.md, "Trusted identity and API"). It is the boundary before which
// nothing of the execution may start. Repeating it with the same session is
// idempotent. It returns E_GOVERNOR_CONFLICT or E_GOVERNOR_FENCE.
func Bind(tx store.Tx, p *schema.BindParams) (*schema.Reservation, error) {
	t, err := find(tx, p.Input.ReservationID, p.Input.Generation, p.RunID, p.Authority)
	if err != nil {
		return nil, err
	}
	if err := t.latest(tx); err != nil {
		return nil, err
	}
	charge, err := tx.RetryCharge(t.reservation.ReservationID)
	if err != nil {
		return nil, err
	}
	already, err := mayBind(t, charge, p.Input.SessionID)
	if err != nil || already {
		return &t.reservation.Reservation, err
	}
	r := t.reservation
	r.State, r.SessionID, r.OwnerSession = schema.Running, &p.Input.SessionID, &p.Input.SessionID
	if err := tx.SaveReservation(r); err != nil {
		return nil, err
	}
	details := struct {
		Generation int64  `json:"generation"`
		SessionID  string `json:"session_id"`
	}{r.Generation, p.Input.SessionID}
	return &r.Reservation, record(tx, p.RunID, r.ReservationID, "bind", p.Authority, details)
}

// mayBind decides a bind. already means that the session is bound and running.
func mayBind(t *target, charge *schema.RetryCharge, session string) (already bool, err error) {
	if err := refuseTask(t.task); err != nil {
		return false, err
	}
	if err := reworkFence(t.task, charge); err != nil {
		return false, err
	}
	r := t.reservation
	switch {
	case t.task.OwnerSession == nil:
		return false, schema.Conflict(schema.ReasonUnowned, "task %d has no owner session yet", t.task.TaskID)
	case *t.task.OwnerSession != session:
		return false, schema.Conflict(schema.ReasonSession, "the session is not the owner of task %d", t.task.TaskID)
	case r.State == schema.Running && r.SessionID != nil && *r.SessionID == session:
		return true, nil
	case r.State != schema.Reserved:
		return false, wrongState(r, "bound")
	}
	return false, nil
}

// reworkFence refuses work that was admitted before the task's last rejection.
// A legacy admission never recorded its revision, so it can not be dispatched
// at all (GOVERNOR.md, "Additive retry-accounting migration").
func reworkFence(task *store.Task, charge *schema.RetryCharge) error {
	switch {
	case charge == nil || charge.Source == schema.FromLegacy:
		return fence(schema.FenceRework, nil, task.EvidenceGeneration, "the admission predates retry accounting; settle it and reserve again")
	case charge.ReworkGeneration != task.EvidenceGeneration:
		return fence(schema.FenceRework, &charge.ReworkGeneration, task.EvidenceGeneration,
			"the task was rejected or reopened since the admission; settle it and reserve again")
	}
	return nil
}
