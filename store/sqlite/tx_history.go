package sqlite

import (
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/go-json-experiment/json/jsontext"
)

// Executions implements [store.Tx].
func (t *tx) Executions(run string) ([]schema.Execution, error) {
	const query = "SELECT " + executionColumns + " FROM governor_reservation r INDEXED BY idx_governor_run WHERE run_id = ? AND " + isActive + " ORDER BY rowid"
	var list []schema.Execution
	err := t.all(query, []any{run}, func(rows *rows) error {
		var e schema.Execution
		defer func() { list = append(list, e) }()
		return rows.Scan(executionFields(&e)...)
	})
	return list, err
}

// Holds implements [store.Tx].
func (t *tx) Holds(run string) ([]schema.Hold, error) {
	const query = "SELECT h.reservation_id, h.resource_key, h.mode FROM governor_reservation r INDEXED BY idx_governor_run JOIN governor_hold h USING (reservation_id) WHERE r.run_id = ? AND r." + isActive + " ORDER BY h.reservation_id, h.resource_key"
	var list []schema.Hold
	err := t.all(query, []any{run}, func(rows *rows) error {
		var h schema.Hold
		defer func() { list = append(list, h) }()
		return rows.Scan(&h.ReservationID, &h.ResourceKey, &h.Mode)
	})
	return list, err
}

// Reservations implements [store.Tx].
func (t *tx) Reservations(run string, page store.Page) ([]store.Reservation, error) {
	const query = "SELECT " + reservationColumns + " FROM governor_reservation INDEXED BY sidecar_reservation_run WHERE run_id = ? AND rowid > ? ORDER BY rowid LIMIT ?"
	var list []store.Reservation
	err := t.all(query, []any{run, page.After, limit(page)}, func(rows *rows) error {
		r, err := t.reservation(rows.Scan)
		if err == nil {
			list = append(list, *r)
		}
		return err
	})
	return list, err
}

// RetryCharges implements [store.Tx].
func (t *tx) RetryCharges(run string, page store.Page) ([]store.Charged, error) {
	const query = "SELECT r.rowid, r.task_id, c.reservation_id, c.rework_generation, c.retry_charge, c.source FROM governor_reservation r INDEXED BY sidecar_reservation_run JOIN governor_retry_charge c USING (reservation_id) WHERE r.run_id = ? AND r.rowid > ? ORDER BY r.rowid LIMIT ?"
	var list []store.Charged
	err := t.all(query, []any{run, page.After, limit(page)}, func(rows *rows) error {
		var c store.Charged
		defer func() { list = append(list, c) }()
		return rows.Scan(&c.Row, &c.TaskID, &c.ReservationID, &c.ReworkGeneration, &c.RetryCharge.RetryCharge, &c.Source)
	})
	return list, err
}

// Audit implements [store.Tx].
func (t *tx) Audit(run string, page store.Page) ([]schema.AuditEntry, error) {
	const query = "SELECT id, run_id, reservation_id, action, role, session_id, details, created_at FROM governor_audit INDEXED BY sidecar_audit_run WHERE run_id = ? AND id > ? ORDER BY id LIMIT ?"
	var list []schema.AuditEntry
	err := t.all(query, []any{run, page.After, limit(page)}, func(rows *rows) error {
		var e schema.AuditEntry
		var details string
		if err := rows.Scan(&e.ID, &e.RunID, &e.ReservationID, &e.Action, &e.Role, &e.SessionID, &details, &e.CreatedAt); err != nil {
			return err
		}
		if e.Details = jsontext.Value(details); !e.Details.IsValid() {
			return t.damaged(nil, "an audit entry's details are not JSON")
		}
		list = append(list, e)
		return nil
	})
	return list, err
}

// Runs implements [store.Tx]. Each run is one step through each index, however
// many rows it has.
func (t *tx) Runs(after string, limit int64) ([]string, error) {
	const query = `WITH RECURSIVE next(run) AS (
			SELECT ?
			UNION ALL
			SELECT (SELECT min(run_id) FROM (
				SELECT (SELECT min(run_id) FROM governor_reservation WHERE run_id > next.run) AS run_id
				UNION ALL SELECT (SELECT min(run_id) FROM governor_run WHERE run_id > next.run)
				UNION ALL SELECT (SELECT min(run_id) FROM task WHERE run_id > next.run)))
			FROM next WHERE next.run IS NOT NULL
		)
		SELECT run FROM next WHERE run IS NOT NULL LIMIT ? OFFSET 1`
	var list []string
	err := t.all(query, []any{after, limit}, func(rows *rows) error {
		var run string
		defer func() { list = append(list, run) }()
		return rows.Scan(&run)
	})
	return list, err
}

// Version implements [store.Tx].
func (t *tx) Version(run string) (v store.Version, err error) {
	const query = "SELECT coalesce((SELECT max(id) FROM governor_audit WHERE run_id = ?1), 0), coalesce((SELECT max(id) FROM task_event WHERE run_id = ?1), 0), coalesce((SELECT max(updated_at) FROM task WHERE run_id = ?1), '')"
	_, err = t.one(query, []any{run}, &v.Audit, &v.Event, &v.Task)
	return v, err
}
