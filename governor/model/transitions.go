package model

import "github.com/dsh-taskforce/sidecar/schema"

// taskOf returns the task if it exists in the run.
func (l *Ledger) taskOf(id int64, run string) *Task {
	if id > int64(len(l.Tasks)) {
		return nil
	}
	task := &l.Tasks[id-1]
	if task.RunID == nil || *task.RunID != run {
		return nil
	}
	return task
}

// owns says whether the caller may act on the task: a lead on any, a worker on
// those that its session owns now.
func owns(task *Task, a schema.Authority) bool {
	return a.Role == schema.Lead || task.OwnerSession != nil && *task.OwnerSession == a.SessionID
}

// captured says whether the caller may act on the execution: a worker only if
// its session was the owner at admission, so that reassignment gives no control
// of an old execution.
func captured(r *Reservation, a schema.Authority) bool {
	return a.Role == schema.Lead || r.Owner != nil && *r.Owner == a.SessionID
}

func (l *Ledger) find(id string) *Reservation {
	for i := range l.Reservations {
		if r := &l.Reservations[i]; r.ReservationID == id {
			return r
		}
	}
	return nil
}

// target is the reservation of a transition and its task, after the checks that
// every transition begins with. A refusal has a code.
func (l *Ledger) target(id string, generation int64, run string, a schema.Authority) (*Reservation, *Task, Answer) {
	r := l.find(id)
	if r == nil || r.RunID != run {
		return nil, nil, conflict()
	}
	task := l.taskOf(r.TaskID, run)
	switch {
	case task == nil || !owns(task, a) || !captured(r, a):
		return nil, nil, conflict()
	case generation != r.Generation:
		return nil, nil, stale()
	}
	return r, task, Answer{}
}

// bind records who executes, before effects can start.
func (l *Ledger) bind(p schema.BindParams) Answer {
	r, task, refusal := l.target(p.Input.ReservationID, p.Input.Generation, p.RunID, p.Authority)
	session := p.Input.SessionID
	switch {
	case refusal.Code != "":
		return refusal
	case r.Generation != l.Generation(r.TaskID):
		return stale()
	case task.Status.Terminal() || task.Managed:
		return conflict()
	case r.Charge == nil || r.Charge.Source == schema.FromLegacy || r.Charge.ReworkGeneration != task.EvidenceGeneration:
		return stale() // rejected since the admission, or admitted before that was recorded
	case task.OwnerSession == nil || *task.OwnerSession != session:
		return conflict()
	case r.State == schema.Running && *r.SessionID == session:
		return Answer{Result: r.public()}
	case r.State != schema.Reserved:
		return conflict()
	}
	r.State, r.SessionID, r.Owner = schema.Running, &session, &session
	l.record(p.RunID, r.ReservationID, "bind", p.Authority, struct {
		Generation int64  `json:"generation"`
		SessionID  string `json:"session_id"`
	}{r.Generation, session})
	return Answer{Result: r.public()}
}

// markUnknown records that nobody knows whether the execution still runs.
// Everything that it occupies stays occupied.
func (l *Ledger) markUnknown(p schema.MarkUnknownParams) Answer {
	r, _, refusal := l.target(p.Input.ReservationID, p.Input.Generation, p.RunID, p.Authority)
	switch {
	case refusal.Code != "":
		return refusal
	case r.Generation != l.Generation(r.TaskID):
		return stale()
	case r.State == schema.Unknown:
		return Answer{Result: r.public()}
	case r.State == schema.Settled:
		return conflict()
	}
	r.State = schema.Unknown
	l.record(p.RunID, r.ReservationID, "markUnknown", p.Authority, struct {
		Generation int64  `json:"generation"`
		Reason     string `json:"reason"`
	}{r.Generation, p.Input.Reason})
	return Answer{Result: r.public()}
}

// settle ends the execution by proof: by either proof what was never bound, by
// a terminal one what was.
func (l *Ledger) settle(p schema.SettleParams) Answer {
	r, _, refusal := l.target(p.Input.ReservationID, p.Input.Generation, p.RunID, p.Authority)
	proof := p.Input.Proof
	switch {
	case refusal.Code != "":
		return refusal
	case r.State == schema.Settled && r.Proof != nil && *r.Proof == proof: // even after a newer admission
		return Answer{Result: r.public()}
	case r.State == schema.Settled:
		return conflict()
	case r.Generation != l.Generation(r.TaskID):
		return stale()
	case r.SessionID != nil && proof.Kind == schema.NeverStarted:
		return conflict()
	}
	r.State, r.Proof = schema.Settled, &proof
	l.record(p.RunID, r.ReservationID, "settle", p.Authority, struct {
		Generation int64        `json:"generation"`
		Proof      schema.Proof `json:"proof"`
	}{r.Generation, proof})
	return Answer{Result: r.public()}
}
