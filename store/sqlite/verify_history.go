package sqlite

import (
	"fmt"

	"github.com/dsh-taskforce/sidecar/schema"
)

// history follows the admissions of one task after another, each in the order
// of its generations.
type history struct {
	v    *verification
	task int64
	// last is the latest admission, nil before the first.
	last *admission
	// active is one that is not settled.
	active *admission
	// rework is the largest that an admission has recorded, charged the sum of the charges.
	rework, charged int64
	legacy          legacy
}

// legacy is a row of migrated admissions without an ordinary one between them.
type legacy struct {
	last *admission
	// pending is the rework that was unaccounted before the first; extra is what
	// they were charged beyond explicit retries.
	pending, extra int64
}

// add takes the next reservation.
func (h *history) add(a *admission, maxRetries int64) {
	if h.last == nil || h.task != a.task {
		h.close()
		*h = history{v: h.v, task: a.task}
	}
	h.generation(a)
	if a.charged {
		h.charge(a, maxRetries)
	}
	h.last = a
}

func (h *history) generation(a *admission) {
	want := int64(1)
	if h.last != nil {
		want = h.last.generation + 1
	}
	if a.generation != want {
		h.v.breach(generations, "governor_reservation", a.id, "it is admission %d of task %d, where admission %d is due", a.generation, a.task, want)
	}
	if h.active == nil {
		if a.active() {
			h.active = a
		}
		return
	}
	if a.active() {
		h.v.breach(oneActive, "governor_reservation", a.id, "it is active, and so is admission %d of the same task %d", h.active.generation, a.task)
		return
	}
	h.v.breach(activeLatest, "governor_reservation", h.active.id, "it is active, but task %d was admitted again with generation %d", a.task, a.generation)
}

// charge recomputes what the admission costs: the larger of the explicit retry
// and the rework that no earlier admission has recorded (GOVERNOR.md, "Scope
// and guarantees"). Migration may charge past the limit, an admission may not.
func (h *history) charge(a *admission, maxRetries int64) {
	if a.source == string(schema.FromLegacy) {
		h.migrated(a)
	} else {
		h.closeLegacy()
		want := max(a.explicit(), a.rework-h.rework)
		if a.charge != want || a.rework < h.rework {
			h.v.breach(chargeAmount, "governor_retry_charge", a.id, "a %s admission with rework %d after %d costs %d, but %d is charged", a.kind, a.rework, h.rework, want, a.charge)
		}
		if h.charged+a.charge > maxRetries {
			h.v.breach(limitRetries, "governor_reservation", a.id, "task %d has been charged %d retries with it, its limit is %d", a.task, h.charged+a.charge, maxRetries)
		}
	}
	h.rework = max(h.rework, a.rework)
	h.charged += a.charge
}

// migrated follows admissions that were charged when a store was migrated: each
// its explicit retry, and the newest of them the rework that was unaccounted
// then. Which one was the newest is not recorded, so their sum is compared.
func (h *history) migrated(a *admission) {
	if h.legacy.last == nil || h.legacy.last.rework != a.rework {
		h.closeLegacy()
		h.legacy.pending = max(a.rework-h.rework, 0)
	}
	if a.charge < a.explicit() {
		h.v.breach(chargeAmount, "governor_retry_charge", a.id, "migration charges %d for a %s, but %d is charged", a.explicit(), a.kind, a.charge)
	}
	h.legacy.last = a
	h.legacy.extra += a.charge - a.explicit()
}

func (h *history) closeLegacy() {
	if l := h.legacy; l.last != nil && l.extra != l.pending {
		h.v.breach(chargeAmount, "governor_retry_charge", l.last.id, "migration found %d rejections of task %d unaccounted, but charged %d", l.pending, l.last.task, l.extra)
	}
	h.legacy = legacy{}
}

// close ends the history of a task.
func (h *history) close() { h.closeLegacy() }

// describe names an admission in an explanation.
func (a *admission) describe() string {
	return fmt.Sprintf("admission %d of task %d", a.generation, a.task)
}
