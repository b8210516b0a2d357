package model

import "github.com/dsh-taskforce/sidecar/schema"

// unaccounted says whether an older writer has left a reservation of the run
// without retry accounting.
func (l *Ledger) unaccounted(run string) bool {
	return len(l.of(func(r *Reservation) bool { return r.RunID == run && r.Charge == nil })) > 0
}

// Migrate gives every such reservation its charge: the old explicit retry, and
// on the task's newest one all rework that no admission has recorded.
func (l *Ledger) Migrate() {
	charges := map[string]*schema.RetryCharge{}
	newest := map[int64]*schema.RetryCharge{}
	for _, r := range l.of(func(r *Reservation) bool { return r.Charge == nil }) {
		task := l.Tasks[r.TaskID-1]
		charge := &schema.RetryCharge{ReservationID: r.ReservationID, ReworkGeneration: task.EvidenceGeneration, Source: schema.FromLegacy}
		if r.Kind == schema.Retry {
			charge.RetryCharge = 1
		}
		charges[r.ReservationID], newest[r.TaskID] = charge, charge
	}
	for task, charge := range newest {
		_, recorded := l.charged(task)
		charge.RetryCharge += max(charge.ReworkGeneration-recorded, 0)
	}
	for i := range l.Reservations {
		if r := &l.Reservations[i]; r.Charge == nil {
			r.Charge = charges[r.ReservationID]
		}
	}
}
