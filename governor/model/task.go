package model

import "github.com/dsh-taskforce/sidecar/schema"

// The rules of tasks, in the order of the table in DESIGN.md, section 5.

func (l *Ledger) openTask(p schema.OpenParams) Answer {
	l.Tasks = append(l.Tasks, Task{Task: schema.Task{
		TaskID: int64(len(l.Tasks)) + 1, Title: p.Input.Title, Note: p.Input.Note, Status: schema.TaskOpen, RunID: &p.RunID,
	}})
	return Answer{Result: l.Tasks[len(l.Tasks)-1].public()}
}

// taskCall returns the task of a task call. A refusal has a code.
func (l *Ledger) taskCall(id int64, run string) (*Task, Answer) {
	if id > int64(len(l.Tasks)) {
		return nil, refused(schema.ErrNotFound)
	}
	task := l.taskOf(id, run)
	if task == nil {
		return nil, refused(schema.ErrCrossRun)
	}
	return task, Answer{}
}

func (l *Ledger) getTask(p schema.TaskParams) Answer {
	task, refusal := l.taskCall(p.Input.TaskID, p.RunID)
	if refusal.Code != "" {
		return refusal
	}
	return Answer{Result: task.public()}
}

func (l *Ledger) claimTask(p schema.ClaimParams) Answer {
	task, refusal := l.taskCall(p.Input.TaskID, p.RunID)
	if refusal.Code != "" {
		return refusal
	}
	lead, owner := p.Authority.Role == schema.Lead, p.Input.OwnerSession
	mine := task.OwnerSession != nil && *task.OwnerSession == owner
	theirs := task.OwnerSession != nil && !mine
	reassigns := lead && task.Status == schema.TaskRejected
	switch {
	case task.Status.Terminal():
		return refused(schema.ErrTerminal)
	case !lead && owner != p.Authority.SessionID:
		return refused(schema.ErrTaskConflict)
	case task.Managed:
		return refused(schema.ErrStatus)
	case theirs && !reassigns:
		return refused(schema.ErrTaskConflict)
	case mine && task.Status == schema.TaskClaimed:
		return Answer{Result: &schema.ClaimResult{Task: task.Task, Already: true}}
	case task.Status != schema.TaskOpen && task.Status != schema.TaskRejected:
		return refused(schema.ErrStatus)
	}
	if !mine {
		label := p.Input.Owner
		task.Owner, task.OwnerSession = &label, &owner
	}
	task.Status = schema.TaskClaimed
	return Answer{Result: &schema.ClaimResult{Task: task.Task}}
}

func (l *Ledger) submitTask(p schema.TaskNoteParams) Answer {
	task, refusal := l.taskCall(p.Input.TaskID, p.RunID)
	switch {
	case refusal.Code != "":
		return refusal
	case task.Status.Terminal():
		return refused(schema.ErrTerminal)
	case !owns(task, p.Authority):
		return refused(schema.ErrTaskConflict)
	case task.Managed || task.Status == schema.TaskRejected:
		return refused(schema.ErrStatus)
	}
	task.Status = schema.TaskSubmitted
	return Answer{Result: task.public()}
}

func (l *Ledger) acceptTask(p schema.TaskNoteParams) Answer {
	task, refusal := l.taskCall(p.Input.TaskID, p.RunID)
	switch {
	case refusal.Code != "":
		return refusal
	case p.Authority.Role != schema.Lead:
		return refused(schema.ErrNotLead)
	case task.Status.Terminal():
		return refused(schema.ErrTerminal)
	case task.Managed || task.Status != schema.TaskSubmitted:
		return refused(schema.ErrStatus)
	}
	task.Status = schema.TaskAccepted
	return Answer{Result: task.public()}
}

func (l *Ledger) rejectTask(p schema.RejectParams) Answer {
	task, refusal := l.taskCall(p.Input.TaskID, p.RunID)
	switch {
	case refusal.Code != "":
		return refusal
	case p.Authority.Role != schema.Lead:
		return refused(schema.ErrNotLead)
	case task.Managed || !task.Status.Terminal() && task.Status != schema.TaskSubmitted:
		return refused(schema.ErrStatus)
	}
	reopened := task.Status.Terminal()
	task.Status = schema.TaskRejected
	task.EvidenceGeneration++
	return Answer{Result: &schema.RejectResult{Task: task.Task, Reopened: reopened}}
}

// cancelTask settles nothing: executions end by proof only.
func (l *Ledger) cancelTask(p schema.TaskNoteParams) Answer {
	task, refusal := l.taskCall(p.Input.TaskID, p.RunID)
	switch {
	case refusal.Code != "":
		return refusal
	case task.Status.Terminal():
		return refused(schema.ErrTerminal)
	case !owns(task, p.Authority):
		return refused(schema.ErrTaskConflict)
	}
	task.Status = schema.TaskCancelled
	return Answer{Result: task.public()}
}

func (t *Task) public() *schema.Task {
	public := t.Task
	return &public
}
