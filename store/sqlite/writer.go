package sqlite

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

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

// writer owns the connection that writes. Its goroutine serves what is queued;
// while nothing is, a caller may write for itself, which saves waking two
// goroutines for a commit that takes about as long.
type writer struct {
	store *Store
	turn  *turn
	queue chan *write
	// restarts is told of each commit.
	restarts restarter
	// unanswered counts the writes that were submitted and have no outcome yet.
	unanswered atomic.Int64
	exited     chan struct{}

	// mu is held while a batch is served.
	mu   sync.Mutex
	conn *conn // nil after a failure, until the next batch opens it again
}

func (w *writer) start(s *Store) {
	w.store = s
	w.queue = make(chan *write, queued)
	w.exited = make(chan struct{})
	w.turn = openTurn(s.path+"-turn", s.options.BusyTimeout)
	w.restarts.start(w)
	go w.loop()
}

// stop serves what was submitted and ends the goroutines.
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
	s.writer.unanswered.Add(1)
	select {
	case <-ctx.Done():
		s.writer.unanswered.Add(-1)
		done(ctx.Err())
	case s.writer.queue <- &write{ctx: ctx, fn: fn, done: done}:
	}
}

// WriteNow implements [store.Store].
func (s *Store) WriteNow(ctx context.Context, fn func(store.Tx) error) (bool, error) {
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed || s.options.ReadOnly {
		return false, nil // Submit tells why
	}
	return s.writer.now(&write{ctx: ctx, fn: fn})
}

// now serves a write in the caller's goroutine, unless it would have to wait.
func (w *writer) now(alone *write) (bool, error) {
	if w.unanswered.Load() > 0 || !w.mu.TryLock() {
		return false, nil
	}
	defer w.mu.Unlock()
	// Without a log, a commit waits for readers.
	if w.unanswered.Load() > 0 || w.conn == nil || !w.conn.wal || !w.turn.takeNow() {
		return false, nil
	}
	defer w.turn.give()
	w.commit([]*write{alone}, false)
	if !alone.decided {
		return false, nil
	}
	if err := failpoint("reply"); err != nil {
		return true, err
	}
	return true, alone.err
}

// loop serves batches until the queue is closed and empty.
func (w *writer) loop() {
	defer close(w.exited)
	defer w.turn.close()
	defer w.disconnect()
	defer w.restarts.stop()
	for first := range w.queue {
		w.serve(first)
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

// serve decides a write, and what has arrived with it, and answers them all.
func (w *writer) serve(first *write) {
	batch := w.decide(first)
	for _, member := range batch {
		if err := failpoint("reply"); err != nil {
			member.err = err
		}
		w.unanswered.Add(-1)
		member.done(member.err)
	}
}

func (w *writer) decide(first *write) (batch []*write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inTurn(func() {
		batch = w.batch(first) // with those that came while it waited for its turn
		w.commit(batch, true)
	})
	for _, member := range batch {
		// What is still undecided shared a transaction that another member
		// broke. Each gets one of its own, so that only the culprit fails.
		if !member.decided {
			w.inTurn(func() { w.commit([]*write{member}, true) })
		}
		if !member.decided {
			member.fail(schema.Errorf(schema.ErrStoreIO, "the transaction was undone"))
		}
	}
	return batch
}

func (w *writer) inTurn(fn func()) {
	w.turn.take()
	defer w.turn.give()
	fn()
}

// commit runs the batch in one transaction. Members that fail on their own are
// decided at once; the others when the commit has succeeded or failed. If a
// member breaks the transaction itself, it is decided and the others are not.
// If it is not to wait and another process is writing, nobody is decided.
func (w *writer) commit(batch []*write, wait bool) {
	ctx := context.Background() // a transaction that has begun runs to its end
	c, err := w.begin(ctx, wait)
	if !wait && isBusy(err) {
		return
	}
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
	w.restarts.grown(w.store.logLength())
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
func (w *writer) begin(ctx context.Context, wait bool) (*conn, error) {
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
	if err := c.setWaiting(ctx, wait); err != nil {
		w.disconnect()
		return nil, classify(err, "the database cannot be used")
	}
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
		return store.Contain(func() error { return member.fn(tx) })
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
