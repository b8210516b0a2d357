package rpc

import (
	"errors"

	"github.com/dsh-taskforce/sidecar/schema"
)

// pin is the authority that a connection is fixed to. A host can so hand a
// pipe to a process that it trusts less than itself.
type pin schema.PinnedAuthority

func (s *session) pin() pin { return pin(s.options.Pinned) }

// scoped is implemented by parameters that name a run, and perhaps an authority.
type scoped interface {
	Scope() (run string, authority *schema.Authority)
}

// check refuses parameters that speak for another run, role or session.
func (p pin) check(spec *schema.Spec, params any) error {
	s, ok := params.(scoped)
	if !ok {
		return nil
	}
	run, authority := s.Scope()
	foreign := ""
	switch {
	case p.RunID != "" && run != p.RunID:
		foreign = "run"
	case authority == nil:
		return nil
	case p.Role != "" && authority.Role != p.Role:
		foreign = "role"
	case p.SessionID != "" && authority.SessionID != p.SessionID:
		foreign = "session"
	default:
		return nil
	}
	err := schema.Errorf(spec.InvalidCode(), "this connection is pinned to another %s", foreign)
	err.Details.Reason = schema.ReasonPinned
	return err
}

// redact hides from a refusal what belongs to other runs.
func (p pin) redact(err error) error {
	var known *schema.Error
	if p.RunID == "" || !errors.As(err, &known) {
		return err
	}
	redacted := *known
	redacted.Details = p.redactDetails(known.Details)
	return &redacted
}

func (p pin) redactDetails(d schema.Details) schema.Details {
	holders := make([]schema.Holder, 0, len(d.Holders))
	for _, h := range d.Holders {
		if h.Execution != nil && h.Execution.RunID != p.RunID {
			h.Execution = nil
		}
		holders = append(holders, h)
	}
	d.Holders = holders
	return d
}

// redactResult does the same for the refusals that governor.check foresees.
func (p pin) redactResult(result any) any {
	check, ok := result.(*schema.CheckResult)
	if p.RunID == "" || !ok {
		return result
	}
	for i := range check.Obstacles {
		check.Obstacles[i].Details = p.redactDetails(check.Obstacles[i].Details)
	}
	return check
}
