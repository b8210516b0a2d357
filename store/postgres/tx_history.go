package postgres

import (
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/go-json-experiment/json/jsontext"
)

// Executions implements [store.Tx].
func (t *tx) Executions(run string) ([]schema.Execution, error) {
	const query = "SELECT " + executionColumns + " FROM @governor_reservation r WHERE run_digest = $1 AND state <> 'settled' ORDER BY seq"
	var list []schema.Execution
	var e schema.Execution
	err := t.each(query, []any{digest(run)}, executionFields(&e), func() error {
		list = append(list, e)
		e = schema.Execution{}
		return nil
	})
	return list, err
}

// Holds implements [store.Tx].
func (t *tx) Holds(run string) ([]schema.Hold, error) {
	const query = "SELECT h.reservation_id, h.resource_key, h.mode FROM @governor_reservation r JOIN @governor_hold h USING (reservation_id) WHERE r.run_digest = $1 AND r.state <> 'settled' ORDER BY h.reservation_id, h.resource_key"
	var list []schema.Hold
	var h schema.Hold
	err := t.each(query, []any{digest(run)}, []any{&h.ReservationID, &h.ResourceKey, &h.Mode}, func() error {
		list = append(list, h)
		return nil
	})
	return list, err
}

// Reservations implements [store.Tx].
func (t *tx) Reservations(run string, page store.Page) ([]store.Reservation, error) {
	return t.reservations("SELECT "+reservationColumns+" FROM @governor_reservation WHERE run_digest = $1 AND seq > $2 ORDER BY seq LIMIT $3", digest(run), page.After, limit(page))
}

// RetryCharges implements [store.Tx].
func (t *tx) RetryCharges(run string, page store.Page) ([]store.Charged, error) {
	const query = "SELECT r.seq, r.task_id, c.reservation_id, c.rework_generation, c.retry_charge, c.source FROM @governor_reservation r JOIN @governor_retry_charge c USING (reservation_id) WHERE r.run_digest = $1 AND r.seq > $2 ORDER BY r.seq LIMIT $3"
	var list []store.Charged
	var c store.Charged
	fields := []any{&c.Row, &c.TaskID, &c.ReservationID, &c.ReworkGeneration, &c.RetryCharge.RetryCharge, &c.Source}
	err := t.each(query, []any{digest(run), page.After, limit(page)}, fields, func() error {
		list = append(list, c)
		return nil
	})
	return list, err
}

// Audit implements [store.Tx].
func (t *tx) Audit(run string, page store.Page) ([]schema.AuditEntry, error) {
	const query = "SELECT id, run_id, reservation_id, action, role, session_id, details, created_at FROM @governor_audit WHERE run_digest = $1 AND id > $2 ORDER BY id LIMIT $3"
	var list []schema.AuditEntry
	var e schema.AuditEntry
	var details string
	fields := []any{&e.ID, &e.RunID, &e.ReservationID, &e.Action, &e.Role, &e.SessionID, &details, &e.CreatedAt}
	err := t.each(query, []any{digest(run), page.After, limit(page)}, fields, func() error {
		if e.Details = jsontext.Value(details); !e.Details.IsValid() {
			return damaged(nil, "an audit entry's details are not JSON")
		}
		list = append(list, e)
		e = schema.AuditEntry{}
		return nil
	})
	return list, err
}

// Runs implements [store.Tx]. Each run is one step through an index of digests,
// however many rows it has; the names then make the order.
func (t *tx) Runs(after string, limit int64) ([]string, error) {
	const query = `WITH RECURSIVE
		tasks(run) AS ((SELECT run_digest FROM @task WHERE run_digest IS NOT NULL ORDER BY run_digest LIMIT 1)
			UNION ALL SELECT (SELECT run_digest FROM @task WHERE run_digest > tasks.run ORDER BY run_digest LIMIT 1) FROM tasks WHERE tasks.run IS NOT NULL),
		admitted(run) AS ((SELECT run_digest FROM @governor_reservation ORDER BY run_digest LIMIT 1)
			UNION ALL SELECT (SELECT run_digest FROM @governor_reservation WHERE run_digest > admitted.run ORDER BY run_digest LIMIT 1) FROM admitted WHERE admitted.run IS NOT NULL)
		SELECT run_id FROM (
			SELECT (SELECT run_id FROM @task WHERE run_digest = tasks.run LIMIT 1) AS run_id FROM tasks WHERE tasks.run IS NOT NULL
			UNION SELECT (SELECT run_id FROM @governor_reservation WHERE run_digest = admitted.run LIMIT 1) FROM admitted WHERE admitted.run IS NOT NULL
			UNION SELECT run_id FROM @governor_run) AS known
		WHERE run_id > $1 ORDER BY run_id LIMIT $2`
	var list []string
	var run string
	err := t.each(query, []any{after, limit}, []any{&run}, func() error {
		list = append(list, run)
		return nil
	})
	return list, err
}

// Version implements [store.Tx].
func (t *tx) Version(run string) (v store.Version, err error) {
	const query = "SELECT coalesce((SELECT max(id) FROM @governor_audit WHERE run_digest = $1), 0), coalesce((SELECT max(id) FROM @task_event WHERE run_digest = $1), 0), coalesce((SELECT max(updated_at) FROM @task WHERE run_digest = $1), '')"
	_, err = t.one(query, []any{digest(run)}, &v.Audit, &v.Event, &v.Task)
	return v, err
}
