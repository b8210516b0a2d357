package governor

import (
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// Settle ends a reservation by proof and releases its holds and capacity in
// one step; cumulative counts and history stay (GOVERNOR.md, "Settlement and
// recovery"). The identical proof may be repeated at any time, even after a
// newer admission; another one is refused. It returns E_GOVERNOR_CONFLICT or
// E_GOVERNOR_FENCE.
func Settle(tx store.Tx, p *schema.SettleParams) (*schema.Reservation, error) {
	t, err := find(tx, p.Input.ReservationID, p.Input.Generation, p.RunID, p.Authority)
	if err != nil {
		return nil, err
	}
	text, err := schema.Encode(p.Input.Proof)
	if err != nil {
		return nil, err
	}
	proof, r := string(text), t.reservation
	if r.State == schema.Settled {
		return replaySettled(r, proof)
	}
	if err := t.latest(tx); err != nil {
		return nil, err
	}
	if p.Input.Proof.Kind == schema.NeverStarted && r.SessionID != nil {
		err := schema.Conflict(schema.ReasonProof, "the reservation was bound, so only a terminal and quiescent proof settles it")
		err.Details.State = r.State
		return nil, err
	}
	r.State, r.Settlement = schema.Settled, &proof
	if err := tx.SaveReservation(r); err != nil {
		return nil, err
	}
	details := struct {
		Generation int64        `json:"generation"`
		Proof      schema.Proof `json:"proof"`
	}{r.Generation, p.Input.Proof}
	return &r.Reservation, record(tx, p.RunID, r.ReservationID, "settle", p.Authority, details)
}

func replaySettled(r *store.Reservation, proof string) (*schema.Reservation, error) {
	if r.Settlement == nil || *r.Settlement != proof {
		err := schema.Conflict(schema.ReasonProof, "the reservation was settled by another proof")
		err.Details.State = r.State
		return nil, err
	}
	return &r.Reservation, nil
}
