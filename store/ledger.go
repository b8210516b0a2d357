package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// Table is one of the tables that make up a ledger, whatever engine keeps it.
type Table struct {
	Name string
	// Numbers and Texts are its columns. Order is what its rows are ordered by:
	// numbers by value, texts by bytes.
	Numbers, Texts, Order []string
}

// Columns are the columns in the order of a row's values.
func (t *Table) Columns() []string {
	return append(append([]string{}, t.Numbers...), t.Texts...)
}

// Ledger are the tables of a ledger. The position of a reservation in the order
// of admission is named seq. Of the other writer's workflow table the rules need
// no more than which tasks are in it.
var Ledger = []*Table{
	{"task", []string{"id", "evidence_generation"}, []string{"title", "note", "status", "owner", "owner_session", "run_id", "created_at", "updated_at",
		"evidence_policy", "verification_files", "verification_command", "verification_cwd"}, []string{"id"}},
	{"task_event", []string{"id", "task_id", "evidence_generation"},
		[]string{"run_id", "action", "role", "session_id", "from_status", "to_status", "note", "created_at"}, []string{"id"}},
	{"workflow", []string{"task_id"}, nil, []string{"task_id"}},
	{"governor_run", []string{"max_active", "max_writers", "max_created", "max_retries"}, []string{"run_id"}, []string{"run_id"}},
	{"governor_reservation", []string{"seq", "task_id", "generation"}, []string{"reservation_id", "run_id", "operation_key", "payload",
		"mode", "kind", "state", "owner_session", "session_id", "settlement"}, []string{"seq"}},
	{"governor_retry_charge", []string{"rework_generation", "retry_charge"}, []string{"reservation_id", "source"}, []string{"reservation_id"}},
	{"governor_hold", nil, []string{"reservation_id", "resource_key", "mode"}, []string{"reservation_id", "resource_key"}},
	{"governor_audit", []string{"id"}, []string{"run_id", "reservation_id", "action", "role", "session_id", "details", "created_at"}, []string{"id"}},
}

// Put takes one row of a table: int64, string or nil for each column.
type Put func(t *Table, row []any) error

// Exporter hands over a whole ledger.
type Exporter interface {
	// Export puts every row of [Ledger], table after table and each in its order,
	// all of one consistent state.
	Export(ctx context.Context, put Put) error
}

// Importer takes a whole ledger.
type Importer interface {
	// Import keeps the rows that fill puts, all of them or none. A store that has
	// rows already is refused with E_STORE_CONFIG.
	Import(ctx context.Context, fill func(Put) error) error
}

// Digest is a sum over the rows of a ledger. Two ledgers of the same rows have
// the same sum, whatever engines keep them.
type Digest struct {
	sum  hash.Hash
	size [9]byte
	// Rows is how many there were.
	Rows int64
}

// NewDigest returns the sum of no rows.
func NewDigest() *Digest { return &Digest{sum: sha256.New()} }

// Add adds a row. Each value goes in with its type and length, so that no two
// rows have one spelling.
func (d *Digest) Add(t *Table, row []any) {
	d.Rows++
	d.text('t', t.Name)
	for _, value := range row {
		switch value := value.(type) {
		case nil:
			d.head('n', 0)
		case int64:
			d.head('i', uint64(value))
		case string:
			d.text('s', value)
		}
	}
}

func (d *Digest) text(kind byte, text string) {
	d.head(kind, uint64(len(text)))
	d.sum.Write([]byte(text))
}

func (d *Digest) head(kind byte, n uint64) {
	d.size[0] = kind
	binary.BigEndian.PutUint64(d.size[1:], n)
	d.sum.Write(d.size[:])
}

// Sum returns the sum so far.
func (d *Digest) Sum() []byte { return d.sum.Sum(nil) }
