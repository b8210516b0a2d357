package model

import (
	"strings"

	"github.com/dsh-taskforce/sidecar/schema"
)

// valid says whether the parameters of a call are well formed.
func valid(params any) bool {
	switch p := params.(type) {
	case schema.ReserveParams:
		in := p.Input
		return scoped(p.RunID, p.Authority) && named(in.OperationKey) && identity(in.TaskID) && integer(in.Generation) &&
			(in.Mode == schema.Read || in.Mode == schema.Write) &&
			(in.Kind == schema.New || in.Kind == schema.Reuse || in.Kind == schema.Retry) && named(in.Resources...)
	case schema.BindParams:
		return scoped(p.RunID, p.Authority) && named(p.Input.ReservationID, p.Input.SessionID) && integer(p.Input.Generation)
	case schema.MarkUnknownParams:
		return scoped(p.RunID, p.Authority) && named(p.Input.ReservationID, p.Input.Reason) && integer(p.Input.Generation)
	case schema.SettleParams:
		return scoped(p.RunID, p.Authority) && named(p.Input.ReservationID) && integer(p.Input.Generation) && proves(p.Input.Proof)
	case schema.ExtendBudgetParams:
		in := p.Input
		return scoped(p.RunID, p.Authority) && named(in.Reason) && limit(in.MaxActive) && limit(in.MaxWriters) &&
			limit(in.MaxCreated) && limit(in.MaxRetries)
	case schema.RunParams:
		return named(p.RunID)
	case schema.OpenParams:
		return scoped(p.RunID, p.Authority) && named(p.Input.Title)
	case schema.ClaimParams:
		return scoped(p.RunID, p.Authority) && identity(p.Input.TaskID) && named(p.Input.Owner, p.Input.OwnerSession)
	case schema.RejectParams:
		return scoped(p.RunID, p.Authority) && identity(p.Input.TaskID) && named(p.Input.Reason)
	case schema.TaskParams:
		return scoped(p.RunID, p.Authority) && identity(p.Input.TaskID)
	case schema.TaskNoteParams:
		return scoped(p.RunID, p.Authority) && identity(p.Input.TaskID)
	}
	return false
}

func scoped(run string, a schema.Authority) bool {
	return named(run, a.SessionID) && (a.Role == schema.Lead || a.Role == schema.Worker)
}

// named says whether every key is nonblank. Blank is what ECMAScript's trim
// leaves empty; spaces around anything else are part of the key.
func named(keys ...string) bool {
	const blank = "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
	for _, key := range keys {
		if strings.Trim(key, blank) == "" {
			return false
		}
	}
	return true
}

// integer says whether n is a safe integer that can be a generation.
func integer(n int64) bool { return n >= 0 && n <= schema.MaxInteger }

func identity(n int64) bool { return n > 0 && n <= schema.MaxInteger }

func limit(n *int64) bool { return n == nil || identity(*n) }

// proves says whether a proof is one of the two that the contract allows.
func proves(p schema.Proof) bool {
	switch p.Kind {
	case schema.NeverStarted:
		return p == schema.Proof{Kind: schema.NeverStarted}
	case schema.Terminal:
		return p.Quiescent && named(p.Evidence) &&
			(p.Outcome == schema.Succeeded || p.Outcome == schema.Failed || p.Outcome == schema.Cancelled)
	}
	return false
}
