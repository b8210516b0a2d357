package postgres

import (
	"encoding/json"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

const limitsOfRun = "SELECT max_active, max_writers, max_created, max_retries FROM @governor_run WHERE run_digest = $1"

// Limits implements [store.Tx].
func (t *tx) Limits(run string) (schema.Limits, error) {
	l := schema.DefaultLimits()
	_, err := t.one(limitsOfRun, []any{digest(run)}, &l.MaxActive, &l.MaxWriters, &l.MaxCreated, &l.MaxRetries)
	return l, err
}

// SetLimits implements [store.Tx].
func (t *tx) SetLimits(run string, l schema.Limits) error {
	if err := t.covers(run); err != nil {
		return err
	}
	const query = "INSERT INTO @governor_run (run_id, max_active, max_writers, max_created, max_retries) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (run_digest) DO UPDATE SET max_active = excluded.max_active, max_writers = excluded.max_writers, max_created = excluded.max_created, max_retries = excluded.max_retries"
	return t.exec(query, run, l.MaxActive, l.MaxWriters, l.MaxCreated, l.MaxRetries)
}

const activeOfTask = "SELECT " + executionColumns + " FROM @governor_reservation r WHERE task_id = $1 AND state <> 'settled'"

// ActiveAdmission implements [store.Tx].
func (t *tx) ActiveAdmission(task int64) (*schema.Execution, error) {
	active := &schema.Execution{}
	found, err := t.one(activeOfTask, []any{task}, executionFields(active)...)
	if err != nil || !found {
		return nil, err
	}
	return active, nil
}

const executionColumns = "r.reservation_id, r.run_id, r.task_id, r.generation, r.state, r.mode, r.kind, r.owner_session, r.session_id, " +
	"(SELECT a.created_at FROM @governor_audit a WHERE a.reservation_id = r.reservation_id AND a.action = 'reserve' LIMIT 1)"

func executionFields(e *schema.Execution) []any {
	return []any{&e.ReservationID, &e.RunID, &e.TaskID, &e.Generation, &e.State, &e.Mode, &e.Kind, &e.OwnerSession, &e.SessionID, &e.Since}
}

const reservationColumns = "seq, reservation_id, run_id, task_id, generation, state, mode, kind, session_id, operation_key, payload, owner_session, settlement"

const (
	reservationByID        = "SELECT " + reservationColumns + " FROM @governor_reservation WHERE reservation_id = $1"
	reservationByOperation = "SELECT " + reservationColumns + " FROM @governor_reservation WHERE run_digest = $1 AND operation_digest = $2"
)

// reservations lists what a query for reservationColumns finds.
func (t *tx) reservations(query string, args ...any) ([]store.Reservation, error) {
	var list []store.Reservation
	var r store.Reservation
	fields := []any{&r.Row, &r.ReservationID, &r.RunID, &r.TaskID, &r.Generation, &r.State, &r.Mode, &r.Kind, &r.SessionID,
		&r.OperationKey, &r.Payload, &r.OwnerSession, &r.Settlement}
	err := t.each(query, args, fields, func() error {
		r.Stored = r.State
		var payload struct {
			Resources []string `json:"resources"`
		}
		if err := json.Unmarshal([]byte(r.Payload), &payload); err != nil {
			return damaged(err, "a reservation's payload is not JSON")
		}
		if r.Resources = payload.Resources; r.Resources == nil {
			r.Resources = []string{}
		}
		list = append(list, r)
		r = store.Reservation{}
		return nil
	})
	return list, err
}

func (t *tx) reservation(query string, args ...any) (*store.Reservation, error) {
	list, err := t.reservations(query, args...)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	r := &list[0]
	t.resources[r.ReservationID] = holding{r.TaskID, r.Resources}
	return r, nil
}

// Reservation implements [store.Tx].
func (t *tx) Reservation(id string) (*store.Reservation, error) {
	return t.reservation(reservationByID, id)
}

// ReservationByKey implements [store.Tx].
func (t *tx) ReservationByKey(run, operationKey string) (*store.Reservation, error) {
	return t.reservation(reservationByOperation, digest(run), digest(operationKey))
}

const (
	insertReservation = "INSERT INTO @governor_reservation (reservation_id, run_id, task_id, operation_key, payload, generation, mode, kind, state, owner_session) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING seq"
	insertAudit       = "INSERT INTO @governor_audit (run_id, reservation_id, action, role, session_id, details, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id"
	insertCharge      = "INSERT INTO @governor_retry_charge (reservation_id, rework_generation, retry_charge, source) VALUES ($1, $2, $3, $4)"
	insertHold        = "INSERT INTO @governor_hold (reservation_id, resource_key, mode) VALUES ($1, $2, $3)"
	updateReservation = "UPDATE @governor_reservation SET state = $1, owner_session = $2, session_id = $3, settlement = $4 WHERE reservation_id = $5"
	deleteHolds       = "DELETE FROM @governor_hold WHERE reservation_id = $1"
)

// InsertReservation implements [store.Tx].
func (t *tx) InsertReservation(r *store.Reservation, c schema.RetryCharge) error {
	if err := t.covers(r.RunID); err != nil {
		return err
	}
	if err := t.insert(insertReservation, &r.Row, r.ReservationID, r.RunID, r.TaskID, r.OperationKey, r.Payload, r.Generation, r.Mode, r.Kind, r.State, r.OwnerSession); err != nil {
		return err
	}
	r.Stored = r.State
	t.resources[r.ReservationID] = holding{r.TaskID, r.Resources}
	if err := t.InsertRetryCharge(c); err != nil {
		return err
	}
	for _, key := range r.Resources {
		if err := t.exec(insertHold, r.ReservationID, key, r.Mode); err != nil {
			return err
		}
	}
	return nil
}

// SaveReservation implements [store.Tx].
func (t *tx) SaveReservation(r *store.Reservation) error {
	if err := t.exec(updateReservation, r.State, r.OwnerSession, r.SessionID, r.Settlement, r.ReservationID); err != nil {
		return err
	}
	r.Stored = r.State
	if r.State != schema.Settled {
		return nil
	}
	return t.exec(deleteHolds, r.ReservationID)
}

const holdsOnResource = "SELECT h.resource_key, h.mode, " + executionColumns + " FROM @governor_hold h JOIN @governor_reservation r USING (reservation_id) WHERE h.resource_digest = $1 AND (h.mode = 'write' OR $2) ORDER BY r.seq"

// Conflicts implements [store.Tx]. A write first takes the lock on the key, so
// that nobody else can pass this check before its own hold is committed.
func (t *tx) Conflicts(key string, mode schema.Mode) ([]store.Conflict, error) {
	if t.broken == nil && t.writes {
		t.lockResources([]string{key}, mode == schema.Read)
	}
	var list []store.Conflict
	var c store.Conflict
	err := t.each(holdsOnResource, []any{digest(key), mode == schema.Write}, append([]any{&c.ResourceKey, &c.Mode}, executionFields(&c.Execution)...), func() error {
		c.ReservationID = c.Execution.ReservationID
		list = append(list, c)
		c = store.Conflict{}
		return nil
	})
	return list, err
}

const chargeOfReservation = "SELECT reservation_id, rework_generation, retry_charge, source FROM @governor_retry_charge WHERE reservation_id = $1"

// RetryCharge implements [store.Tx].
func (t *tx) RetryCharge(reservation string) (*schema.RetryCharge, error) {
	c := &schema.RetryCharge{}
	found, err := t.one(chargeOfReservation, []any{reservation}, &c.ReservationID, &c.ReworkGeneration, &c.RetryCharge, &c.Source)
	if err != nil || !found {
		return nil, err
	}
	return c, nil
}

// InsertRetryCharge implements [store.Tx].
func (t *tx) InsertRetryCharge(c schema.RetryCharge) error {
	return t.exec(insertCharge, c.ReservationID, c.ReworkGeneration, c.RetryCharge, c.Source)
}

// Unaccounted implements [store.Tx].
func (t *tx) Unaccounted() ([]store.Unaccounted, error) {
	const query = `SELECT r.reservation_id, r.task_id, r.kind, coalesce(k.evidence_generation, 0),
			coalesce((SELECT max(c.rework_generation) FROM @governor_reservation o JOIN @governor_retry_charge c USING (reservation_id) WHERE o.task_id = r.task_id), 0),
			r.generation = max(r.generation) OVER (PARTITION BY r.task_id)
		FROM @governor_reservation r LEFT JOIN @task k ON k.id = r.task_id
		WHERE NOT EXISTS (SELECT 1 FROM @governor_retry_charge c WHERE c.reservation_id = r.reservation_id)
		ORDER BY r.seq`
	var list []store.Unaccounted
	var u store.Unaccounted
	err := t.each(query, nil, []any{&u.ReservationID, &u.TaskID, &u.Kind, &u.EvidenceGeneration, &u.Recorded, &u.Newest}, func() error {
		list = append(list, u)
		return nil
	})
	return list, err
}

// AppendAudit implements [store.Tx].
func (t *tx) AppendAudit(e *schema.AuditEntry) error {
	if err := t.covers(e.RunID); err != nil {
		return err
	}
	e.CreatedAt = store.Timestamp(t.Now())
	return t.insert(insertAudit, &e.ID, e.RunID, e.ReservationID, e.Action, e.Role, e.SessionID, string(e.Details), e.CreatedAt)
}
