package sqlite

import (
	"context"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// tx is one transaction on a connection. It implements [store.Tx].
type tx struct {
	ctx  context.Context
	conn *conn
	now  time.Time
	// broken is the first failure of SQLite in the transaction. After it
	// nothing more is run: the transaction may have been rolled back, and a
	// statement would then commit on its own.
	broken *error
}

var _ store.Tx = (*tx)(nil)

// Now implements [store.Tx].
func (t *tx) Now() time.Time {
	if t.now.IsZero() {
		t.now = time.Now()
	}
	return t.now
}

// Nested implements [store.Tx].
func (t *tx) Nested(fn func(store.Tx) error) error {
	if err := t.exec("SAVEPOINT nested"); err != nil {
		return err
	}
	mark, added := len(t.conn.ledger.undo), t.conn.added
	// A panic is contained here and not further out, where the savepoint to
	// undo would no longer be the innermost.
	err := store.Contain(func() error { return fn(t) })
	if *t.broken != nil {
		return *t.broken
	}
	if err != nil {
		t.conn.ledger.rollback(mark)
		t.conn.added = added
		if undo := t.exec("ROLLBACK TO nested"); undo != nil {
			return undo
		}
	}
	if release := t.exec("RELEASE nested"); release != nil {
		return release
	}
	return err
}

// fail remembers the first failure.
func (t *tx) fail(err error) error {
	if err != nil && *t.broken == nil {
		*t.broken = classify(err, "the database failed")
	}
	return *t.broken
}

func (t *tx) exec(query string, args ...any) error {
	if *t.broken != nil {
		return *t.broken
	}
	return t.fail(t.conn.exec(t.ctx, query, args...))
}

// insert runs an INSERT and returns the rowid.
func (t *tx) insert(query string, args ...any) (int64, error) {
	if *t.broken != nil {
		return 0, *t.broken
	}
	stmt, err := t.conn.stmt(t.ctx, query)
	if err != nil {
		return 0, t.fail(err)
	}
	result, err := stmt.exec(t.ctx, args)
	if err != nil {
		return 0, t.fail(err)
	}
	id, err := result.LastInsertId()
	return id, t.fail(err)
}

// one scans the only row of a query; false if there is none.
func (t *tx) one(query string, args []any, into ...any) (bool, error) {
	if *t.broken != nil {
		return false, *t.broken
	}
	found, err := t.conn.scan(t.ctx, query, args, into...)
	return found, t.fail(err)
}

// all scans every row of a query, one by one.
func (t *tx) all(query string, args []any, scan func(*rows) error) error {
	if *t.broken != nil {
		return *t.broken
	}
	stmt, err := t.conn.stmt(t.ctx, query)
	if err != nil {
		return t.fail(err)
	}
	rows, err := stmt.query(t.ctx, args)
	if err != nil {
		return t.fail(err)
	}
	defer rows.close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return t.fail(rowError{err})
		}
	}
	return t.fail(rows.Err())
}

// limit is the LIMIT of a page; SQLite reads a negative one as none.
func limit(p store.Page) int64 {
	if p.Limit == 0 {
		return -1
	}
	return p.Limit
}

// damaged reports a row that does not hold what the schema promises.
func (t *tx) damaged(err error, what string) error {
	e := schema.Errorf(schema.ErrStoreCorrupt, "the database is damaged: %s", what)
	e.Err = err
	return t.fail(e)
}
