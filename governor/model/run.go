package model

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/dsh-taskforce/sidecar/schema"
)

// extendBudget sets new limits: at least one increases and none decreases.
func (l *Ledger) extendBudget(p schema.ExtendBudgetParams) Answer {
	before := l.limits(p.RunID)
	after, in := before, p.Input
	for _, change := range []struct{ to, limit *int64 }{
		{in.MaxActive, &after.MaxActive}, {in.MaxWriters, &after.MaxWriters},
		{in.MaxCreated, &after.MaxCreated}, {in.MaxRetries, &after.MaxRetries},
	} {
		if change.to == nil {
			continue
		}
		if *change.to < *change.limit {
			return conflict()
		}
		*change.limit = *change.to
	}
	if p.Authority.Role != schema.Lead || after == before {
		return conflict()
	}
	l.Limits[p.RunID] = after
	l.record(p.RunID, "", "extendBudget", p.Authority, struct {
		Reason string        `json:"reason"`
		Before schema.Limits `json:"before"`
		After  schema.Limits `json:"after"`
	}{in.Reason, before, after})
	return Answer{Result: &after}
}

// snapshot is everything that is retained about a run.
func (l *Ledger) snapshot(run string) Answer {
	if l.unaccounted(run) {
		return conflict()
	}
	list := l.ofRun(run)
	s := &schema.Snapshot{
		RunID: run, Limits: l.limits(run), Retries: map[string]int64{},
		ActiveTotal:   count(list, active),
		ActiveWriters: count(list, func(r *Reservation) bool { return active(r) && writes(r) }),
		CreatedTotal:  count(list, created),
		UnknownTotal:  count(list, func(r *Reservation) bool { return r.State == schema.Unknown }),
	}
	for _, r := range list {
		s.Reservations = append(s.Reservations, r.Reservation)
		s.RetryCharges = append(s.RetryCharges, *r.Charge)
		if total, _ := l.charged(r.TaskID); total > 0 {
			s.Retries[strconv.FormatInt(r.TaskID, 10)] = total
		}
		for _, key := range r.Resources {
			if active(r) {
				s.Holds = append(s.Holds, schema.Hold{ReservationID: r.ReservationID, ResourceKey: key, Mode: r.Mode})
			}
		}
	}
	SortHolds(s.Holds)
	for _, entry := range l.Audit {
		if entry.RunID == run {
			s.Audit = append(s.Audit, entry)
		}
	}
	return Answer{Result: s}
}

// SortHolds orders holds by reservation, then by the bytes of the key.
func SortHolds(holds []schema.Hold) {
	slices.SortFunc(holds, func(a, b schema.Hold) int {
		return cmp.Or(cmp.Compare(a.ReservationID, b.ReservationID), cmp.Compare(a.ResourceKey, b.ResourceKey))
	})
}
