package governor

import (
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// History returns one page of a run's history. Cursors name rows, so a page
// costs the same wherever it lies, and rows that come later do not shift it.
func History(tx store.Tx, p *schema.HistoryParams) (*schema.HistoryPage, error) {
	page := store.NewPage(p.After, p.Limit)
	switch p.View {
	case schema.ViewReservations:
		rows, err := tx.Reservations(p.RunID, page.Ahead())
		rows, next := store.Cut(rows, page, func(r store.Reservation) int64 { return r.Row })
		items := make([]schema.Reservation, 0, len(rows))
		for _, r := range rows {
			items = append(items, r.Reservation)
		}
		return &schema.HistoryPage{View: p.View, Items: items, Next: next}, err
	case schema.ViewRetryCharges:
		rows, err := tx.RetryCharges(p.RunID, page.Ahead())
		rows, next := store.Cut(rows, page, func(c store.Charged) int64 { return c.Row })
		items := make([]schema.RetryCharge, 0, len(rows))
		for _, c := range rows {
			items = append(items, c.RetryCharge)
		}
		return &schema.HistoryPage{View: p.View, Items: items, Next: next}, err
	}
	rows, err := tx.Audit(p.RunID, page.Ahead())
	items, next := store.Cut(rows, page, func(e schema.AuditEntry) int64 { return e.ID })
	return &schema.HistoryPage{View: p.View, Items: items, Next: next}, err
}
