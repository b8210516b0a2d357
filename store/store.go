// Package store keeps the durable state of the governor and its tasks.
//
// A [Store] runs functions inside transactions: Read sees one consistent
// state, Write and Submit change it wholly or not at all, and what they
// acknowledge is on the disk. Inside, a [Tx] speaks of tasks, reservations,
// charges, holds and audit entries; how they are kept is the engine's affair
// (store/sqlite, store/postgres). The rules of tasks stand here too (task.go),
// because the governor builds on them; the governor's own rules do not.
//
// Every error that a store returns is a [schema.Error] of an E_STORE code,
// except the errors of the functions it runs, which are returned as they are,
// and those of the context.
package store

import (
	"context"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
)

// Store is a ledger that several processes may share.
type Store interface {
	// Read runs fn on one consistent state. Nothing that fn writes is kept.
	Read(ctx context.Context, fn func(Tx) error) error

	// Write runs fn and makes its changes durable before it returns nil. If fn
	// returns an error, nothing of it is kept and Write returns that error.
	Write(ctx context.Context, fn func(Tx) error) error

	// Submit is Write without waiting: calls take effect in the order of their
	// submission, and done is called once, after the commit or the failure. A
	// context that ends before fn has begun drops the call; later it has no
	// effect. fn may run more than once, so it must only assign its results.
	// done must not block.
	Submit(ctx context.Context, fn func(Tx) error, done func(error))

	// WriteNow is Write for a caller that must not be kept waiting: if a write that
	// was submitted before it is unfinished, or another process is writing, it
	// does nothing and reports false. It may always do so.
	WriteNow(ctx context.Context, fn func(Tx) error) (done bool, err error)

	// Watch calls changed once at the beginning and then after commits of any
	// process, this one included, until ctx ends; several commits may share one
	// call. It returns when it can no longer tell: with nil after the end of ctx,
	// with E_STORE_CLOSED after Close.
	Watch(ctx context.Context, changed func()) error

	// Identity says which store this is and what keeps it.
	Identity() Identity

	// Close waits for what was submitted and ends the store for good: a closed
	// store answers E_STORE_CLOSED.
	Close() error
}

// Identity describes an open store.
type Identity struct {
	// ID is a UUID drawn when a sidecar first opened the store for writing.
	ID string
	// SchemaVersion is the version of the sidecar's own additions.
	SchemaVersion int64
	// Engine and EngineVersion name what keeps the store.
	Engine, EngineVersion string
	// Location is where the store is, for people. It holds no secrets.
	Location string
	// Watching is how a watch learns of commits.
	Watching schema.Watching
}

// Task is a task as its row has it.
type Task struct {
	schema.Task
	// Managed says that the other writer's workflow has the task in hand.
	Managed bool
}

// Reservation is a reservation as its row has it: the public members and what
// only the governor may see.
type Reservation struct {
	schema.Reservation
	// Row is the position in the order of admission.
	Row int64
	// Stored is the state that the row has, until SaveReservation gives it State.
	Stored schema.State
	// OperationKey is the idempotency key within the run.
	OperationKey string
	// Payload is the normalized request as text; equal requests have equal text.
	Payload string
	// OwnerSession is the task's owner captured at admission, nil if there was none.
	OwnerSession *string
	// Settlement is the normalized proof as text, nil until settled.
	Settlement *string
}

// Admissions is the admission history of a task in brief.
type Admissions struct {
	// Generation is the task's current admission generation, 0 before the first.
	Generation int64
	// ReworkGeneration is the largest evidence generation that an admission recorded, 0 before the first.
	ReworkGeneration int64
	// Charged is the sum of all retry charges.
	Charged int64
}

// Usage is what a run occupies.
type Usage struct {
	schema.Usage
	// Unaccounted says that some reservation of the run has no retry charge row.
	Unaccounted bool
}

// Conflict is a hold in the way, with the execution that has it.
type Conflict struct {
	schema.Hold
	Execution schema.Execution
}

// Unaccounted is a reservation that an older writer left without retry accounting.
type Unaccounted struct {
	ReservationID string
	TaskID        int64
	Kind          schema.Kind
	// EvidenceGeneration is the task's present one.
	EvidenceGeneration int64
	// Recorded is the largest evidence generation that the task's accounted admissions recorded.
	Recorded int64
	// Newest says that no later admission of the task is unaccounted.
	Newest bool
}

// Page bounds a listing: rows after the cursor, at most Limit of them; a Limit of 0 means all.
type Page struct {
	After int64
	Limit int64
}

// Tx is one transaction in the terms of the domain. A method that looks
// something up returns nil without an error when it is not there. After a
// method has failed, every later one fails with the same error.
type Tx interface {
	// Nested runs fn so that its changes are undone if it fails, and only they.
	Nested(fn func(Tx) error) error
	// Now is the time of the transaction.
	Now() time.Time

	Task(id int64) (*Task, error)
	// InsertTask opens a task and sets its id.
	InsertTask(t *Task) error
	// SaveTask updates status, owner, owner session, evidence generation and time.
	SaveTask(t *Task) error
	// Tasks lists the run's tasks; an empty status means every status.
	Tasks(run string, status schema.TaskStatus, page Page) ([]schema.Task, error)
	// AppendTaskEvent adds the event; its id is set by the time that the write is
	// acknowledged.
	AppendTaskEvent(run string, e *schema.TaskEvent) error
	TaskEvents(task int64, page Page) ([]schema.TaskEvent, error)

	// Limits returns the run's limits, the defaults if it was never extended.
	Limits(run string) (schema.Limits, error)
	SetLimits(run string, l schema.Limits) error
	Usage(run string) (Usage, error)
	Admissions(task int64) (Admissions, error)
	// ActiveAdmission returns the one admission of the task that is not settled.
	ActiveAdmission(task int64) (*schema.Execution, error)
	Reservation(id string) (*Reservation, error)
	ReservationByKey(run, operationKey string) (*Reservation, error)
	// InsertReservation adds the reservation, its charge and its holds; its row is
	// set by the time that the write is acknowledged.
	InsertReservation(r *Reservation, c schema.RetryCharge) error
	// SaveReservation updates state, captured owner, session and settlement, and
	// releases the holds of a settled one.
	SaveReservation(r *Reservation) error
	// Conflicts returns the holds that exclude a new hold of the mode on the key.
	Conflicts(key string, mode schema.Mode) ([]Conflict, error)
	RetryCharge(reservation string) (*schema.RetryCharge, error)
	InsertRetryCharge(c schema.RetryCharge) error
	// Unaccounted lists reservations without retry accounting, of all runs.
	Unaccounted() ([]Unaccounted, error)
	// AppendAudit adds the entry; its time is set by the store, and its id by the
	// time that the write is acknowledged.
	AppendAudit(e *schema.AuditEntry) error

	// Executions lists the run's reservations that are not settled, in the order of admission.
	Executions(run string) ([]schema.Execution, error)
	// Holds lists the run's holds, ordered by reservation, then by the bytes of the key.
	Holds(run string) ([]schema.Hold, error)
	// Reservations lists the run's reservations in the order of admission.
	Reservations(run string, page Page) ([]Reservation, error)
	// RetryCharges lists the run's charges in the order of admission, each with its cursor.
	RetryCharges(run string, page Page) ([]Charged, error)
	Audit(run string, page Page) ([]schema.AuditEntry, error)
	// Runs lists the keys of the runs that anything is known about, in the order of their bytes.
	Runs(after string, limit int64) ([]string, error)
	// Version changes whenever anything of the run has changed.
	Version(run string) (Version, error)
}

// Version tells two states of a run apart.
type Version struct {
	Audit, Event int64
	// Task is when a task of the run last changed: the other writer changes
	// tasks without leaving events.
	Task string
}

// Charged is a retry charge with its position in the order of admission and its task.
type Charged struct {
	schema.RetryCharge
	Row    int64
	TaskID int64
}

// timeLayout is ISO 8601 in UTC with milliseconds, as both writers of the store compare it.
const timeLayout = "2006-01-02T15:04:05.000Z"

// Timestamp formats t as the store keeps times.
func Timestamp(t time.Time) string { return t.UTC().Format(timeLayout) }
