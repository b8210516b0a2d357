package postgres

import (
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

const taskColumns = "id, title, note, status, owner, owner_session, run_id, evidence_generation, created_at, updated_at"

func taskFields(t *schema.Task) []any {
	return []any{&t.TaskID, &t.Title, &t.Note, &t.Status, &t.Owner, &t.OwnerSession, &t.RunID, &t.EvidenceGeneration, &t.CreatedAt, &t.UpdatedAt}
}

const taskByID = "SELECT " + taskColumns + ", EXISTS (SELECT 1 FROM @workflow WHERE task_id = task.id) FROM @task WHERE id = $1"

// Task implements [store.Tx].
func (t *tx) Task(id int64) (*store.Task, error) {
	row := &store.Task{}
	found, err := t.one(taskByID, []any{id}, append(taskFields(&row.Task), &row.Managed)...)
	if err != nil || !found {
		return nil, err
	}
	return row, nil
}

// InsertTask implements [store.Tx].
func (t *tx) InsertTask(row *store.Task) error {
	if err := t.covers(*row.RunID); err != nil {
		return err
	}
	t.changes()
	const query = "INSERT INTO @task (title, note, status, run_id, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id"
	_, err := t.one(query, []any{row.Title, row.Note, row.Status, row.RunID, row.CreatedAt, row.UpdatedAt}, &row.TaskID)
	return err
}

// SaveTask implements [store.Tx].
func (t *tx) SaveTask(row *store.Task) error {
	const query = "UPDATE @task SET status = $1, owner = $2, owner_session = $3, evidence_generation = $4, updated_at = $5 WHERE id = $6"
	return t.exec(query, row.Status, row.Owner, row.OwnerSession, row.EvidenceGeneration, row.UpdatedAt, row.TaskID)
}

// Tasks implements [store.Tx].
func (t *tx) Tasks(run string, status schema.TaskStatus, page store.Page) ([]schema.Task, error) {
	query := "SELECT " + taskColumns + " FROM @task WHERE run_digest = $1 AND id > $2 ORDER BY id LIMIT $3"
	args := []any{digest(run), page.After, limit(page)}
	if status != "" {
		query = "SELECT " + taskColumns + " FROM @task WHERE run_digest = $1 AND id > $2 AND status = $4 ORDER BY id LIMIT $3"
		args = append(args, status)
	}
	var list []schema.Task
	var row schema.Task
	fields := taskFields(&row)
	err := t.each(query, args, fields, func() error {
		list = append(list, row)
		row = schema.Task{}
		return nil
	})
	return list, err
}

// AppendTaskEvent implements [store.Tx].
func (t *tx) AppendTaskEvent(run string, e *schema.TaskEvent) error {
	if err := t.covers(run); err != nil {
		return err
	}
	const query = "INSERT INTO @task_event (task_id, run_id, action, role, session_id, from_status, to_status, evidence_generation, note, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id"
	return t.insert(query, &e.ID, e.TaskID, run, e.Action, e.Role, e.SessionID, e.From, e.To, e.EvidenceGeneration, e.Note, e.CreatedAt)
}

// TaskEvents implements [store.Tx].
func (t *tx) TaskEvents(task int64, page store.Page) ([]schema.TaskEvent, error) {
	const query = "SELECT id, task_id, action, role, session_id, from_status, to_status, evidence_generation, note, created_at FROM @task_event WHERE task_id = $1 AND id > $2 ORDER BY id LIMIT $3"
	var list []schema.TaskEvent
	var e schema.TaskEvent
	fields := []any{&e.ID, &e.TaskID, &e.Action, &e.Role, &e.SessionID, &e.From, &e.To, &e.EvidenceGeneration, &e.Note, &e.CreatedAt}
	err := t.each(query, []any{task, page.After, limit(page)}, fields, func() error {
		list = append(list, e)
		e = schema.TaskEvent{}
		return nil
	})
	return list, err
}
