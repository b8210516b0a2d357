package governor

import (
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// ExtendBudget raises limits of a run (GOVERNOR.md, "Trusted identity and
// API"). It resets no counter. It returns E_GOVERNOR_CONFLICT unless a lead
// calls, at least one limit increases and none decreases.
func ExtendBudget(tx store.Tx, p *schema.ExtendBudgetParams) (*schema.Limits, error) {
	if p.Authority.Role != schema.Lead {
		return nil, schema.Conflict(schema.ReasonNotLead, "only a lead may extend the budget")
	}
	before, err := tx.Limits(p.RunID)
	if err != nil {
		return nil, err
	}
	after, err := extend(before, &p.Input)
	if err != nil {
		return nil, err
	}
	if err := tx.SetLimits(p.RunID, after); err != nil {
		return nil, err
	}
	details := struct {
		Reason string        `json:"reason"`
		Before schema.Limits `json:"before"`
		After  schema.Limits `json:"after"`
	}{p.Input.Reason, before, after}
	return &after, record(tx, p.RunID, "", "extendBudget", p.Authority, details)
}

// extend applies the new limits.
func extend(before schema.Limits, in *schema.ExtendBudgetInput) (schema.Limits, error) {
	after, increased := before, false
	for _, change := range []struct {
		name  schema.LimitName
		limit *int64
		value *int64
	}{
		{schema.LimitActive, &after.MaxActive, in.MaxActive},
		{schema.LimitWriters, &after.MaxWriters, in.MaxWriters},
		{schema.LimitCreated, &after.MaxCreated, in.MaxCreated},
		{schema.LimitRetries, &after.MaxRetries, in.MaxRetries},
	} {
		switch {
		case change.value == nil:
			continue
		case *change.value < *change.limit:
			return before, schema.Conflict(schema.ReasonLimits, "%s is %d and cannot decrease to %d", change.name, *change.limit, *change.value)
		case *change.value > *change.limit:
			increased = true
		}
		*change.limit = *change.value
	}
	if !increased {
		return before, schema.Conflict(schema.ReasonLimits, "at least one limit must increase")
	}
	return after, nil
}
