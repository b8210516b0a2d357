package schema

import (
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Flags say how a method is treated.
type Flags uint8

const (
	// Mutates marks a method that changes the store. Sent as a notification it is not executed.
	Mutates Flags = 1 << iota
	// Composes marks a method that `store.transaction` may contain.
	Composes
	// Resends marks a method that a client may send again when its sidecar died,
	// because repeating it cannot take effect twice.
	Resends
	// Session marks a method about the connection itself, which needs no store.
	Session
)

// Spec is one line of the method table without its Go types.
type Spec struct {
	Name  string
	Doc   string
	Flags Flags
	// Errors are the codes that the method answers beside those that every method can.
	Errors []Code
	// Params and Result are the Go types of both sides.
	Params, Result reflect.Type
}

// Is reports whether the method has the flag.
func (s *Spec) Is(f Flags) bool { return s.Flags&f != 0 }

// InvalidCode is the code of parameters that break the method's schema.
func (s *Spec) InvalidCode() Code {
	if strings.HasPrefix(s.Name, "governor.") {
		return ErrGovernorConflict
	}
	return ErrInput
}

// Method is one line of the method table with its Go types, so that a handler
// of the wrong type does not compile.
type Method[Params, Result any] struct{ *Spec }

// Methods is the method table in the order of its declaration.
var Methods []*Spec

func method[P, R any](name string, flags Flags, errors []Code, doc string) Method[P, R] {
	spec := &Spec{Name: name, Doc: doc, Flags: flags, Errors: errors, Params: reflect.TypeFor[P](), Result: reflect.TypeFor[R]()}
	Methods = append(Methods, spec)
	return Method[P, R]{spec}
}

// Groups of codes that methods share.
var (
	conflicts  = []Code{ErrGovernorConflict}
	fences     = []Code{ErrGovernorConflict, ErrGovernorFence}
	admissions = []Code{ErrGovernorConflict, ErrGovernorFence, ErrBudgetExhausted, ErrResourceBusy}
	taskReads  = []Code{ErrInput, ErrNotFound, ErrCrossRun}
	taskWrites = []Code{ErrInput, ErrNotFound, ErrCrossRun, ErrTerminal, ErrStatus, ErrTaskConflict}
	taskLeads  = []Code{ErrInput, ErrNotFound, ErrCrossRun, ErrTerminal, ErrStatus, ErrNotLead}
	inputs     = []Code{ErrInput}
)

// The method table: name, flags, errors, meaning.
var (
	Reserve       = method[ReserveParams, Reservation]("governor.reserve", Mutates|Composes|Resends, admissions, "Admits one execution of a task, or refuses and says why.")
	Bind          = method[BindParams, Reservation]("governor.bind", Mutates|Composes|Resends, fences, "Records which session executes a reservation, before its effects can start.")
	MarkUnknown   = method[MarkUnknownParams, Reservation]("governor.markUnknown", Mutates|Composes|Resends, fences, "Records that nobody knows whether an execution still runs; everything it occupies stays occupied.")
	Settle        = method[SettleParams, Reservation]("governor.settle", Mutates|Composes|Resends, fences, "Ends a reservation by proof that its execution is over, and releases what it holds.")
	ExtendBudget  = method[ExtendBudgetParams, Limits]("governor.extendBudget", Mutates|Composes, conflicts, "Raises limits of a run; a lead only.")
	GetSnapshot   = method[RunParams, Snapshot]("governor.snapshot", Composes|Resends, conflicts, "Returns everything the store retains about a run, in one consistent read.")
	NativeAdapter = method[AnyParams, Empty]("governor.nativeAdapter", Session|Resends, []Code{ErrSchedulerCapability}, "Always refuses, with the capabilities that native execution would need.")
	Check         = method[ReserveParams, CheckResult]("governor.check", Composes|Resends, conflicts, "Says what governor.reserve would answer now, with every obstacle and the charge, and changes nothing.")
	GetSummary    = method[RunParams, Summary]("governor.summary", Composes|Resends, conflicts, "Returns the bounded view of a run: limits, usage, active and unknown work, holds.")
	History       = method[HistoryParams, HistoryPage]("governor.history", Composes|Resends, conflicts, "Returns one page of a run's history.")
	Runs          = method[RunsParams, RunsPage]("governor.runs", Composes|Resends, conflicts, "Returns one page of the store's runs with their counts.")
	Watch         = method[RunParams, WatchResult]("governor.watch", Resends, conflicts, "Asks for a governor.changed notification whenever any process changes the run.")
	Unwatch       = method[RunParams, WatchResult]("governor.unwatch", Resends, conflicts, "Ends a watch.")

	OpenTask    = method[OpenParams, Task]("task.open", Mutates|Composes, inputs, "Opens a task, unowned.")
	ClaimTask   = method[ClaimParams, ClaimResult]("task.claim", Mutates|Composes, taskWrites, "Makes a session the owner of a task.")
	SubmitTask  = method[TaskNoteParams, Task]("task.submit", Mutates|Composes, taskWrites, "Hands a task in.")
	AcceptTask  = method[TaskNoteParams, Task]("task.accept", Mutates|Composes, taskLeads, "Accepts a submitted task; a lead only.")
	RejectTask  = method[RejectParams, RejectResult]("task.reject", Mutates|Composes, taskLeads, "Sends a submitted or terminal task back; a lead only. Costs a retry at the next admission.")
	CancelTask  = method[TaskNoteParams, Task]("task.cancel", Mutates|Composes, taskWrites, "Cancels a task. Releases nothing: executions are settled by proof only.")
	GetTask     = method[TaskParams, Task]("task.get", Composes|Resends, taskReads, "Returns a task.")
	TaskHistory = method[TaskHistoryParams, TaskEventsPage]("task.history", Composes|Resends, taskReads, "Returns one page of a task's events.")
	ListTasks   = method[ListParams, TasksPage]("task.list", Composes|Resends, inputs, "Returns one page of the run's tasks.")

	Transaction = method[TransactionParams, TransactionResult]("store.transaction", Mutates, inputs, "Executes calls in one transaction: all of them take effect, or none. An error names the call that failed.")

	Initialize = method[InitializeParams, InitializeResult]("initialize", Resends, inputs, "Exchanges versions. Optional.")
	Ping       = method[NoParams, Empty]("ping", Session|Resends, inputs, "Answers at once.")
	Shutdown   = method[NoParams, jsontext.Value]("shutdown", Session, inputs, "Ends the service: calls received later are refused. Send the notification exit next.")
	Exit       = method[NoParams, Empty]("exit", Session, inputs, "A notification that ends the process, with status 0 after shutdown and 1 otherwise.")
	Discover   = method[NoParams, jsontext.Value]("rpc.discover", Session|Resends, inputs, "Returns this document.")
	Cancel     = method[CancelParams, Empty]("$/cancelRequest", Session, inputs, "A notification that drops a queued request. One that has begun runs to its end.")
)

// Lookup returns the method of that name, or nil.
func Lookup(name string) *Spec { return byName[name] }

var byName = func() map[string]*Spec {
	m := make(map[string]*Spec, len(Methods))
	for _, s := range Methods {
		m[s.Name] = s
	}
	return m
}()
