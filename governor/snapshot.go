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
	s, err := snapshotHead(tx, p.RunID)
	if err != nil {
		return nil, err
	}
	err = walk(tx, s, rows{
		reservation: func(r *schema.Reservation) error { s.Reservations = append(s.Reservations, *r); return nil },
		charge:      func(c *schema.RetryCharge) error { s.RetryCharges = append(s.RetryCharges, *c); return nil },
		audit:       func(e *schema.AuditEntry) error { s.Audit = append(s.Audit, *e); return nil },
	})
	return s, err
}

// SnapshotText is [Snapshot] as JSON text. The rows become text as they are
// read, so that a long history costs the memory of its text and no more.
func SnapshotText(tx store.Tx, p *schema.RunParams) (*schema.Pieces, error) {
	s, err := snapshotHead(tx, p.RunID)
	if err != nil {
		return nil, err
	}
	var reservations, charges, audit schema.Pieces
	err = walk(tx, s, rows{
		reservation: func(r *schema.Reservation) error { return reservations.Item(r) },
		charge:      func(c *schema.RetryCharge) error { return charges.Item(c) },
		audit:       func(e *schema.AuditEntry) error { return audit.Item(e) },
	})
	if err != nil {
		return nil, err
	}
	return s.Text(reservations, charges, audit)
}

// snapshotHead is a snapshot without its rows.
func snapshotHead(tx store.Tx, run string) (*schema.Snapshot, error) {
	s := &schema.Snapshot{RunID: run, Retries: map[string]int64{}}
	usage, err := tx.Usage(run)
	if err != nil {
		return nil, err
	}
	if usage.Unaccounted {
		return nil, unaccounted()
	}
	s.ActiveTotal, s.ActiveWriters, s.CreatedTotal, s.UnknownTotal = usage.Active, usage.Writers, usage.Created, usage.Unknown
	if s.Limits, err = tx.Limits(run); err != nil {
		return nil, err
	}
	s.Holds, err = tx.Holds(run)
	return s, err
}

// rows receive the history of a run, in the order of the snapshot's lists.
type rows struct {
	reservation func(*schema.Reservation) error
	charge      func(*schema.RetryCharge) error
	audit       func(*schema.AuditEntry) error
}

// pageRows is how many rows of a history are in memory at once.
const pageRows = 1000

// walk reads the history of the snapshot's run, and counts its retries.
func walk(tx store.Tx, s *schema.Snapshot, to rows) error {
	page := func(after int64) store.Page { return store.Page{After: after, Limit: pageRows} }
	err := eachRow(func(after int64) ([]store.Reservation, error) { return tx.Reservations(s.RunID, page(after)) },
		func(r *store.Reservation) (int64, error) { return r.Row, to.reservation(&r.Reservation) })
	if err != nil {
		return err
	}
	err = eachRow(func(after int64) ([]store.Charged, error) { return tx.RetryCharges(s.RunID, page(after)) },
		func(c *store.Charged) (int64, error) {
			if c.RetryCharge.RetryCharge > 0 {
				s.Retries[strconv.FormatInt(c.TaskID, 10)] += c.RetryCharge.RetryCharge
			}
			return c.Row, to.charge(&c.RetryCharge)
		})
	if err != nil {
		return err
	}
	return eachRow(func(after int64) ([]schema.AuditEntry, error) { return tx.Audit(s.RunID, page(after)) },
		func(e *schema.AuditEntry) (int64, error) { return e.ID, to.audit(e) })
}

// eachRow hands every row of a history to do, which returns the row's cursor.
func eachRow[Row any](read func(after int64) ([]Row, error), do func(*Row) (int64, error)) error {
	after := int64(0)
	for {
		page, err := read(after)
		if err != nil {
			return err
		}
		for i := range page {
			if after, err = do(&page[i]); err != nil {
				return err
			}
		}
		if len(page) < pageRows {
			return nil
		}
	}
}
