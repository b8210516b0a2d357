package governor

import (
	"strconv"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// Snapshot returns everything the store retains about a run (GOVERNOR.md,
// "Trusted identity and API"). It returns E_GOVERNOR_CONFLICT if a reservation
// of the run has no retry accounting.
func Snapshot(tx store.Tx, p *schema.RunParams) (*schema.Snapshot, error) {
	s := &schema.Snapshot{RunID: p.RunID, Retries: map[string]int64{}}
	usage, err := tx.Usage(p.RunID)
	if err != nil {
		return nil, err
	}
	if usage.Unaccounted {
		return nil, unaccounted()
	}
	s.ActiveTotal, s.ActiveWriters, s.CreatedTotal, s.UnknownTotal = usage.Active, usage.Writers, usage.Created, usage.Unknown
	if s.Limits, err = tx.Limits(p.RunID); err != nil {
		return nil, err
	}
	if err := snapshotRows(tx, s); err != nil {
		return nil, err
	}
	return s, nil
}

func snapshotRows(tx store.Tx, s *schema.Snapshot) error {
	reservations, err := tx.Reservations(s.RunID, store.Page{})
	if err != nil {
		return err
	}
	for _, r := range reservations {
		s.Reservations = append(s.Reservations, r.Reservation)
	}
	charges, err := tx.RetryCharges(s.RunID, store.Page{})
	if err != nil {
		return err
	}
	for _, c := range charges {
		s.RetryCharges = append(s.RetryCharges, c.RetryCharge)
		if c.RetryCharge.RetryCharge > 0 {
			s.Retries[strconv.FormatInt(c.TaskID, 10)] += c.RetryCharge.RetryCharge
		}
	}
	if s.Holds, err = tx.Holds(s.RunID); err != nil {
		return err
	}
	s.Audit, err = tx.Audit(s.RunID, store.Page{})
	return err
}
