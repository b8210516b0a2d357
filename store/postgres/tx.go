package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/jackc/pgx/v5"
)

// tx is one transaction on a connection. It implements [store.Tx].
//
// Statements are queued and sent together when one is among them whose result
// is needed now. A failure can so show itself later than where it was made, but
// never after the transaction.
type tx struct {
	ctx     context.Context
	store   *Store
	conn    *pgx.Conn
	pending *pgx.Batch
	now     time.Time
	// writes says that the transaction may write, and scope which runs.
	writes bool
	scope  *store.Scope
	// exclusive says that no other transaction writes; otherwise locks are those on keys.
	exclusive bool
	locks     resourceLocks
	// counts and resources are what the transaction has learnt, to be
	// remembered once it is committed.
	counts    counts
	resources map[string]holding
	// early are answers that were foreseen; changed says that they no longer hold.
	early   early
	changed bool
	// broken is the first failure of a statement. After it nothing more is run.
	broken error
}

var _ store.Tx = (*tx)(nil)

func (s *Store) newTx(ctx context.Context, conn *pgx.Conn) *tx {
	return &tx{ctx: ctx, store: s, conn: conn, pending: &pgx.Batch{}, counts: newCounts(), resources: map[string]holding{}}
}

// query returns a statement for this schema, where @ stands before every name of a table.
func (s *Store) query(text string) string {
	if known, ok := s.queries.Load(text); ok {
		return known.(string)
	}
	query := strings.ReplaceAll(text, "@", s.address.quoted+".")
	s.queries.Store(text, query)
	return query
}

// Now implements [store.Tx]. It is the server's time: once a write has its locks,
// or when a read first asks.
func (t *tx) Now() time.Time {
	if t.now.IsZero() && t.flush() == nil && t.now.IsZero() {
		_, _ = t.one("SELECT clock_timestamp()", nil, &t.now) // the failure is remembered
	}
	return t.now
}

// Nested implements [store.Tx].
func (t *tx) Nested(fn func(store.Tx) error) error {
	t.queue("SAVEPOINT nested")
	counts := t.counts.clone()
	// A panic is contained here and not further out, where the savepoint to
	// undo would no longer be the innermost.
	err := store.Contain(func() error { return fn(t) })
	if t.broken == nil && err != nil {
		t.counts = counts
		t.queue("ROLLBACK TO nested")
		t.queue("RELEASE nested")
		_ = t.flush() // which shows what fn has left to be sent
	} else {
		t.queue("RELEASE nested")
	}
	if t.broken != nil {
		return t.failure()
	}
	return err
}

// queue adds a statement to those that are sent next.
func (t *tx) queue(query string, args ...any) *pgx.QueuedQuery {
	return t.pending.Queue(t.store.query(query), escapeAll(args)...)
}

// flush sends what is queued and waits for every result.
func (t *tx) flush() error {
	if t.broken == nil && t.pending.Len() > 0 {
		batch := t.pending
		t.pending = &pgx.Batch{}
		t.fail(t.conn.SendBatch(t.ctx, batch).Close())
	}
	return t.failure()
}

// fail remembers the first failure.
func (t *tx) fail(err error) {
	if err == nil || t.broken != nil {
		return
	}
	if t.conn.IsClosed() {
		err = lost(err)
	}
	t.broken = err
}

// failure is the first failure as the caller may see it.
func (t *tx) failure() error { return classify(t.broken, "the database failed") }

// exec queues a statement without a result.
func (t *tx) exec(query string, args ...any) error {
	t.changes()
	if t.broken == nil {
		t.queue(query, args...)
	}
	return t.failure()
}

// one scans the only row of a query; false if there is none.
func (t *tx) one(query string, args []any, into ...any) (found bool, err error) {
	err = t.each(query, args, into, func() error { found = true; return nil })
	return found, err
}

// each scans the rows of a query into the fields, one by one, and calls next after each.
func (t *tx) each(query string, args, fields []any, next func() error) error {
	found, err := t.replay(query, args, fields, next)
	if found {
		t.fail(err)
		return t.failure()
	}
	if t.broken != nil {
		return t.failure()
	}
	t.queueRows(query, args, fields, next)
	return t.flush()
}

// queueRows is each for rows that nobody needs yet.
func (t *tx) queueRows(query string, args, fields []any, next func() error) {
	t.queue(query, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := rows.Scan(fields...); err != nil {
				return rowError{err}
			}
			unescapeAll(fields)
			if err := next(); err != nil {
				return err
			}
		}
		return rows.Err()
	})
}

// insert queues an INSERT that returns the number of the row, which is known once
// it was sent. A number so is given after everything that its transaction has
// read: of two entries of the audit, the one that knew of the other has the larger.
func (t *tx) insert(query string, number *int64, args ...any) error {
	t.changes()
	if t.broken == nil {
		t.queueRows(query, args, []any{number}, func() error { return nil })
	}
	return t.failure()
}

// limit is the LIMIT of a page, nil for none.
func limit(p store.Page) *int64 {
	if p.Limit == 0 {
		return nil
	}
	return &p.Limit
}

// damaged reports a row that does not hold what the schema promises.
func damaged(err error, what string) error {
	e := schema.Errorf(schema.ErrStoreCorrupt, "the store is damaged: %s", what)
	e.Err = err
	return e
}
