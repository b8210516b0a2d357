package sqlite

import (
	"database/sql"
	"errors"
	"maps"

	"github.com/dsh-taskforce/sidecar/schema"
)

// What holds of each reservation, and of the admissions of each task in their order.
var (
	reservationKeys    = &promise{"reservation_keys", Fault, "no key is blank", "reservations with a blank key"}
	reservationSession = &promise{"reservation_session", Fault, "running work has a session, and reserved work none", "reservations whose session does not fit their state"}
	reservationProof   = &promise{"reservation_settlement", Fault, "settled work has a proof that fits it, and other work none", "reservations whose proof does not fit their state"}
	reservationPayload = &promise{"reservation_payload", Fault, "every payload is what was admitted, as the contract prints it", "reservations whose payload is not what was admitted"}
	reservationTask    = &promise{"reservation_task", Fault, "every reservation has its task, in its own run", "reservations that nothing can settle, because their task is gone or in another run"}
	oneActive          = &promise{"one_active", Fault, "no task has two active admissions", "tasks with more than one active admission"}
	activeLatest       = &promise{"active_latest", Fault, "active work is the latest admission of its task", "active work that a later admission has overtaken"}
	generations        = &promise{"generations", Fault, "the admission generations of every task run from 1 without a gap", "tasks that have lost or doubled an admission"}
	chargeValues       = &promise{"charge_values", Fault, "every retry charge fits its task", "retry charges that cannot be"}
	chargeAmount       = &promise{"charge_amount", Fault, "every admission was charged for its kind and its task's rework", "retry charges that are too small or too large"}
	limitRetries       = &promise{"limit_retries", Fault, "no task has been admitted past its limit of retries", "admissions past the limit of retries"}
	holdsComplete      = &promise{"holds_complete", Fault, "active work holds what it was admitted for", "active work that does not hold what it was admitted for"}

	admissionPromises = []*promise{reservationKeys, reservationSession, reservationProof, reservationPayload, reservationTask,
		oneActive, activeLatest, generations, chargeValues, chargeAmount, limitRetries, holdsComplete}
)

// admission is a reservation with its charge.
type admission struct {
	id, run, key, payload, mode, kind, state string
	task, generation                         int64
	owner, session, settlement               *string
	charged                                  bool
	rework, charge                           int64
	source                                   string
}

// admissionColumns survive values of the wrong type, which other checks name.
const admissionColumns = `coalesce(r.reservation_id, ''), coalesce(r.run_id, ''), coalesce(CAST(r.task_id AS INTEGER), 0), coalesce(r.operation_key, ''),
	coalesce(r.payload, ''), coalesce(CAST(r.generation AS INTEGER), 0), coalesce(r.mode, ''), coalesce(r.kind, ''), coalesce(r.state, ''),
	r.owner_session, r.session_id, r.settlement,
	c.reservation_id IS NOT NULL, coalesce(CAST(c.rework_generation AS INTEGER), 0), coalesce(CAST(c.retry_charge AS INTEGER), 0), coalesce(c.source, '')`

func (a *admission) fields() []any {
	return []any{&a.id, &a.run, &a.task, &a.key, &a.payload, &a.generation, &a.mode, &a.kind, &a.state,
		&a.owner, &a.session, &a.settlement, &a.charged, &a.rework, &a.charge, &a.source}
}

func (a *admission) active() bool { return a.state != string(schema.Settled) }

// boundTo is its session, "" if it has none.
func (a *admission) boundTo() string {
	if a.session == nil {
		return ""
	}
	return *a.session
}

// explicit is what the admission costs for being called a retry.
func (a *admission) explicit() int64 {
	if a.kind == string(schema.Retry) {
		return 1
	}
	return 0
}

// admissions looks at every reservation, and at each task's in their order.
func (v *verification) admissions() error {
	held, err := v.holds()
	if err = classify(err, "the holds cannot be read"); isDamage(err) {
		v.unanswered(holdsComplete, err)
		held = nil
	} else if err != nil {
		return err
	}
	h := &history{v: v}
	const query = `SELECT ` + admissionColumns + `, k.run_id, coalesce(CAST(k.evidence_generation AS INTEGER), 0), coalesce(CAST(l.max_retries AS INTEGER), 0)
		FROM governor_reservation r LEFT JOIN governor_retry_charge c ON c.reservation_id = r.reservation_id
			LEFT JOIN task k ON k.id = r.task_id LEFT JOIN governor_run l ON l.run_id = r.run_id
		ORDER BY r.task_id, r.generation, r.rowid`
	err = v.each(query, func(rows *sql.Rows) error {
		var a admission
		var run sql.NullString
		var evidence, retries int64
		if err := rows.Scan(append(a.fields(), &run, &evidence, &retries)...); err != nil {
			return err
		}
		v.reservation(&a, run, evidence)
		if held != nil && a.active() {
			v.heldBy(&a, held[a.id])
		}
		if retries == 0 {
			retries = schema.DefaultLimits().MaxRetries
		}
		h.add(&a, retries)
		return nil
	})
	h.close()
	return err
}

// reservation checks what one row says on its own, and against its task.
func (v *verification) reservation(a *admission, run sql.NullString, evidence int64) {
	broken := func(p *promise, explanation string, args ...any) {
		v.breach(p, "governor_reservation", a.id, explanation, args...)
	}
	if blank(a.id) || blank(a.run) || blank(a.key) {
		broken(reservationKeys, "its id %q, run %q or operation key %q is blank", a.id, a.run, a.key)
	}
	if !run.Valid || run.String != a.run {
		broken(reservationTask, "there is no task %d in the run %q", a.task, a.run)
	} else if a.charged && a.rework > evidence {
		v.breach(chargeValues, "governor_retry_charge", a.id, "it was charged for rework %d, but its task has seen %d", a.rework, evidence)
	}
	if err := a.sessionFits(); err != nil {
		broken(reservationSession, "%v", err)
	}
	if err := a.proofFits(); err != nil {
		broken(reservationProof, "%v", err)
	}
	if err := a.payloadFits(); err != nil {
		broken(reservationPayload, "%v", err)
	}
	if a.charged && (a.rework < 0 || a.charge < 0 || a.source != string(schema.FromAdmission) && a.source != string(schema.FromLegacy)) {
		v.breach(chargeValues, "governor_retry_charge", a.id, "its rework %d, charge %d or source %q cannot be", a.rework, a.charge, a.source)
	}
}

func (a *admission) sessionFits() error {
	switch {
	case a.state == string(schema.Running) && a.session == nil:
		return errors.New("it is running without a session")
	case a.state == string(schema.Reserved) && a.session != nil:
		return errors.New("it is only reserved, but has a session")
	case a.session != nil && (a.owner == nil || *a.owner != *a.session):
		return errors.New("it is bound to another session than its captured owner")
	}
	return nil
}

func (a *admission) proofFits() error {
	switch {
	case a.active() && a.settlement != nil:
		return errors.New("it has a proof, but is not settled")
	case !a.active() && a.settlement == nil:
		return errors.New("it is settled without a proof")
	case a.settlement == nil:
		return nil
	}
	proof, err := readProof(*a.settlement)
	if err == nil && proof.Kind == schema.NeverStarted && a.session != nil {
		return errors.New("it was bound, but is settled as never started")
	}
	return err
}

// payloadFits compares the payload with the columns. It keeps the generation
// that was expected, one less than the one that was given.
func (a *admission) payloadFits() error {
	r, err := readRequest(a.payload)
	if err != nil {
		return err
	}
	if r.TaskID != a.task || r.Generation != a.generation-1 || string(r.Mode) != a.mode || string(r.Kind) != a.kind {
		return errors.New("its payload asks for another task, generation, mode or kind than the row has")
	}
	return nil
}

// heldBy compares the holds of active work with what it was admitted for.
func (v *verification) heldBy(a *admission, held map[string]string) {
	request, err := readRequest(a.payload)
	if err != nil {
		return // nobody knows what it was admitted for, which is a finding already
	}
	want := map[string]string{}
	for _, key := range request.Resources {
		want[key] = a.mode
	}
	if !maps.Equal(held, want) {
		v.breach(holdsComplete, "governor_reservation", a.id, "it is %s and was admitted to %s %d resources, but has %d holds, or others", a.state, a.mode, len(want), len(held))
	}
}

// holds returns for every reservation the resources that it holds, each with its mode.
func (v *verification) holds() (map[string]map[string]string, error) {
	held := map[string]map[string]string{}
	err := v.each("SELECT coalesce(reservation_id, ''), coalesce(resource_key, ''), coalesce(mode, '') FROM governor_hold", func(rows *sql.Rows) error {
		var id, key, mode string
		if err := rows.Scan(&id, &key, &mode); err != nil {
			return err
		}
		if held[id] == nil {
			held[id] = map[string]string{}
		}
		held[id][key] = mode
		return nil
	})
	return held, err
}
