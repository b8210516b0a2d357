package governor_test

import (
	"fmt"

	"github.com/dsh-taskforce/sidecar/governor/model"
	"github.com/dsh-taskforce/sidecar/schema"
	"pgregory.net/rapid"
)

// write plays another writer of the store.
func (m *machine) write(statement string, args ...any) {
	m.steps = append(m.steps, fmt.Sprintf("the other writer: %s %v", statement, args))
	if err := m.engine.exec(statement, args...); err != nil {
		m.t.Fatalf("%s: %v", statement, err)
	}
}

// otherWriter plays the other writer of the file, most of the time one that
// knows no retry accounting.
func (m *machine) otherWriter(d draw) {
	task := &m.model.Tasks[rapid.IntRange(0, len(m.model.Tasks)-1).Draw(d.T, "task")]
	switch {
	case d.oneIn(10, "workflow"):
		m.workflowTakes(task)
	case d.oneIn(10, "ends a task"):
		m.otherWriterEnds(task, pick(d, "status", []schema.TaskStatus{schema.TaskDone, schema.TaskPartial, schema.TaskFailed}))
	default:
		m.oldBinaryAdmits(d.reserve(), pick(d, "state", []schema.State{schema.Settled, schema.Reserved, schema.Unknown}))
	}
	m.compareAll(m.sidecars[sidecarOf(d.T)])
}

// oldBinaryAdmits writes a reservation as a binary that knows no retry
// accounting: by the same rules, but without a charge.
func (m *machine) oldBinaryAdmits(p schema.ReserveParams, state schema.State) {
	attempt := m.model.Clone()
	if attempt.Do(model.Call{Method: schema.Reserve.Name, Params: p}).Code != "" || len(attempt.Reservations) == len(m.model.Reservations) {
		return // the old binary would refuse it, or knows it already
	}
	attempt.Audit = m.model.Audit
	r := &attempt.Reservations[len(attempt.Reservations)-1]
	r.Charge, r.State = nil, state
	var settlement *string
	if state == schema.Settled {
		r.Proof = &schema.Proof{Kind: schema.NeverStarted}
		settlement = new(`{"kind":"never_started"}`)
	}
	m.model = attempt
	id := fmt.Sprintf("legacy-%d", len(attempt.Reservations))
	m.real[r.ReservationID], m.modelled[id] = id, r.ReservationID
	resources, err := schema.Encode(r.Resources)
	if err != nil {
		m.t.Fatal(err)
	}
	payload := fmt.Sprintf(`{"task_id":%d,"generation":%d,"mode":"%s","kind":"%s","resources":%s}`, r.TaskID, r.Expected, r.Mode, r.Kind, resources)
	m.write("INSERT INTO governor_reservation (reservation_id, run_id, task_id, operation_key, payload, generation, mode, kind, state, owner_session, session_id, settlement) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)",
		id, r.RunID, r.TaskID, r.Key, payload, r.Generation, r.Mode, r.Kind, r.State, r.Owner, settlement)
	for _, key := range r.Resources {
		if state != schema.Settled {
			m.write("INSERT INTO governor_hold (reservation_id, resource_key, mode) VALUES (?, ?, ?)", id, key, r.Mode)
		}
	}
}

// workflowTakes puts a task in the hands of the other writer's workflow.
func (m *machine) workflowTakes(task *model.Task) {
	for _, statement := range m.engine.workflow() {
		m.write(statement, task.TaskID)
	}
	task.Managed = true
}

// otherWriterEnds gives a task a status that only the other writer gives.
func (m *machine) otherWriterEnds(task *model.Task, status schema.TaskStatus) {
	m.write("UPDATE task SET status = ? WHERE id = ?", status, task.TaskID)
	task.Status = status
}
