package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

const (
	// queued is how many writes may wait; past that, Submit waits for room.
	queued = 1024
	// batched is how many writes share a commit at most. It bounds what a
	// failed commit can cost and how long other processes wait for the lock.
	batched = 256
)

// write is one submitted call.
type write struct {
	ctx  context.Context
	fn   func(store.Tx) error
	done func(error)
	// err is the outcome once decided says so.
	err     error
	decided bool
}

func (w *write) fail(err error) { w.err, w.decided = err, true }

// writer owns the connection that writes. One goroutine runs it.
type writer struct {
	store  *Store
	turn   *turn
	conn   *conn // nil after a failure, until the next batch opens it again
	queue  chan *write
	exited chan struct{}
}

func (w *writer) start(s *Store) {
	w.store = s
	w.queue = make(chan *write, queued)
	w.exited = make(chan struct{})
	w.turn = openTurn(s.path + "-turn")
	go w.loop()
}

// stop serves what was submitted and ends the goroutine.
func (w *writer) stop() {
	close(w.queue)
	<-w.exited
}

// Write implements [store.Store].
func (s *Store) Write(ctx context.Context, fn func(store.Tx) error) error {
	outcome := make(chan error, 1)
	s.Submit(ctx, fn, func(err error) { outcome <- err })
	return <-outcome
}

// Submit implements [store.Store].
func (s *Store) Submit(ctx context.Context, fn func(store.Tx) error, done func(error)) {
	if s.options.ReadOnly {
		done(schema.Errorf(schema.ErrStoreReadonly, "the store was opened for reading only"))
		return
	}
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed {
		done(errClosed())
		return
	}
	select {
	case <-ctx.Done():
		done(ctx.Err())
	case s.writer.queue <- &write{ctx: ctx, fn: fn, done: done}:
	}
}

// loop serves batches until the queue is closed and empty.
func (w *writer) loop() {
	defer close(w.exited)
	defer w.turn.close()
	defer w.disconnect()
	for first := range w.queue {
		w.serve(w.batch(first))
	}
}

// batch takes the first write and whatever else has arrived.
func (w *writer) batch(first *write) []*write {
	batch := []*write{first}
	for len(batch) < batched {
		select {
		case next, ok := <-w.queue:
			if !ok {
				return batch
			}
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// serve decides every write of the batch and answers them.
func (w *writer) serve(batch []*write) {
	w.commit(batch)
	for _, member := range batch {
		// What is still undecided shared a transaction that another member
		// broke. Each gets one of its own, so that only the culprit fails.
		if !member.decided {
			w.commit([]*write{member})
		}
		if !member.decided {
			member.fail(schema.Errorf(schema.ErrStoreIO, "the transaction was undone"))
		}
	}
	for _, member := range batch {
		if err := failpoint("reply"); err != nil {
			member.err = err
		}
		member.done(member.err)
	}
}

// commit runs the batch in one transaction. Members that fail on their own are
// decided at once; the others when the commit has succeeded or failed. If a
// member breaks the transaction itself, it is decided and the others are not.
func (w *writer) commit(batch []*write) {
	ctx := context.Background() // a transaction that has begun runs to its end
	w.turn.take()
	defer w.turn.give()
	c, err := w.begin(ctx)
	if err != nil {
		failAll(batch, err)
		return
	}
	for _, member := range batch {
		if !w.run(ctx, c, member, len(batch) == 1) {
			w.rollback(ctx, c)
			return
		}
	}
	err = c.exec(ctx, "COMMIT")
	if err == nil {
		err = failpoint("committed")
	}
	if err != nil {
		failAll(batch, classify(err, "the transaction cannot be committed"))
		c.ledger.forget()
		w.rollback(ctx, c)
		return
	}
	c.ledger.settled()
	w.store.witness(c.added)
	// A file that was taken away meanwhile may have taken the commit with it.
	failAll(batch, uncertain(w.store.checkFiles(ctx, c)))
}

// uncertain adds to an error after the commit that nobody knows its outcome.
func uncertain(err error) error {
	var known *schema.Error
	if errors.As(err, &known) {
		return schema.Errorf(known.Code, "%s; whether the call took effect is not known", known.Message)
	}
	return err
}

// failAll decides every member that is not decided yet.
func failAll(batch []*write, err error) {
	for _, member := range batch {
		if !member.decided {
			member.fail(err)
		}
	}
}

// begin opens the write transaction, and the connection if there is none.
func (w *writer) begin(ctx context.Context) (*conn, error) {
	if err := w.store.checkFiles(ctx, w.conn); err != nil {
		w.disconnect()
		return nil, err
	}
	if w.conn == nil {
		c, err := w.store.connect(ctx, false)
		if err != nil {
			return nil, err
		}
		if err := w.store.checkFiles(ctx, c); err != nil {
			c.close()
			return nil, err
		}
		w.conn = c
	}
	c := w.conn
	if err := c.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		if !isBusy(err) {
			w.disconnect()
		}
		return nil, classify(err, "the write lock was not had")
	}
	c.added = mark{}
	if err := c.refresh(ctx); err != nil {
		w.rollback(ctx, c)
		return nil, classify(err, "the database cannot be read")
	}
	return c, nil
}

// run executes one member, in a savepoint if it shares the transaction. It
// returns false if the transaction is no longer what it was: an error can roll
// all of it back, and a later SAVEPOINT would then silently open a transaction
// of its own. A member that is alone and fails ends the transaction too.
func (w *writer) run(ctx context.Context, c *conn, member *write, alone bool) bool {
	if member.decided {
		return true
	}
	if err := member.ctx.Err(); err != nil {
		member.fail(err)
		return true
	}
	t := &tx{ctx: ctx, conn: c, broken: new(error)}
	work := func(tx store.Tx) error {
		return contain(func() error { return member.fn(tx) })
	}
	var err error
	if alone {
		err = work(t)
	} else {
		err = t.Nested(work)
	}
	if *t.broken != nil {
		err = *t.broken
	}
	if err != nil {
		member.fail(err)
	}
	return *t.broken == nil && (err == nil || !alone)
}

// rollback undoes the transaction. If that fails the connection goes, for
// nobody knows what state it is in; the next batch opens another.
func (w *writer) rollback(ctx context.Context, c *conn) {
	c.ledger.rollback(0)
	if err := c.exec(ctx, "ROLLBACK"); err != nil {
		w.disconnect()
	}
}

func (w *writer) disconnect() {
	if w.conn != nil {
		w.conn.close()
		w.conn = nil
	}
}

// panicked describes a panic for the log.
func panicked(value any) error { return fmt.Errorf("panic: %v\n%s", value, debug.Stack()) }
