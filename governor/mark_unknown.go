package governor

import (
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// MarkUnknown records that nobody knows whether an execution still runs
// (GOVERNOR.md, "Trusted identity and API"). Everything it occupies stays
// occupied. Repeating it is idempotent. It returns E_GOVERNOR_CONFLICT or
// E_GOVERNOR_FENCE.
func MarkUnknown(tx store.Tx, p *schema.MarkUnknownParams) (*schema.Reservation, error) {
	t, err := find(tx, p.Input.ReservationID, p.Input.Generation, p.RunID, p.Authority)
	if err != nil {
		return nil, err
	}
	if err := t.latest(tx); err != nil {
		return nil, err
	}
	r := t.reservation
	switch r.State {
	case schema.Unknown:
		return &r.Reservation, nil
	case schema.Settled:
		return nil, wrongState(r, "marked unknown")
	}
	r.State = schema.Unknown
	if err := tx.SaveReservation(r); err != nil {
		return nil, err
	}
	details := struct {
		Generation int64  `json:"generation"`
		Reason     string `json:"reason"`
	}{r.Generation, p.Input.Reason}
	return &r.Reservation, record(tx, p.RunID, r.ReservationID, "markUnknown", p.Authority, details)
}
