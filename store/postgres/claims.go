package postgres

import (
	"maps"
	"slices"
	"sync"

	"github.com/dsh-taskforce/sidecar/store"
)

// demand is what a write may touch, as far as it decides which other writes
// must wait for it.
type demand struct {
	everything bool
	runs       []string // sorted
	// exclusive and shared are the keys that the write asks for or releases.
	exclusive, shared []string
	// anyKey says that it may release keys which this process does not know.
	anyKey bool
}

// newDemand works out what a scope comes to, given the keys of known reservations.
func newDemand(scope *store.Scope, known *holdings) demand {
	if scope == nil {
		return demand{everything: true}
	}
	d := demand{runs: slices.Compact(slices.Sorted(slices.Values(scope.Runs)))}
	if scope.Shared {
		d.shared = scope.Resources
	} else {
		d.exclusive = slices.Clone(scope.Resources)
	}
	for _, id := range scope.Reservations {
		keys, ok := known.keys(id)
		d.exclusive = append(d.exclusive, keys...)
		d.anyKey = d.anyKey || !ok
	}
	return d
}

// claims are what some writes may touch together.
type claims struct {
	some, everything, anyKey bool
	runs                     map[string]bool
	keys                     map[string]bool // whether exclusively
}

func (c *claims) add(d *demand) {
	if c.runs == nil {
		c.runs, c.keys = map[string]bool{}, map[string]bool{}
	}
	c.some = true
	c.everything = c.everything || d.everything
	c.anyKey = c.anyKey || d.anyKey
	for _, run := range d.runs {
		c.runs[run] = true
	}
	for _, key := range d.exclusive {
		c.keys[key] = true
	}
	for _, key := range d.shared {
		if _, claimed := c.keys[key]; !claimed {
			c.keys[key] = false
		}
	}
}

// meets reports whether a write could see what the others do, or they what it does.
func (c *claims) meets(d *demand) bool {
	if !c.some {
		return false
	}
	keyed := len(d.exclusive)+len(d.shared) > 0
	if c.everything || d.everything || c.anyKey && keyed || d.anyKey && len(c.keys) > 0 {
		return true
	}
	return slices.ContainsFunc(d.runs, func(run string) bool { return c.runs[run] }) ||
		slices.ContainsFunc(d.exclusive, func(key string) bool { _, claimed := c.keys[key]; return claimed }) ||
		slices.ContainsFunc(d.shared, func(key string) bool { return c.keys[key] })
}

// holding is what never changes about a reservation: its task and its keys.
type holding struct {
	task int64
	keys []string
}

// holdings remembers the reservations that the process has come across.
type holdings struct {
	mu    sync.Mutex
	known map[string]holding
}

func (h *holdings) keys(reservation string) ([]string, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, ok := h.known[reservation]
	return known.keys, ok
}

func (h *holdings) task(reservation string) (int64, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known, ok := h.known[reservation]
	return known.task, ok
}

func (h *holdings) keep(learnt map[string]holding) {
	if len(learnt) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil || len(h.known) > remembered {
		h.known = map[string]holding{}
	}
	maps.Copy(h.known, learnt)
}
