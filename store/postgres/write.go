package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/jackc/pgx/v5/pgconn"
)

// grace is how long a transaction may take beyond its wait for locks. A server
// that answers nothing for longer is taken for lost.
const grace = 10 * time.Second

// serve decides every write of a batch. Each gets a transaction of its own if
// one of them breaks the one that they share, so that only the culprit fails.
func (s *Store) serve(members []*write) {
	culprit := s.transact(members)
	if culprit == nil {
		return
	}
	for _, w := range members {
		if w != culprit {
			s.transact([]*write{w})
		}
	}
}

// transact runs the writes in one transaction, again if it was undone for a
// reason that passes. It returns the one that broke it, if there are others,
// which are then not decided.
func (s *Store) transact(members []*write) (culprit *write) {
	err := s.patiently(context.Background(), isTransient, func(ctx context.Context) (err error) {
		culprit, err = s.try(ctx, members)
		return err
	})
	if err != nil {
		for _, w := range members {
			w.err = classify(err, "the transaction failed")
		}
		return nil
	}
	return culprit
}

// try makes one attempt. Its error means that nothing was kept and nobody is decided.
func (s *Store) try(ctx context.Context, members []*write) (culprit *write, err error) {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, lostUnlessState(err)
	}
	defer pooled.Release()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.BusyTimeout+grace)
	defer cancel()
	t := s.newTx(ctx, pooled.Conn())
	defer t.end()
	if err := t.beginWrite(scopeOf(members), len(members) > 1); err != nil {
		return nil, err
	}
	kept := false
	for _, w := range members {
		t.run(w, len(members) == 1)
		if t.broken != nil {
			return t.blame(w, members)
		}
		kept = kept || w.err == nil
	}
	if !kept { // everyone has refused, and nothing is left but what was learnt
		if !t.changed {
			t.remember()
		}
		return nil, nil
	}
	return nil, t.commit(members)
}

// blame says what becomes of writes whose transaction broke in the hands of one of them.
func (t *tx) blame(w *write, members []*write) (culprit *write, err error) {
	if isTransient(t.broken) {
		return nil, t.broken
	}
	if len(members) > 1 {
		w.err = t.failure()
		return w, nil
	}
	return nil, t.broken
}

// settings are for the transaction only. A process that is stopped inside of it
// must not keep its locks from everybody for good: it finds its connection gone
// when it goes on. And what is acknowledged is on the disk, whatever is usual in
// the database.
const settings = "SELECT set_config('lock_timeout', $1, true), set_config('idle_in_transaction_session_timeout', $2, true), set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)"

// beginWrite queues the beginning of a write: settings, locks, and then the time and
// what the store says of itself. It waits for the locks if it is told to, so
// that nobody else is blamed for them.
func (t *tx) beginWrite(scope *store.Scope, wait bool) error {
	t.writes, t.scope = true, scope
	t.queue("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
	busy := t.store.options.BusyTimeout
	t.queue(settings, fmt.Sprint(busy.Milliseconds()), fmt.Sprint(max(busy, DefaultBusyTimeout).Milliseconds()))
	t.lockScope(scope)
	t.queueIdentity()
	if wait {
		_ = t.flush()
		return t.broken
	}
	t.readAhead(scope)
	return nil
}

const identity = "SELECT clock_timestamp(), (SELECT value FROM @sidecar_meta WHERE key = 'schema_version'), (SELECT value FROM @sidecar_meta WHERE key = 'store_id')"

// queueIdentity asks for the time and makes sure that this is still the store
// that was opened, of a version that this sidecar knows.
func (t *tx) queueIdentity() {
	var version, id string
	t.queueRows(identity, nil, []any{&t.now, &version, &id}, func() error {
		if err := checkVersion(version); err != nil {
			return err
		}
		if id != t.store.identity.ID {
			return schema.Errorf(schema.ErrStoreReplaced, "another store is in the place of %s", t.store.identity.Location)
		}
		return nil
	})
}

// run executes one write, in a savepoint if it shares the transaction.
func (t *tx) run(w *write, alone bool) {
	if err := w.ctx.Err(); err != nil && !w.begun {
		w.err = err
		return
	}
	w.begun = true
	work := func(tx store.Tx) error {
		return store.Contain(func() error { return w.fn(tx) })
	}
	if alone {
		w.err = work(t)
		return
	}
	w.err = t.Nested(work)
	_ = t.flush() // so that no other write is blamed for what this one has left
}

// commit makes the changes durable and decides the writes. What is still queued
// goes with it. An error means that nothing was kept.
func (t *tx) commit(members []*write) error {
	_ = tookWarning(t.conn)
	var tag string
	t.queue("COMMIT").Exec(func(done pgconn.CommandTag) error {
		tag = done.String()
		return nil
	})
	_ = t.flush()
	switch {
	case t.broken == nil && tag == "COMMIT" && !tookWarning(t.conn):
		t.remember()
		t.store.news.tell()
		return nil
	case t.broken == nil && tag == "COMMIT", t.broken != nil && outcomeUnknown(t.broken):
		for _, w := range members {
			w.err = unknown(t.broken)
		}
		return nil
	case t.broken == nil:
		return errors.New("the server has rolled back instead of committing")
	}
	return t.broken
}

// outcomeUnknown reports whether an error during a commit leaves it open whether
// there was one: the connection went, or the server ended it while it waited for
// its standby. An error that the server survives is a refusal.
func outcomeUnknown(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.SeverityUnlocalized != "ERROR" && !strings.HasPrefix(server.Code, "40")
	}
	var broken lostError
	return errors.As(err, &broken)
}

func unknown(err error) error {
	e := schema.Errorf(schema.ErrStoreUnknown, "the connection to the server was lost during the commit; whether the call took effect is not known")
	e.Err = err
	return e
}

// remember keeps what the transaction has learnt of committed rows.
func (t *tx) remember() {
	t.store.counted.keep(t.counts)
	t.store.queue.holdings.keep(t.resources)
}

// end leaves the connection without a transaction. If that fails it is closed,
// which the server takes for a rollback.
func (t *tx) end() {
	if t.conn.IsClosed() || t.conn.PgConn().TxStatus() == 'I' {
		return
	}
	if _, err := t.conn.Exec(t.ctx, "ROLLBACK"); err != nil {
		_ = t.conn.Close(t.ctx)
	}
}

// lostUnlessState takes an error of the pool for a lost server, unless a server has said why.
func lostUnlessState(err error) error {
	if stateOf(err) != "" {
		return err
	}
	return lost(err)
}
