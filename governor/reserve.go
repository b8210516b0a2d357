package governor

import (
	"errors"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/google/uuid"
)

// Reserve admits one execution of a task (GOVERNOR.md, "Trusted identity and
// API"). It returns E_GOVERNOR_CONFLICT, E_GOVERNOR_FENCE, E_BUDGET_EXHAUSTED or
// E_RESOURCE_BUSY in the order of DESIGN.md, section 5. The same operation key
// with the same request returns the reservation it named before, as it stands now.
func Reserve(tx store.Tx, p *schema.ReserveParams) (*schema.Reservation, error) {
	f, err := gather(tx, p)
	if err != nil {
		return nil, err
	}
	if f.existing != nil {
		return &f.existing.Reservation, nil
	}
	if refusals := f.decide(); len(refusals) > 0 {
		if err := explain(tx, p.RunID, refusals[0]); err != nil {
			return nil, err
		}
		return nil, refusals[0]
	}
	return admit(tx, p, f)
}

// facts is everything that the decision about an admission depends on.
type facts struct {
	request    request
	payload    string
	task       *store.Task
	existing   *store.Reservation // what the operation key names already
	admissions store.Admissions
	active     *schema.Execution // the task's admission that is not settled
	limits     schema.Limits
	usage      store.Usage
	conflicts  []store.Conflict
}

// gather reads the facts. It returns an error where a check fails that keeps
// the rest from the caller's eyes: scope, owner, and a key used otherwise.
func gather(tx store.Tx, p *schema.ReserveParams) (*facts, error) {
	f := &facts{request: normalize(&p.Input)}
	var err error
	if f.payload, err = f.request.payload(); err != nil {
		return nil, err
	}
	if f.task, err = taskOf(tx, p.Input.TaskID, p.RunID, p.Authority); err != nil {
		return nil, err
	}
	if f.existing, err = tx.ReservationByKey(p.RunID, p.Input.OperationKey); err != nil {
		return nil, err
	}
	if f.existing != nil {
		return f, f.replays(p.Authority)
	}
	return f, f.gatherState(tx, p.RunID)
}

// replays refuses an operation key that names something else than what is asked.
func (f *facts) replays(a schema.Authority) error {
	if err := mayTouch(f.existing, a); err != nil {
		return err
	}
	if f.existing.Payload != f.payload {
		return schema.Conflict(schema.ReasonOperationKey, "the operation key was used for another request")
	}
	return nil
}

func (f *facts) gatherState(tx store.Tx, run string) (err error) {
	if f.admissions, err = tx.Admissions(f.task.TaskID); err != nil {
		return err
	}
	if f.active, err = tx.ActiveAdmission(f.task.TaskID); err != nil {
		return err
	}
	if f.limits, err = tx.Limits(run); err != nil {
		return err
	}
	if f.usage, err = tx.Usage(run); err != nil {
		return err
	}
	for _, key := range f.request.Resources {
		conflicts, err := tx.Conflicts(key, f.request.Mode)
		if err != nil {
			return err
		}
		f.conflicts = append(f.conflicts, conflicts...)
	}
	return nil
}

// charge is what the admission would be charged.
func (f *facts) charge() int64 {
	return retryCharge(f.request.Kind, f.task.EvidenceGeneration, f.admissions.ReworkGeneration)
}

// retryCharge is the larger of the explicit retry and the rework that no
// earlier admission has recorded: the two overlap rather than add
// (GOVERNOR.md, "Scope and guarantees").
func retryCharge(kind schema.Kind, evidence, recorded int64) int64 {
	charge := max(evidence-recorded, 0)
	if kind == schema.Retry {
		charge = max(charge, 1)
	}
	return charge
}

// decide lists everything that refuses the admission, in the order of the checks.
func (f *facts) decide() []*schema.Error {
	var refusals []*schema.Error
	refuse := func(err error) {
		var refusal *schema.Error
		if errors.As(err, &refusal) {
			refusals = append(refusals, refusal)
		}
	}
	if f.usage.Unaccounted {
		refuse(unaccounted())
	}
	if expected := f.request.Generation; expected != f.admissions.Generation {
		refuse(fence(schema.FenceAdmission, &expected, f.admissions.Generation,
			"the task has admission generation %d, not %d", f.admissions.Generation, expected))
	}
	refuse(refuseTask(f.task))
	if f.active != nil {
		err := schema.Conflict(schema.ReasonActiveAdmission, "task %d has an admission that is not settled", f.task.TaskID)
		err.Details.Execution = f.active
		refuse(err)
	}
	for _, err := range f.exhausted() {
		refuse(err)
	}
	refuse(f.busy())
	return refusals
}

func unaccounted() error {
	return schema.Conflict(schema.ReasonAccounting, "a reservation of the run has no retry accounting; start the sidecar again to migrate it")
}

// exhausted lists the limits that the admission would exceed.
func (f *facts) exhausted() (refusals []*schema.Error) {
	check := func(limit schema.LimitName, maximum, used, requested int64, applies bool) {
		if !applies || used+requested <= maximum {
			return
		}
		err := schema.Errorf(schema.ErrBudgetExhausted, "%s is %d: %d used, %d requested", limit, maximum, used, requested)
		err.Details.Budget = &schema.BudgetDetail{Limit: limit, Max: maximum, Used: used, Requested: requested}
		refusals = append(refusals, err)
	}
	check(schema.LimitActive, f.limits.MaxActive, f.usage.Active, 1, true)
	check(schema.LimitWriters, f.limits.MaxWriters, f.usage.Writers, 1, f.request.Mode == schema.Write)
	check(schema.LimitCreated, f.limits.MaxCreated, f.usage.Created, 1, f.request.Kind == schema.New)
	check(schema.LimitRetries, f.limits.MaxRetries, f.admissions.Charged, f.charge(), true)
	return refusals
}

func (f *facts) busy() error {
	if len(f.conflicts) == 0 {
		return nil
	}
	err := schema.Errorf(schema.ErrResourceBusy, "%d incompatible holds, the first on %q", len(f.conflicts), f.conflicts[0].ResourceKey)
	for _, c := range f.conflicts {
		err.Details.Holders = append(err.Details.Holders, schema.Holder{
			ResourceKey: c.ResourceKey, Mode: c.Mode, State: c.Execution.State, Execution: &c.Execution,
		})
	}
	return err
}

// explain adds to the refusal by a limit of active work who uses it.
func explain(tx store.Tx, run string, refusal *schema.Error) error {
	budget := refusal.Details.Budget
	if budget == nil || budget.Limit != schema.LimitActive && budget.Limit != schema.LimitWriters {
		return nil
	}
	executions, err := tx.Executions(run)
	if err != nil {
		return err
	}
	for _, e := range executions {
		if budget.Limit == schema.LimitActive || e.Mode == schema.Write {
			budget.Users = append(budget.Users, e)
		}
	}
	return nil
}

// reserveDetails is the audit of an admission.
type reserveDetails struct {
	OperationKey string `json:"operation_key"`
	request
	ReworkGeneration int64 `json:"rework_generation"`
	RetryCharge      int64 `json:"retry_charge"`
}

// admit writes the admission that was decided.
func admit(tx store.Tx, p *schema.ReserveParams, f *facts) (*schema.Reservation, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	r := &store.Reservation{
		Reservation: schema.Reservation{
			ReservationID: id.String(), RunID: p.RunID, TaskID: f.task.TaskID, Generation: f.request.Generation + 1,
			State: schema.Reserved, Mode: f.request.Mode, Kind: f.request.Kind, Resources: f.request.Resources,
		},
		OperationKey: p.Input.OperationKey, Payload: f.payload, OwnerSession: f.task.OwnerSession,
	}
	charge := schema.RetryCharge{
		ReservationID: r.ReservationID, ReworkGeneration: f.task.EvidenceGeneration, RetryCharge: f.charge(), Source: schema.FromAdmission,
	}
	if err := tx.InsertReservation(r, charge); err != nil {
		return nil, err
	}
	details := reserveDetails{p.Input.OperationKey, f.request, charge.ReworkGeneration, charge.RetryCharge}
	return &r.Reservation, record(tx, p.RunID, r.ReservationID, "reserve", p.Authority, details)
}
