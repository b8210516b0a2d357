package schema

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Code is a stable error code. Its JSON-RPC number and its meaning stand in [Codes].
type Code string

// The codes, grouped as in [Codes].
const (
	ErrGovernorConflict    Code = "E_GOVERNOR_CONFLICT"
	ErrGovernorFence       Code = "E_GOVERNOR_FENCE"
	ErrBudgetExhausted     Code = "E_BUDGET_EXHAUSTED"
	ErrResourceBusy        Code = "E_RESOURCE_BUSY"
	ErrSchedulerCapability Code = "E_SCHEDULER_CAPABILITY"

	ErrStoreBusy     Code = "E_STORE_BUSY"
	ErrStoreClosed   Code = "E_STORE_CLOSED"
	ErrStoreFull     Code = "E_STORE_FULL"
	ErrStoreReadonly Code = "E_STORE_READONLY"
	ErrStoreIO       Code = "E_STORE_IO"
	ErrStoreCorrupt  Code = "E_STORE_CORRUPT"
	ErrStoreReplaced Code = "E_STORE_REPLACED"
	ErrStoreVersion  Code = "E_STORE_VERSION"
	ErrStoreConfig   Code = "E_STORE_CONFIG"
	ErrStoreUnknown  Code = "E_STORE_UNKNOWN"

	ErrNotFound     Code = "E_NOT_FOUND"
	ErrCrossRun     Code = "E_CROSS_RUN"
	ErrTerminal     Code = "E_TERMINAL"
	ErrStatus       Code = "E_STATUS"
	ErrTaskConflict Code = "E_TASK_CONFLICT"
	ErrNotLead      Code = "E_NOT_LEAD"
	ErrInput        Code = "E_INPUT"

	ErrParse          Code = "E_PARSE"
	ErrInvalidRequest Code = "E_INVALID_REQUEST"
	ErrMethodNotFound Code = "E_METHOD_NOT_FOUND"
	ErrInternal       Code = "E_INTERNAL"
	ErrCancelled      Code = "E_CANCELLED"
	ErrShuttingDown   Code = "E_SHUTTING_DOWN"
)

// InvalidParams is the JSON-RPC number of every error whose cause is that the
// parameters break their schema, whatever its code.
const InvalidParams = -32602

// CodeSpec declares one error code.
type CodeSpec struct {
	Code Code
	// Number is the JSON-RPC error code.
	Number int
	// Retryable says that the same call may succeed later without anything being changed by hand.
	Retryable bool
	// Doc says when the code is answered.
	Doc string
}

// Codes is the error table, the only place where a code is declared.
var Codes = []CodeSpec{
	{ErrGovernorConflict, -32001, false, "Invalid input, scope, owner, operation or state. -32602 if the parameters break the schema."},
	{ErrGovernorFence, -32002, false, "A stale admission or rework generation."},
	{ErrBudgetExhausted, -32003, false, "A limit of the run or of the task is reached."},
	{ErrResourceBusy, -32004, false, "An incompatible hold on a resource."},
	{ErrSchedulerCapability, -32005, false, "The native adapter lacks the capabilities listed in `blockers`."},
	{ErrShuttingDown, -32006, false, "The sidecar was asked to shut down and takes no new calls."},
	{ErrStoreBusy, -32010, true, "The write lock was not had, or no server that can write was reached, within the busy timeout."},
	{ErrStoreClosed, -32011, false, "The store is closed."},
	{ErrStoreFull, -32012, false, "The disk is full; nothing of the call was kept."},
	{ErrStoreReadonly, -32013, false, "The store cannot be written."},
	{ErrStoreIO, -32014, false, "The disk, or the database server, failed to read or write."},
	{ErrStoreCorrupt, -32015, false, "The database or its log is damaged, was cut off, or is none."},
	{ErrStoreReplaced, -32016, false, "The database, its log or its index was removed or swapped under the sidecar, or another ledger was restored over it."},
	{ErrStoreVersion, -32017, false, "The store was written by a newer version."},
	{ErrStoreConfig, -32018, false, "Bad options, a file system that cannot keep locks, or a database server that refuses the role."},
	{ErrStoreUnknown, -32019, false, "The connection to the database was lost during the commit, so nobody knows whether the call took effect. Repeating a reserve, bind, markUnknown or settle finds out."},
	{ErrNotFound, -32021, false, "No such task."},
	{ErrCrossRun, -32022, false, "The task belongs to another run."},
	{ErrTerminal, -32023, false, "The task is in a terminal state."},
	{ErrStatus, -32024, false, "The task's status does not allow the call."},
	{ErrTaskConflict, -32025, false, "The task belongs to another session."},
	{ErrNotLead, -32026, false, "Only a lead may make the call."},
	{ErrInput, InvalidParams, false, "The parameters break the schema."},
	{ErrParse, -32700, false, "The frame is not strict JSON."},
	{ErrInvalidRequest, -32600, false, "The frame is not a request that can be served."},
	{ErrMethodNotFound, -32601, false, "No such method."},
	{ErrInternal, -32603, false, "A fault of the sidecar; its log tells more."},
	{ErrCancelled, -32800, false, "The request was cancelled before it began."},
}

// Spec returns the declaration of c.
func (c Code) Spec() CodeSpec {
	for _, spec := range Codes {
		if spec.Code == c {
			return spec
		}
	}
	panic(fmt.Sprintf("schema: undeclared error code %q", string(c)))
}

// Reason is a stable token that says which rule a conflict breaks.
type Reason string

// The reasons of [ErrGovernorConflict], [ErrStatus] and [ErrTaskConflict].
const (
	ReasonTaskNotFound        Reason = "task_not_found"
	ReasonReservationNotFound Reason = "reservation_not_found"
	ReasonCrossRun            Reason = "cross_run"
	ReasonOwner               Reason = "owner"
	ReasonCapturedOwner       Reason = "captured_owner"
	ReasonOperationKey        Reason = "operation_key"
	ReasonTerminalTask        Reason = "terminal_task"
	ReasonActiveAdmission     Reason = "active_admission"
	ReasonAccounting          Reason = "accounting"
	ReasonWorkflow            Reason = "workflow"
	ReasonUnowned             Reason = "unowned"
	ReasonSession             Reason = "session"
	ReasonState               Reason = "state"
	ReasonProof               Reason = "proof"
	ReasonNotLead             Reason = "not_lead"
	ReasonLimits              Reason = "limits"
	ReasonParameters          Reason = "parameters"
	ReasonPinned              Reason = "pinned"
	ReasonProtocol            Reason = "protocol"
)

// ErrorData is the `data` member of every error.
type ErrorData struct {
	// The stable error code.
	Code Code `json:"code"`
	// True if the same call may succeed later without anything being changed by hand.
	Retryable bool `json:"retryable"`
	Details
}

// Details is what a person or program needs to act on a refusal. Which members
// are present depends on the code.
type Details struct {
	// A stable token for the rule that was broken.
	Reason Reason `json:"reason,omitempty"`
	// Where the parameters break their schema.
	Violations []Violation `json:"violations,omitempty"`
	// The limit that is reached, and who uses it.
	Budget *BudgetDetail `json:"budget,omitempty"`
	// Who holds the resources that were asked for.
	Holders []Holder `json:"holders,omitempty"`
	// Which fence refused, and both generations.
	Fence *FenceDetail `json:"fence,omitempty"`
	// The execution in the way.
	Execution *Execution `json:"execution,omitempty"`
	// The task's status, where it is in the way.
	Status TaskStatus `json:"status,omitempty"`
	// The reservation's state, where it is in the way.
	State State `json:"state,omitempty"`
	// The capabilities that are missing.
	Blockers []Blocker `json:"blockers,omitempty"`
	// The call of a transaction that failed.
	Call *FailedCall `json:"call,omitempty"`
	// The protocol versions that are served.
	Supported []int64 `json:"supported,omitempty"`
	// The id of the request that is refused, where the error cannot carry it.
	ID jsontext.Value `json:"id,omitempty" rule:"id"`
}

// Violation is one way in which parameters break their schema.
type Violation struct {
	// JSON Pointer to the offending member, from the parameters.
	Pointer string `json:"pointer"`
	// The schema keyword that is broken.
	Rule string `json:"rule"`
	// The violation in words.
	Message string `json:"message"`
}

// LimitName names one of the [Limits].
type LimitName string

// The limits, named as in [Limits].
const (
	LimitActive  LimitName = "max_active"
	LimitWriters LimitName = "max_writers"
	LimitCreated LimitName = "max_created"
	LimitRetries LimitName = "max_retries"
)

// BudgetDetail explains E_BUDGET_EXHAUSTED.
type BudgetDetail struct {
	// The limit that is reached.
	Limit LimitName `json:"limit"`
	// Its value.
	Max int64 `json:"max"`
	// What is used of it.
	Used int64 `json:"used"`
	// What the call would have added.
	Requested int64 `json:"requested"`
	// The executions that use it now; absent for cumulative limits.
	Users []Execution `json:"users,omitempty"`
}

// Holder explains E_RESOURCE_BUSY. For a connection that is pinned to a run,
// holders in other runs show only key, mode and state.
type Holder struct {
	// The resource.
	ResourceKey string `json:"resource_key"`
	// How it is held.
	Mode Mode `json:"mode"`
	// Where the holding reservation stands.
	State State `json:"state"`
	// The holding reservation, with its run, task and session.
	Execution *Execution `json:"execution,omitempty"`
}

// Fence names the fence that refused a stale caller.
type Fence string

// The fences, in the order in which they are checked.
const (
	FenceReservation Fence = "reservation"
	FenceAdmission   Fence = "admission"
	FenceRework      Fence = "rework"
)

// FenceDetail explains E_GOVERNOR_FENCE.
type FenceDetail struct {
	// `reservation`: the reservation has another generation. `admission`: the task has a newer
	// admission. `rework`: the task was rejected or reopened since, or the admission is legacy.
	Fence Fence `json:"fence"`
	// The generation that the call or the reservation carries; null if it was never recorded.
	Expected *int64 `json:"expected"`
	// The generation that stands in the store.
	Current int64 `json:"current"`
}

// Blocker is a capability that native execution needs and does not have.
type Blocker struct {
	// H01 to H06.
	Code string `json:"code"`
	// The evidence that is required.
	Capability string `json:"capability"`
}

// FailedCall names the call that made a transaction fail.
type FailedCall struct {
	// Its position in `calls`, from 0.
	Index int64 `json:"index"`
	// Its method.
	Method string `json:"method"`
}

// Error is a refusal or fault in the project's own words. It is what store and
// governor return, and what rpc maps to the wire.
type Error struct {
	Code    Code
	Message string
	Details Details
	// Err is the cause. It is for the log only and never reaches the wire.
	Err error
}

// Errorf returns an Error of the given code without a cause.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Conflict returns an [ErrGovernorConflict] of the given reason.
func Conflict(reason Reason, format string, args ...any) *Error {
	e := Errorf(ErrGovernorConflict, format, args...)
	e.Details.Reason = reason
	return e
}

func (e *Error) Error() string {
	text := string(e.Code) + ": " + e.Message
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Data returns the `data` member that the error shows on the wire.
func (e *Error) Data() ErrorData {
	return ErrorData{Code: e.Code, Retryable: e.Code.Spec().Retryable, Details: e.Details}
}

// Number returns the JSON-RPC code that the error shows on the wire.
func (e *Error) Number() int {
	if e.Details.Reason == ReasonParameters {
		return InvalidParams
	}
	return e.Code.Spec().Number
}
