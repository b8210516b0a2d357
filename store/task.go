package store

import "github.com/dsh-taskforce/sidecar/schema"

// The rules of tasks: DESIGN.md, section 5, "Task rules". Each function checks
// in the order of that table and returns a [schema.Error] of its codes.

// Open opens a task in the run, unowned. Leads and workers may.
func Open(tx Tx, p *schema.OpenParams) (*schema.Task, error) {
	now := Timestamp(tx.Now())
	t := &Task{Task: schema.Task{
		Title: p.Input.Title, Note: p.Input.Note, Status: schema.TaskOpen,
		RunID: &p.RunID, CreatedAt: now, UpdatedAt: now,
	}}
	if err := tx.InsertTask(t); err != nil {
		return nil, err
	}
	return &t.Task, appendEvent(tx, t, "open", p.Authority, nil, nil)
}

// Claim makes a session the owner of a task.
func Claim(tx Tx, p *schema.ClaimParams) (*schema.ClaimResult, error) {
	t, err := taskOf(tx, p.Input.TaskID, p.RunID)
	if err != nil {
		return nil, err
	}
	already, err := mayClaim(t, p)
	if err != nil || already {
		return &schema.ClaimResult{Task: t.Task, Already: already}, err
	}
	if t.OwnerSession == nil || *t.OwnerSession != p.Input.OwnerSession {
		t.Owner, t.OwnerSession = &p.Input.Owner, &p.Input.OwnerSession
	}
	err = move(tx, t, schema.TaskClaimed, "claim", p.Authority, nil)
	return &schema.ClaimResult{Task: t.Task}, err
}

// mayClaim decides a claim. already means that the session has claimed the task before.
func mayClaim(t *Task, p *schema.ClaimParams) (already bool, err error) {
	lead, session := p.Authority.Role == schema.Lead, p.Input.OwnerSession
	if t.Status.Terminal() {
		return false, terminal(t)
	}
	if !lead && session != p.Authority.SessionID {
		return false, taskConflict(t, "a worker may claim a task for its own session only")
	}
	if t.Managed {
		return false, managed(t)
	}
	owned := t.OwnerSession != nil
	reassigns := lead && t.Status == schema.TaskRejected
	if owned && *t.OwnerSession != session && !reassigns {
		return false, taskConflict(t, "the task is owned by another session")
	}
	switch t.Status {
	case schema.TaskClaimed:
		if owned {
			return true, nil
		}
	case schema.TaskOpen, schema.TaskRejected:
		return false, nil
	}
	return false, wrongStatus(t, "claimed")
}

// Submit hands a task in.
func Submit(tx Tx, p *schema.TaskNoteParams) (*schema.Task, error) {
	t, err := taskOf(tx, p.Input.TaskID, p.RunID)
	if err != nil {
		return nil, err
	}
	switch {
	case t.Status.Terminal():
		return nil, terminal(t)
	case !ownerOrLead(t, p.Authority):
		return nil, taskConflict(t, "only the owner session or a lead may submit the task")
	case t.Managed:
		return nil, managed(t)
	case t.Status != schema.TaskOpen && t.Status != schema.TaskClaimed && t.Status != schema.TaskSubmitted:
		return nil, wrongStatus(t, "submitted")
	}
	return &t.Task, move(tx, t, schema.TaskSubmitted, "submit", p.Authority, p.Input.Note)
}

// Accept accepts a submitted task.
func Accept(tx Tx, p *schema.TaskNoteParams) (*schema.Task, error) {
	t, err := taskOf(tx, p.Input.TaskID, p.RunID)
	if err != nil {
		return nil, err
	}
	switch {
	case p.Authority.Role != schema.Lead:
		return nil, notLead(t, "accept")
	case t.Status.Terminal():
		return nil, terminal(t)
	case t.Managed:
		return nil, managed(t)
	case t.Status != schema.TaskSubmitted:
		return nil, wrongStatus(t, "accepted")
	}
	return &t.Task, move(tx, t, schema.TaskAccepted, "accept", p.Authority, p.Input.Note)
}

// Reject sends a submitted task back, or reopens a terminal one. Either costs
// the task a retry at its next admission.
func Reject(tx Tx, p *schema.RejectParams) (*schema.RejectResult, error) {
	t, err := taskOf(tx, p.Input.TaskID, p.RunID)
	if err != nil {
		return nil, err
	}
	reopened := t.Status.Terminal()
	switch {
	case p.Authority.Role != schema.Lead:
		return nil, notLead(t, "reject")
	case t.Managed:
		return nil, managed(t)
	case !reopened && t.Status != schema.TaskSubmitted:
		return nil, wrongStatus(t, "rejected")
	}
	t.EvidenceGeneration++
	err = move(tx, t, schema.TaskRejected, "reject", p.Authority, &p.Input.Reason)
	return &schema.RejectResult{Task: t.Task, Reopened: reopened}, err
}

// Cancel cancels a task. It releases nothing: executions end by proof only.
func Cancel(tx Tx, p *schema.TaskNoteParams) (*schema.Task, error) {
	t, err := taskOf(tx, p.Input.TaskID, p.RunID)
	if err != nil {
		return nil, err
	}
	switch {
	case t.Status.Terminal():
		return nil, terminal(t)
	case !ownerOrLead(t, p.Authority):
		return nil, taskConflict(t, "only the owner session or a lead may cancel the task")
	}
	return &t.Task, move(tx, t, schema.TaskCancelled, "cancel", p.Authority, p.Input.Note)
}

// Get returns a task of the run.
func Get(tx Tx, p *schema.TaskParams) (*schema.Task, error) {
	t, err := taskOf(tx, p.Input.TaskID, p.RunID)
	if err != nil {
		return nil, err
	}
	return &t.Task, nil
}

// History returns one page of a task's events.
func History(tx Tx, p *schema.TaskHistoryParams) (*schema.TaskEventsPage, error) {
	if _, err := taskOf(tx, p.Input.TaskID, p.RunID); err != nil {
		return nil, err
	}
	page := NewPage(p.Input.After, p.Input.Limit)
	events, err := tx.TaskEvents(p.Input.TaskID, page.Ahead())
	items, next := Cut(events, page, func(e schema.TaskEvent) int64 { return e.ID })
	return &schema.TaskEventsPage{Items: items, Next: next}, err
}

// List returns one page of the run's tasks.
func List(tx Tx, p *schema.ListParams) (*schema.TasksPage, error) {
	page := NewPage(p.Input.After, p.Input.Limit)
	tasks, err := tx.Tasks(p.RunID, p.Input.Status, page.Ahead())
	items, next := Cut(tasks, page, func(t schema.Task) int64 { return t.TaskID })
	return &schema.TasksPage{Items: items, Next: next}, err
}

// taskOf returns the task if it exists and belongs to the run.
func taskOf(tx Tx, id int64, run string) (*Task, error) {
	t, err := tx.Task(id)
	switch {
	case err != nil:
		return nil, err
	case t == nil:
		return nil, schema.Errorf(schema.ErrNotFound, "no task %d", id)
	case t.RunID == nil || *t.RunID != run:
		return nil, schema.Errorf(schema.ErrCrossRun, "task %d belongs to another run", id)
	}
	return t, nil
}

func ownerOrLead(t *Task, a schema.Authority) bool {
	return a.Role == schema.Lead || t.OwnerSession != nil && *t.OwnerSession == a.SessionID
}

// move sets the task's status and appends the event.
func move(tx Tx, t *Task, to schema.TaskStatus, action string, a schema.Authority, note *string) error {
	from := t.Status
	t.Status, t.UpdatedAt = to, Timestamp(tx.Now())
	if err := tx.SaveTask(t); err != nil {
		return err
	}
	return appendEvent(tx, t, action, a, &from, note)
}

func appendEvent(tx Tx, t *Task, action string, a schema.Authority, from *schema.TaskStatus, note *string) error {
	return tx.AppendTaskEvent(*t.RunID, &schema.TaskEvent{
		TaskID: t.TaskID, Action: action, Role: a.Role, SessionID: a.SessionID, From: from, To: t.Status,
		EvidenceGeneration: t.EvidenceGeneration, Note: note, CreatedAt: t.UpdatedAt,
	})
}

func taskConflict(t *Task, message string) error {
	err := schema.Errorf(schema.ErrTaskConflict, "task %d: %s", t.TaskID, message)
	err.Details.Reason = schema.ReasonOwner
	return err
}

func terminal(t *Task) error {
	err := schema.Errorf(schema.ErrTerminal, "task %d is %s, which is terminal", t.TaskID, t.Status)
	err.Details.Status = t.Status
	return err
}

func wrongStatus(t *Task, to schema.TaskStatus) error {
	err := schema.Errorf(schema.ErrStatus, "task %d is %s and cannot become %s", t.TaskID, t.Status, to)
	err.Details = schema.Details{Reason: schema.ReasonState, Status: t.Status}
	return err
}

func managed(t *Task) error {
	err := schema.Errorf(schema.ErrStatus, "task %d is managed by a workflow of the other writer", t.TaskID)
	err.Details = schema.Details{Reason: schema.ReasonWorkflow, Status: t.Status}
	return err
}

func notLead(t *Task, action string) error {
	err := schema.Errorf(schema.ErrNotLead, "only a lead may %s task %d", action, t.TaskID)
	err.Details.Reason = schema.ReasonNotLead
	return err
}
