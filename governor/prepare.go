package governor

import (
	"context"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// Prepare gives every reservation that an older writer left without retry
// accounting its conservative charge (GOVERNOR.md, "Additive retry-accounting
// migration"). It must run once on an open store before the first governor
// call, and is not repeated: a row that turns up unaccounted later fails the
// run closed until the store is opened again.
func Prepare(ctx context.Context, s store.Store) error {
	var pending []store.Unaccounted
	look := func(tx store.Tx) (err error) {
		pending, err = tx.Unaccounted()
		return err
	}
	if err := s.Read(ctx, look); err != nil || len(pending) == 0 {
		return err
	}
	return s.Write(ctx, migrate)
}

func migrate(tx store.Tx) error {
	pending, err := tx.Unaccounted()
	if err != nil {
		return err
	}
	for _, row := range pending {
		if err := tx.InsertRetryCharge(legacyCharge(row)); err != nil {
			return err
		}
	}
	return nil
}

// legacyCharge keeps every old explicit charge and puts the rework that no
// admission has recorded on the task's newest legacy reservation.
func legacyCharge(row store.Unaccounted) schema.RetryCharge {
	charge := schema.RetryCharge{
		ReservationID: row.ReservationID, ReworkGeneration: row.EvidenceGeneration, Source: schema.FromLegacy,
	}
	if row.Kind == schema.Retry {
		charge.RetryCharge = 1
	}
	if row.Newest {
		charge.RetryCharge += max(row.EvidenceGeneration-row.Recorded, 0)
	}
	return charge
}
