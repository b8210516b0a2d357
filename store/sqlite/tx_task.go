package sqlite

import (
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

const taskColumns = "id, title, note, status, owner, owner_session, run_id, evidence_generation, created_at, updated_at"

func taskFields(t *schema.Task) []any {
	return []any{&t.TaskID, &t.Title, &t.Note, &t.Status, &t.Owner, &t.OwnerSession, &t.RunID, &t.EvidenceGeneration, &t.CreatedAt, &t.UpdatedAt}
}

// Task implements [store.Tx].
func (t *tx) Task(id int64) (*store.Task, error) {
	query := "SELECT " + taskColumns + ", 0 FROM task WHERE id = ?"
	if t.conn.workflow {
		query = "SELECT " + taskColumns + ", EXISTS (SELECT 1 FROM workflow WHERE task_id = task.id) FROM task WHERE id = ?"
	}
	row := &store.Task{}
	found, err := t.one(query, []any{id}, append(taskFields(&row.Task), &row.Managed)...)
	if err != nil || !found {
		return nil, err
	}
	return row, nil
}

// InsertTask implements [store.Tx].
func (t *tx) InsertTask(row *store.Task) (err error) {
	const query = "INSERT INTO task (title, note, status, run_id, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)"
	row.TaskID, err = t.insert(query, row.Title, row.Note, row.Status, row.RunID, row.CreatedAt, row.UpdatedAt)
	return err
}

// SaveTask implements [store.Tx].
func (t *tx) SaveTask(row *store.Task) error {
	const query = "UPDATE task SET status = ?, owner = ?, owner_session = ?, evidence_generation = ?, updated_at = ? WHERE id = ?"
	return t.exec(query, row.Status, row.Owner, row.OwnerSession, row.EvidenceGeneration, row.UpdatedAt, row.TaskID)
}

// Tasks implements [store.Tx].
func (t *tx) Tasks(run string, status schema.TaskStatus, page store.Page) ([]schema.Task, error) {
	query := "SELECT " + taskColumns + " FROM task INDEXED BY sidecar_task_run WHERE run_id = ? AND id > ? ORDER BY id LIMIT ?"
	args := []any{run, page.After, limit(page)}
	if status != "" {
		query = "SELECT " + taskColumns + " FROM task WHERE run_id = ? AND status = ? AND id > ? ORDER BY id LIMIT ?"
		args = []any{run, status, page.After, limit(page)}
	}
	var list []schema.Task
	err := t.all(query, args, func(rows *rows) error {
		var row schema.Task
		defer func() { list = append(list, row) }()
		return rows.Scan(taskFields(&row)...)
	})
	return list, err
}

// AppendTaskEvent implements [store.Tx].
func (t *tx) AppendTaskEvent(run string, e *schema.TaskEvent) (err error) {
	const query = "INSERT INTO task_event (task_id, run_id, action, role, session_id, from_status, to_status, evidence_generation, note, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
	e.ID, err = t.insert(query, e.TaskID, run, e.Action, e.Role, e.SessionID, e.From, e.To, e.EvidenceGeneration, e.Note, e.CreatedAt)
	t.conn.added.event, t.conn.added.eventAt = e.ID, e.CreatedAt
	return err
}

// TaskEvents implements [store.Tx].
func (t *tx) TaskEvents(task int64, page store.Page) ([]schema.TaskEvent, error) {
	const query = "SELECT id, task_id, action, role, session_id, from_status, to_status, evidence_generation, note, created_at FROM task_event WHERE task_id = ? AND id > ? ORDER BY id LIMIT ?"
	var list []schema.TaskEvent
	err := t.all(query, []any{task, page.After, limit(page)}, func(rows *rows) error {
		var e schema.TaskEvent
		defer func() { list = append(list, e) }()
		return rows.Scan(&e.ID, &e.TaskID, &e.Action, &e.Role, &e.SessionID, &e.From, &e.To, &e.EvidenceGeneration, &e.Note, &e.CreatedAt)
	})
	return list, err
}
