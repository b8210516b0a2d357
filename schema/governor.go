package schema

import "github.com/go-json-experiment/json/jsontext"

// Role says how far a caller's authority reaches (GOVERNOR.md, "Trusted identity and API").
type Role string

// The two roles. They are independent of session names: a worker whose session
// is called "lead" is still a worker.
const (
	Lead   Role = "lead"
	Worker Role = "worker"
)

// Mode says whether an execution may write the resources it lists.
type Mode string

// Reads share a resource; a write conflicts with any other hold on it.
const (
	Read  Mode = "read"
	Write Mode = "write"
)

// Kind is the host's own classification of the executor it is about to start.
type Kind string

// Only New counts against the cumulative limit of new executions; Retry charges
// the task's retry allowance at least once.
const (
	New   Kind = "new"
	Reuse Kind = "reuse"
	Retry Kind = "retry"
)

// State is where a reservation stands. All states but Settled occupy a slot and
// keep their holds.
type State string

// The states of a reservation.
const (
	Reserved State = "reserved"
	Running  State = "running"
	Unknown  State = "unknown"
	Settled  State = "settled"
)

// Authority is who calls, as the trusted host attests it. It must never be
// built from what a model wrote.
type Authority struct {
	// `lead` manages every execution of the run; `worker` only its own session's.
	Role Role `json:"role"`
	// The real session key of the caller, compared exactly, spaces included.
	SessionID string `json:"sessionId" rule:"nonblank"`
}

// Call names what is asked, the run and the authority, in the contract's own order.
type Call[Input any] struct {
	// What is asked.
	Input Input `json:"input"`
	// The root run that the call belongs to, compared exactly, spaces included.
	RunID string `json:"runId" rule:"nonblank"`
	// Who asks, as the trusted host attests it.
	Authority Authority `json:"authority"`
}

// ReserveInput asks for the admission of one execution of a task.
type ReserveInput struct {
	// Idempotency key, unique within the run. The same key with the same request
	// returns the existing reservation; with another request it is a conflict.
	OperationKey string `json:"operation_key" rule:"nonblank"`
	// The task to execute.
	TaskID int64 `json:"task_id" jsonschema:"minimum=1"`
	// The expected current admission generation of the task, 0 before its first admission.
	Generation int64 `json:"generation" jsonschema:"minimum=0"`
	// Whether the execution may write the resources it lists.
	Mode Mode `json:"mode"`
	// How the host classifies the executor.
	Kind Kind `json:"kind"`
	// Canonical identities of every resource the execution touches. Order and duplicates do not matter.
	Resources []string `json:"resources" rule:"nonblank" jsonschema:"maxItems=10000"`
}

// BindInput records which session executes a reservation, before its effects can start.
type BindInput struct {
	// The reservation to bind.
	ReservationID string `json:"reservation_id" rule:"nonblank"`
	// The generation that the reservation was returned with.
	Generation int64 `json:"generation" jsonschema:"minimum=0"`
	// The session that will execute; it must be the task's current owner session.
	SessionID string `json:"session_id" rule:"nonblank"`
}

// MarkUnknownInput records that nobody knows whether an execution still runs.
type MarkUnknownInput struct {
	// The reservation whose execution is uncertain.
	ReservationID string `json:"reservation_id" rule:"nonblank"`
	// The generation that the reservation was returned with.
	Generation int64 `json:"generation" jsonschema:"minimum=0"`
	// Why it is uncertain; kept in the audit.
	Reason string `json:"reason" rule:"nonblank"`
}

// SettleInput ends a reservation by proof that its execution is over.
type SettleInput struct {
	// The reservation to settle.
	ReservationID string `json:"reservation_id" rule:"nonblank"`
	// The generation that the reservation was returned with.
	Generation int64 `json:"generation" jsonschema:"minimum=0"`
	// The trusted host's attestation.
	Proof Proof `json:"proof"`
}

// ProofKind tells the two settlement proofs apart.
type ProofKind string

// The two proofs of GOVERNOR.md, "Settlement and recovery".
const (
	NeverStarted ProofKind = "never_started"
	Terminal     ProofKind = "terminal"
)

// Outcome is how a terminal execution ended.
type Outcome string

// The outcomes of a terminal execution.
const (
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	Cancelled Outcome = "cancelled"
)

// Proof is the trusted host's attestation that an execution is over, of either kind.
type Proof struct {
	// The members of both forms, in the order in which they are stored.

	Kind      ProofKind `json:"kind"`
	Outcome   Outcome   `json:"outcome,omitempty"`
	Quiescent bool      `json:"quiescent,omitzero"`
	Evidence  string    `json:"evidence,omitempty"`
}

// NeverStartedProof attests that the execution was never started. Only work that was never bound accepts it.
type NeverStartedProof struct {
	// Always `never_started`.
	Kind ProofKind `json:"kind" rule:"const=never_started"`
}

// TerminalProof attests that the execution and all its descendants are over and quiet.
type TerminalProof struct {
	// Always `terminal`.
	Kind ProofKind `json:"kind" rule:"const=terminal"`
	// How the execution ended.
	Outcome Outcome `json:"outcome"`
	// Always true: no process of the execution can have further effects.
	Quiescent bool `json:"quiescent" rule:"const=true"`
	// Where the host keeps the evidence of both.
	Evidence string `json:"evidence" rule:"nonblank"`
}

// ExtendBudgetInput raises limits of the run. Values are new limits, not
// increments: at least one must increase and none may decrease.
type ExtendBudgetInput struct {
	// Why the budget is extended; kept in the audit.
	Reason string `json:"reason" rule:"nonblank"`
	// New limit of active executions.
	MaxActive *int64 `json:"max_active,omitempty" jsonschema:"minimum=1"`
	// New limit of active writers.
	MaxWriters *int64 `json:"max_writers,omitempty" jsonschema:"minimum=1"`
	// New limit of executions of kind `new` over the life of the run.
	MaxCreated *int64 `json:"max_created,omitempty" jsonschema:"minimum=1"`
	// New limit of retries of each task over the life of the run.
	MaxRetries *int64 `json:"max_retries,omitempty" jsonschema:"minimum=1"`
}

// The parameters of the governor's mutations.
type (
	ReserveParams      = Call[ReserveInput]
	BindParams         = Call[BindInput]
	MarkUnknownParams  = Call[MarkUnknownInput]
	SettleParams       = Call[SettleInput]
	ExtendBudgetParams = Call[ExtendBudgetInput]
)

// RunParams names the run that a reading call is about.
type RunParams struct {
	// The root run, compared exactly, spaces included.
	RunID string `json:"runId" rule:"nonblank"`
}

// AnyParams accepts whatever is sent.
type AnyParams struct{}

// Reservation is one admitted execution of a task, as it stands now.
type Reservation struct {
	// Its identity, a UUID in lower case.
	ReservationID string `json:"reservation_id"`
	// The run it belongs to.
	RunID string `json:"run_id"`
	// The task it executes.
	TaskID int64 `json:"task_id"`
	// Its admission generation: the fence that every later call about it must carry.
	Generation int64 `json:"generation"`
	// Where it stands.
	State State `json:"state"`
	// Whether it may write its resources.
	Mode Mode `json:"mode"`
	// How the host classified the executor.
	Kind Kind `json:"kind"`
	// The session that executes it; null before it is bound.
	SessionID *string `json:"session_id"`
	// Its resources without duplicates, sorted by UTF-16 code units.
	Resources []string `json:"resources"`
}

// Limits are the budget of a run (GOVERNOR.md, "Scope and guarantees").
type Limits struct {
	// Most executions active at once, writers included; 6 unless extended.
	MaxActive int64 `json:"max_active"`
	// Most writers active at once; 2 unless extended.
	MaxWriters int64 `json:"max_writers"`
	// Most executions of kind `new` over the life of the run; 3 unless extended.
	MaxCreated int64 `json:"max_created"`
	// Most retries of each task over the life of the run; 2 unless extended.
	MaxRetries int64 `json:"max_retries"`
}

// DefaultLimits are the limits of a run that was never extended.
func DefaultLimits() Limits {
	return Limits{MaxActive: 6, MaxWriters: 2, MaxCreated: 3, MaxRetries: 2}
}

// Hold is a lock of a reservation on a resource.
type Hold struct {
	// The reservation that holds.
	ReservationID string `json:"reservation_id"`
	// The canonical identity of the resource.
	ResourceKey string `json:"resource_key"`
	// Reads share; a write excludes every other hold, across all runs.
	Mode Mode `json:"mode"`
}

// ChargeSource says how a retry charge came to be recorded.
type ChargeSource string

// The sources of a retry charge.
const (
	FromAdmission ChargeSource = "admission"
	FromLegacy    ChargeSource = "legacy"
)

// RetryCharge is the durable retry accounting of one reservation.
type RetryCharge struct {
	// The reservation that was charged.
	ReservationID string `json:"reservation_id"`
	// The task's evidence generation when the charge was recorded.
	ReworkGeneration int64 `json:"rework_generation"`
	// How many retries were charged, 0 or more; never refunded.
	RetryCharge int64 `json:"retry_charge"`
	// `admission` for ordinary admissions, `legacy` for rows migrated from before the accounting.
	Source ChargeSource `json:"source"`
}

// AuditEntry is one committed transition. The audit is append-only.
type AuditEntry struct {
	// Its position in the store's audit.
	ID int64 `json:"id"`
	// The run it belongs to.
	RunID string `json:"run_id"`
	// The reservation it is about; null for the budget.
	ReservationID *string `json:"reservation_id"`
	// The name of the method, such as `reserve` or `settle`.
	Action string `json:"action"`
	// The role that acted.
	Role Role `json:"role"`
	// The session that acted.
	SessionID string `json:"session_id"`
	// What was asked and what it cost.
	Details jsontext.Value `json:"details" rule:"object"`
	// When, in UTC, ISO 8601 with milliseconds.
	CreatedAt string `json:"created_at"`
}

// Snapshot is everything the store retains about one run, read in one transaction.
// It holds the run's full history: a diagnostic for the host, not a bounded board.
type Snapshot struct {
	// The run.
	RunID string `json:"run_id"`
	// Its limits.
	Limits Limits `json:"limits"`
	// Reservations that are not settled.
	ActiveTotal int64 `json:"active_total"`
	// Those of them that write.
	ActiveWriters int64 `json:"active_writers"`
	// Reservations of kind `new`, settled ones included.
	CreatedTotal int64 `json:"created_total"`
	// Reservations whose execution is uncertain.
	UnknownTotal int64 `json:"unknown_total"`
	// Retries charged to each task, by task id; tasks without any are left out.
	Retries map[string]int64 `json:"retries"`
	// Every reservation, in the order of admission.
	Reservations []Reservation `json:"reservations"`
	// Every hold, ordered by reservation, then by the UTF-8 bytes of the key.
	Holds []Hold `json:"holds"`
	// Every retry charge, in the order of admission.
	RetryCharges []RetryCharge `json:"retry_charges"`
	// Every transition, oldest first.
	Audit []AuditEntry `json:"audit"`
}

// Execution describes a reservation that is not settled, for whoever has to
// decide what to do about it.
type Execution struct {
	// The reservation.
	ReservationID string `json:"reservation_id"`
	// Its run.
	RunID string `json:"run_id"`
	// Its task.
	TaskID int64 `json:"task_id"`
	// Its admission generation.
	Generation int64 `json:"generation"`
	// Where it stands.
	State State `json:"state"`
	// Whether it may write.
	Mode Mode `json:"mode"`
	// How the host classified the executor.
	Kind Kind `json:"kind"`
	// The owner session captured at admission; null if the task had no owner.
	OwnerSession *string `json:"owner_session"`
	// The session that executes; null before it is bound.
	SessionID *string `json:"session_id"`
	// When it was admitted; null if the audit does not tell.
	Since *string `json:"since"`
}

// Charge is what an admission adds to its task's retry accounting.
type Charge struct {
	// The task's evidence generation that the admission would record.
	ReworkGeneration int64 `json:"rework_generation"`
	// Retries it would charge: the larger of the explicit retry and the newly observed rework.
	RetryCharge int64 `json:"retry_charge"`
	// Retries the task has been charged before.
	RetryTotal int64 `json:"retry_total"`
}

// CheckResult is what `governor.reserve` would answer now.
type CheckResult struct {
	// True if the same call to `governor.reserve` would succeed now.
	Admissible bool `json:"admissible"`
	// The reservation that the operation key already names; null if it is unused.
	Replay *Reservation `json:"replay"`
	// What the admission would charge; null if the task cannot be seen.
	Charge *Charge `json:"charge"`
	// Everything in the way, in the order in which `governor.reserve` checks it.
	Obstacles []Obstacle `json:"obstacles"`
}

// Obstacle is one refusal that `governor.check` foresees.
type Obstacle struct {
	// The refusal in words.
	Message string `json:"message"`
	ErrorData
}

// Usage counts what a run occupies.
type Usage struct {
	// Reservations that are not settled.
	Active int64 `json:"active"`
	// Those of them that write.
	Writers int64 `json:"writers"`
	// Reservations of kind `new`, settled ones included.
	Created int64 `json:"created"`
	// Reservations whose execution is uncertain.
	Unknown int64 `json:"unknown"`
}

// Remaining counts what a run may still admit.
type Remaining struct {
	// Executions that may still become active.
	Active int64 `json:"active"`
	// Writers that may still become active.
	Writers int64 `json:"writers"`
	// Executions of kind `new` that may still be admitted.
	Created int64 `json:"created"`
}

// TaskRetries is the retry account of one task.
type TaskRetries struct {
	// The task.
	TaskID int64 `json:"task_id"`
	// Retries charged so far.
	Charged int64 `json:"charged"`
	// Retries that may still be charged.
	Remaining int64 `json:"remaining"`
}

// Summary is the bounded view of a run: what is active, not what has been.
type Summary struct {
	// The run.
	RunID string `json:"run_id"`
	// Its limits.
	Limits Limits `json:"limits"`
	// What it occupies.
	Used Usage `json:"used"`
	// What it may still admit.
	Remaining Remaining `json:"remaining"`
	// The retry accounts of the tasks that have active work.
	Retries []TaskRetries `json:"retries"`
	// Active and unknown work, in the order of admission.
	Executions []Execution `json:"executions"`
	// What that work holds.
	Holds []Hold `json:"holds"`
}

// HistoryView names one of the retained histories of a run.
type HistoryView string

// The views of `governor.history`.
const (
	ViewReservations HistoryView = "reservations"
	ViewAudit        HistoryView = "audit"
	ViewRetryCharges HistoryView = "retry_charges"
)

// HistoryParams asks for one page of a run's history.
type HistoryParams struct {
	// The root run.
	RunID string `json:"runId" rule:"nonblank"`
	// Which history.
	View HistoryView `json:"view"`
	// The cursor of the page before; 0 or absent for the first page.
	After int64 `json:"after,omitzero" jsonschema:"minimum=0"`
	// Most items to return; 100 if absent.
	Limit int64 `json:"limit,omitzero" jsonschema:"minimum=1,maximum=1000"`
}

// HistoryPage is one page of a history, of the kind that `view` names.
type HistoryPage struct {
	// Items holds a slice of the view's type.

	View  HistoryView `json:"view"`
	Items any         `json:"items"`
	Next  *int64      `json:"next"`
}

// ReservationsPage is a page of reservations in the order of admission.
type ReservationsPage struct {
	// Always `reservations`.
	View HistoryView `json:"view" rule:"const=reservations"`
	// The items of this page.
	Items []Reservation `json:"items"`
	// The cursor of the next page; null at the end.
	Next *int64 `json:"next"`
}

// AuditPage is a page of the audit, oldest first.
type AuditPage struct {
	// Always `audit`.
	View HistoryView `json:"view" rule:"const=audit"`
	// The items of this page.
	Items []AuditEntry `json:"items"`
	// The cursor of the next page; null at the end.
	Next *int64 `json:"next"`
}

// RetryChargesPage is a page of retry charges in the order of admission.
type RetryChargesPage struct {
	// Always `retry_charges`.
	View HistoryView `json:"view" rule:"const=retry_charges"`
	// The items of this page.
	Items []RetryCharge `json:"items"`
	// The cursor of the next page; null at the end.
	Next *int64 `json:"next"`
}

// RunsParams asks for one page of the store's runs.
type RunsParams struct {
	// The last run of the page before; absent for the first page.
	After string `json:"after,omitempty"`
	// Most runs to return; 100 if absent.
	Limit int64 `json:"limit,omitzero" jsonschema:"minimum=1,maximum=1000"`
}

// Run is one run with its counts.
type Run struct {
	// The run.
	RunID string `json:"run_id"`
	// Its limits.
	Limits Limits `json:"limits"`
	// What it occupies.
	Used Usage `json:"used"`
}

// RunsPage is a page of runs, ordered by the UTF-8 bytes of their keys.
type RunsPage struct {
	// The items of this page.
	Items []Run `json:"items"`
	// The cursor of the next page; null at the end.
	Next *string `json:"next"`
}

// WatchResult acknowledges a watch.
type WatchResult struct {
	// The run that is watched from now on, or no longer.
	RunID string `json:"run_id"`
	// Whether this connection watches the run now.
	Watching bool `json:"watching"`
}

// ChangedParams is the content of the notification `governor.changed`.
type ChangedParams struct {
	// The run that some process changed.
	RunID string `json:"runId"`
}

// Scope returns whom a call speaks for.
func (c *Call[Input]) Scope() (run string, authority *Authority) { return c.RunID, &c.Authority }

// Scope returns the run that is asked about.
func (p *RunParams) Scope() (run string, authority *Authority) { return p.RunID, nil }

// Scope returns the run that is asked about.
func (p *HistoryParams) Scope() (run string, authority *Authority) { return p.RunID, nil }

// Text returns the snapshot as JSON text, with lists of rows that are text
// already in place of its own.
func (s *Snapshot) Text(reservations, charges, audit Pieces) (*Pieces, error) {
	text := &Pieces{}
	var err error
	member := func(name string, value any) {
		text.Raw(name)
		if err == nil {
			err = text.Value(value)
		}
	}
	member(`{"run_id":`, s.RunID)
	member(`,"limits":`, s.Limits)
	member(`,"active_total":`, s.ActiveTotal)
	member(`,"active_writers":`, s.ActiveWriters)
	member(`,"created_total":`, s.CreatedTotal)
	member(`,"unknown_total":`, s.UnknownTotal)
	member(`,"retries":`, s.Retries)
	text.Raw(`,"reservations":`)
	text.List(reservations)
	member(`,"holds":`, s.Holds)
	text.Raw(`,"retry_charges":`)
	text.List(charges)
	text.Raw(`,"audit":`)
	text.List(audit)
	text.Raw("}")
	return text, err
}
