package schema

// TaskStatus is where a task stands.
type TaskStatus string

// The statuses that task calls set. The other writer of the store also knows
// the terminal statuses `done`, `partial` and `failed`.
const (
	TaskOpen      TaskStatus = "open"
	TaskClaimed   TaskStatus = "claimed"
	TaskSubmitted TaskStatus = "submitted"
	TaskAccepted  TaskStatus = "accepted"
	TaskRejected  TaskStatus = "rejected"
	TaskCancelled TaskStatus = "cancelled"
	TaskDone      TaskStatus = "done"
	TaskPartial   TaskStatus = "partial"
	TaskFailed    TaskStatus = "failed"
)

// Terminal reports whether a task of this status admits no further work.
func (s TaskStatus) Terminal() bool {
	switch s {
	case TaskAccepted, TaskCancelled, TaskDone, TaskPartial, TaskFailed:
		return true
	}
	return false
}

// Task is a unit of work that executions are admitted for.
type Task struct {
	// Its identity.
	TaskID int64 `json:"task_id"`
	// What is to be done.
	Title string `json:"title"`
	// What it was opened with beside the title.
	Note *string `json:"note"`
	// Where it stands.
	Status TaskStatus `json:"status"`
	// The label of its owner.
	Owner *string `json:"owner"`
	// The real session of its owner; null while nobody has claimed it.
	OwnerSession *string `json:"owner_session"`
	// The run it belongs to; null if another writer left it unset.
	RunID *string `json:"run_id"`
	// How often it was rejected or reopened; each increase costs a retry at the next admission.
	EvidenceGeneration int64 `json:"evidence_generation"`
	// When it was opened, in UTC, ISO 8601 with milliseconds.
	CreatedAt string `json:"created_at"`
	// When it last changed.
	UpdatedAt string `json:"updated_at"`
}

// OpenInput opens a task.
type OpenInput struct {
	// What is to be done.
	Title string `json:"title" rule:"nonblank"`
	// Anything beside the title.
	Note *string `json:"note,omitempty"`
}

// ClaimInput makes a session the owner of a task.
type ClaimInput struct {
	// The task.
	TaskID int64 `json:"task_id" jsonschema:"minimum=1"`
	// A label for people.
	Owner string `json:"owner" rule:"nonblank"`
	// The real session that will own it.
	OwnerSession string `json:"owner_session" rule:"nonblank"`
}

// TaskNoteInput names a task and, optionally, why the call is made.
type TaskNoteInput struct {
	// The task.
	TaskID int64 `json:"task_id" jsonschema:"minimum=1"`
	// Kept in the task's history; the task's own note stays as it is.
	Note *string `json:"note,omitempty"`
}

// RejectInput sends a task back.
type RejectInput struct {
	// The task.
	TaskID int64 `json:"task_id" jsonschema:"minimum=1"`
	// Why; kept in the task's history.
	Reason string `json:"reason" rule:"nonblank"`
}

// TaskInput names a task.
type TaskInput struct {
	// The task.
	TaskID int64 `json:"task_id" jsonschema:"minimum=1"`
}

// TaskHistoryInput asks for one page of a task's events.
type TaskHistoryInput struct {
	// The task.
	TaskID int64 `json:"task_id" jsonschema:"minimum=1"`
	// The cursor of the page before; 0 or absent for the first page.
	After int64 `json:"after,omitzero" jsonschema:"minimum=0"`
	// Most items to return; 100 if absent.
	Limit int64 `json:"limit,omitzero" jsonschema:"minimum=1,maximum=1000"`
}

// ListInput asks for one page of the run's tasks.
type ListInput struct {
	// The cursor of the page before; 0 or absent for the first page.
	After int64 `json:"after,omitzero" jsonschema:"minimum=0"`
	// Most items to return; 100 if absent.
	Limit int64 `json:"limit,omitzero" jsonschema:"minimum=1,maximum=1000"`
	// Only tasks of this status; every task if absent.
	Status TaskStatus `json:"status,omitempty"`
}

// The parameters of the task calls.
type (
	OpenParams        = Call[OpenInput]
	ClaimParams       = Call[ClaimInput]
	TaskNoteParams    = Call[TaskNoteInput]
	RejectParams      = Call[RejectInput]
	TaskParams        = Call[TaskInput]
	TaskHistoryParams = Call[TaskHistoryInput]
	ListParams        = Call[ListInput]
)

// ClaimResult is a claimed task.
type ClaimResult struct {
	Task
	// True if the session had claimed it before, so that nothing changed.
	Already bool `json:"already"`
}

// RejectResult is a rejected task.
type RejectResult struct {
	Task
	// True if the task was terminal before.
	Reopened bool `json:"reopened"`
}

// TaskEvent is one change of a task.
type TaskEvent struct {
	// Its position in the store's task history.
	ID int64 `json:"id"`
	// The task.
	TaskID int64 `json:"task_id"`
	// The name of the method, such as `claim`.
	Action string `json:"action"`
	// The role that acted.
	Role Role `json:"role"`
	// The session that acted.
	SessionID string `json:"session_id"`
	// The status before; null when the task was opened.
	From *TaskStatus `json:"from"`
	// The status after.
	To TaskStatus `json:"to"`
	// The task's evidence generation after the change.
	EvidenceGeneration int64 `json:"evidence_generation"`
	// The note or reason given with the call.
	Note *string `json:"note"`
	// When, in UTC, ISO 8601 with milliseconds.
	CreatedAt string `json:"created_at"`
}

// TaskEventsPage is a page of a task's events, oldest first.
type TaskEventsPage struct {
	// The items of this page.
	Items []TaskEvent `json:"items"`
	// The cursor of the next page; null at the end.
	Next *int64 `json:"next"`
}

// TasksPage is a page of tasks, oldest first.
type TasksPage struct {
	// The items of this page.
	Items []Task `json:"items"`
	// The cursor of the next page; null at the end.
	Next *int64 `json:"next"`
}
