package sqlite

import (
	"encoding/json"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// Limits implements [store.Tx].
func (t *tx) Limits(run string) (schema.Limits, error) {
	entry, err := t.run(run)
	return entry.limits, err
}

// SetLimits implements [store.Tx].
func (t *tx) SetLimits(run string, l schema.Limits) error {
	const query = "INSERT INTO governor_run (run_id, max_active, max_writers, max_created, max_retries) VALUES (?, ?, ?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET max_active = excluded.max_active, max_writers = excluded.max_writers, max_created = excluded.max_created, max_retries = excluded.max_retries"
	if err := t.exec(query, run, l.MaxActive, l.MaxWriters, l.MaxCreated, l.MaxRetries); err != nil {
		return err
	}
	if entry, ok := t.conn.ledger.runs[run]; ok {
		entry.limits = l
		t.conn.ledger.setRun(run, entry)
	}
	return nil
}

// Usage implements [store.Tx].
func (t *tx) Usage(run string) (store.Usage, error) {
	entry, err := t.run(run)
	entry.usage.Created = entry.created
	return store.Usage{Usage: entry.usage, Unaccounted: t.conn.ledger.unaccounted[run]}, err
}

// run returns what is remembered of a run, and reads what is not.
func (t *tx) run(run string) (runEntry, error) {
	l := &t.conn.ledger
	if err := t.learn(); err != nil {
		return runEntry{}, err
	}
	entry, ok := l.runs[run]
	if ok && entry.current {
		return entry, nil
	}
	if !ok {
		var err error
		if entry, err = t.countCreated(run); err != nil {
			return entry, err
		}
	}
	const active = "SELECT count(*), coalesce(sum(mode = 'write'), 0), coalesce(sum(state = 'unknown'), 0) FROM governor_reservation INDEXED BY idx_governor_run WHERE run_id = ? AND " + isActive
	if _, err := t.one(active, []any{run}, &entry.usage.Active, &entry.usage.Writers, &entry.usage.Unknown); err != nil {
		return entry, err
	}
	entry.limits = schema.DefaultLimits()
	const limits = "SELECT max_active, max_writers, max_created, max_retries FROM governor_run WHERE run_id = ?"
	if _, err := t.one(limits, []any{run}, &entry.limits.MaxActive, &entry.limits.MaxWriters, &entry.limits.MaxCreated, &entry.limits.MaxRetries); err != nil {
		return entry, err
	}
	entry.current = true
	l.setRun(run, entry)
	return entry, nil
}

func (t *tx) learn() error {
	if *t.broken != nil {
		return *t.broken
	}
	return t.fail(t.conn.ledger.learn(t.ctx, t.conn))
}

// isActive is true of every state but settled, spelt so that the index on run and state serves it.
const isActive = "state IN ('reserved', 'running', 'unknown')"

// Admissions implements [store.Tx].
func (t *tx) Admissions(task int64) (store.Admissions, error) {
	if err := t.learn(); err != nil {
		return store.Admissions{}, err
	}
	entry, ok := t.conn.ledger.tasks[task]
	if !ok {
		var err error
		if entry, err = t.countAdmissions(task); err != nil {
			return store.Admissions{}, err
		}
		t.conn.ledger.setTask(task, entry)
	}
	return store.Admissions{Generation: entry.generation, ReworkGeneration: entry.rework, Charged: entry.charged}, nil
}

// ActiveAdmission implements [store.Tx].
func (t *tx) ActiveAdmission(task int64) (*schema.Execution, error) {
	active := &schema.Execution{}
	found, err := t.one("SELECT "+executionColumns+" FROM governor_reservation r WHERE task_id = ? AND state != 'settled'", []any{task}, executionFields(active)...)
	if err != nil || !found {
		return nil, err
	}
	return active, nil
}

const executionColumns = "r.reservation_id, r.run_id, r.task_id, r.generation, r.state, r.mode, r.kind, r.owner_session, r.session_id, " +
	"(SELECT created_at FROM governor_audit a WHERE a.reservation_id = r.reservation_id AND a.action = 'reserve' LIMIT 1)"

func executionFields(e *schema.Execution) []any {
	return []any{&e.ReservationID, &e.RunID, &e.TaskID, &e.Generation, &e.State, &e.Mode, &e.Kind, &e.OwnerSession, &e.SessionID, &e.Since}
}

const reservationColumns = "rowid, reservation_id, run_id, task_id, generation, state, mode, kind, session_id, operation_key, payload, owner_session, settlement"

// reservation scans a row of reservationColumns.
func (t *tx) reservation(scan func(...any) error) (*store.Reservation, error) {
	r := &store.Reservation{}
	if err := scan(&r.Row, &r.ReservationID, &r.RunID, &r.TaskID, &r.Generation, &r.State, &r.Mode, &r.Kind, &r.SessionID,
		&r.OperationKey, &r.Payload, &r.OwnerSession, &r.Settlement); err != nil {
		return nil, err
	}
	r.Stored = r.State
	var payload struct {
		Resources []string `json:"resources"`
	}
	if err := json.Unmarshal([]byte(r.Payload), &payload); err != nil {
		return nil, t.damaged(err, "a reservation's payload is not JSON")
	}
	if r.Resources = payload.Resources; r.Resources == nil {
		r.Resources = []string{}
	}
	return r, nil
}

func (t *tx) reservationWhere(condition string, args ...any) (*store.Reservation, error) {
	var found *store.Reservation
	err := t.all("SELECT "+reservationColumns+" FROM governor_reservation WHERE "+condition, args, func(rows *rows) (err error) {
		found, err = t.reservation(rows.Scan)
		return err
	})
	return found, err
}

// Reservation implements [store.Tx].
func (t *tx) Reservation(id string) (*store.Reservation, error) {
	return t.reservationWhere("reservation_id = ?", id)
}

// ReservationByKey implements [store.Tx].
func (t *tx) ReservationByKey(run, operationKey string) (*store.Reservation, error) {
	return t.reservationWhere("run_id = ? AND operation_key = ?", run, operationKey)
}

// InsertReservation implements [store.Tx].
func (t *tx) InsertReservation(r *store.Reservation, c schema.RetryCharge) error {
	const query = "INSERT INTO governor_reservation (reservation_id, run_id, task_id, operation_key, payload, generation, mode, kind, state, owner_session) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	row, err := t.insert(query, r.ReservationID, r.RunID, r.TaskID, r.OperationKey, r.Payload, r.Generation, r.Mode, r.Kind, r.State, r.OwnerSession)
	if err != nil {
		return err
	}
	r.Row, r.Stored = row, r.State
	if err := t.insertRetryCharge(c); err != nil {
		return err
	}
	t.conn.ledger.inserted(row, &r.Reservation, c)
	if err := t.note(r); err != nil {
		return err
	}
	for _, key := range r.Resources {
		const hold = "INSERT INTO governor_hold (reservation_id, resource_key, mode) VALUES (?, ?, ?)"
		if err := t.exec(hold, r.ReservationID, key, r.Mode); err != nil {
			return err
		}
	}
	return nil
}

// SaveReservation implements [store.Tx].
func (t *tx) SaveReservation(r *store.Reservation) error {
	const query = "UPDATE governor_reservation SET state = ?, owner_session = ?, session_id = ?, settlement = ? WHERE reservation_id = ?"
	if err := t.exec(query, r.State, r.OwnerSession, r.SessionID, r.Settlement, r.ReservationID); err != nil {
		return err
	}
	t.conn.ledger.moved(&r.Reservation, r.Stored, r.State)
	r.Stored = r.State
	if r.State != schema.Settled {
		return nil
	}
	return t.exec("DELETE FROM governor_hold WHERE reservation_id = ?", r.ReservationID)
}

// Conflicts implements [store.Tx].
func (t *tx) Conflicts(key string, mode schema.Mode) ([]store.Conflict, error) {
	const query = "SELECT h.resource_key, h.mode, " + executionColumns + " FROM governor_hold h JOIN governor_reservation r USING (reservation_id) WHERE h.resource_key = ? AND (h.mode = 'write' OR ? = 'write') ORDER BY r.rowid"
	var list []store.Conflict
	err := t.all(query, []any{key, mode}, func(rows *rows) error {
		var c store.Conflict
		err := rows.Scan(append([]any{&c.ResourceKey, &c.Mode}, executionFields(&c.Execution)...)...)
		c.ReservationID = c.Execution.ReservationID
		list = append(list, c)
		return err
	})
	return list, err
}

// RetryCharge implements [store.Tx].
func (t *tx) RetryCharge(reservation string) (*schema.RetryCharge, error) {
	c := &schema.RetryCharge{}
	const query = "SELECT reservation_id, rework_generation, retry_charge, source FROM governor_retry_charge WHERE reservation_id = ?"
	found, err := t.one(query, []any{reservation}, &c.ReservationID, &c.ReworkGeneration, &c.RetryCharge, &c.Source)
	if err != nil || !found {
		return nil, err
	}
	return c, nil
}

// InsertRetryCharge implements [store.Tx]. The reservation's row may be counted
// already, without this charge, so everything is counted again.
func (t *tx) InsertRetryCharge(c schema.RetryCharge) error {
	l := &t.conn.ledger
	l.undo = append(l.undo, l.drop)
	l.drop()
	return t.insertRetryCharge(c)
}

func (t *tx) insertRetryCharge(c schema.RetryCharge) error {
	const query = "INSERT INTO governor_retry_charge (reservation_id, rework_generation, retry_charge, source) VALUES (?, ?, ?, ?)"
	return t.exec(query, c.ReservationID, c.ReworkGeneration, c.RetryCharge, c.Source)
}

// Unaccounted implements [store.Tx].
func (t *tx) Unaccounted() ([]store.Unaccounted, error) {
	if *t.broken != nil {
		return nil, *t.broken
	}
	if charged, err := t.conn.everyoneCharged(t.ctx); err != nil || charged {
		return nil, t.fail(err)
	}
	const query = `SELECT r.reservation_id, r.task_id, r.kind, coalesce(k.evidence_generation, 0),
			coalesce((SELECT max(c.rework_generation) FROM governor_reservation o JOIN governor_retry_charge c USING (reservation_id) WHERE o.task_id = r.task_id), 0),
			r.generation = max(r.generation) OVER (PARTITION BY r.task_id)
		FROM governor_reservation r LEFT JOIN task k ON k.id = r.task_id
		WHERE NOT EXISTS (SELECT 1 FROM governor_retry_charge c WHERE c.reservation_id = r.reservation_id)
		ORDER BY r.rowid`
	var list []store.Unaccounted
	err := t.all(query, nil, func(rows *rows) error {
		var u store.Unaccounted
		defer func() { list = append(list, u) }()
		return rows.Scan(&u.ReservationID, &u.TaskID, &u.Kind, &u.EvidenceGeneration, &u.Recorded, &u.Newest)
	})
	return list, err
}

// AppendAudit implements [store.Tx].
func (t *tx) AppendAudit(e *schema.AuditEntry) (err error) {
	e.CreatedAt = store.Timestamp(t.Now())
	const query = "INSERT INTO governor_audit (run_id, reservation_id, action, role, session_id, details, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)"
	e.ID, err = t.insert(query, e.RunID, e.ReservationID, e.Action, e.Role, e.SessionID, string(e.Details), e.CreatedAt)
	t.conn.added.audit, t.conn.added.auditAt = e.ID, e.CreatedAt
	return err
}
