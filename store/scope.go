package store

import (
	"context"
	"slices"
)

// Scope says what a write may touch, so that an engine which serves several
// writes at once knows which of them must keep their order: two writes that
// share nothing cannot tell which of them was first. A write without a scope
// may touch everything.
type Scope struct {
	// Runs are the runs that the write changes. It must change no other.
	Runs []string
	// Resources are the keys that it asks for, and Shared says that it only reads them all.
	Resources []string
	Shared    bool
	// Reservations are those that it changes, by which holds come and go.
	Reservations []string
	// Tasks are those that it is about, and Operations the operation keys by which
	// it admits. They touch nothing beyond the runs; an engine may read them ahead.
	Tasks      []int64
	Operations []string
}

// Join is the scope of a write that does what both do.
func (s Scope) Join(other Scope) Scope {
	if len(s.Resources) > 0 && len(other.Resources) > 0 {
		s.Shared = s.Shared && other.Shared
	} else {
		s.Shared = s.Shared || other.Shared
	}
	s.Runs = slices.Concat(s.Runs, other.Runs)
	s.Resources = slices.Concat(s.Resources, other.Resources)
	s.Reservations = slices.Concat(s.Reservations, other.Reservations)
	s.Tasks = slices.Concat(s.Tasks, other.Tasks)
	s.Operations = slices.Concat(s.Operations, other.Operations)
	return s
}

type scopeKey struct{}

// WithScope gives the writes that are submitted with the context a scope.
func WithScope(ctx context.Context, s Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, &s)
}

// ScopeOf returns the scope of a context, nil if it has none.
func ScopeOf(ctx context.Context) *Scope {
	s, _ := ctx.Value(scopeKey{}).(*Scope)
	return s
}
