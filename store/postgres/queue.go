package postgres

import (
	"context"
	"slices"
	"sync"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

const (
	// queued is how many writes may wait; past that, Submit waits for room.
	queued = 1024
	// batched is how many writes share a commit at most. It bounds what a failed
	// commit can cost and how long other processes wait for the lock of the run.
	batched = 64
)

// write is one submitted call.
type write struct {
	ctx    context.Context
	fn     func(store.Tx) error
	done   func(error)
	scope  *store.Scope
	demand demand
	// begun says that fn has been called, after which the context has no say.
	begun bool
	err   error
}

// batch are writes of the same runs that share a transaction.
type batch struct {
	members []*write
	claims  claims
}

func (b *batch) add(w *write) {
	b.members = append(b.members, w)
	b.claims.add(&w.demand)
}

// scope is the scope of a transaction of several writes.
func scopeOf(members []*write) *store.Scope {
	joined := store.Scope{}
	for i, w := range members {
		switch {
		case w.scope == nil:
			return nil
		case i == 0:
			joined = *w.scope
		default:
			joined = joined.Join(*w.scope)
		}
	}
	return &joined
}

// queue keeps the order of the writes that can see each other. A write waits
// for every earlier one that it could meet, and for a free connection.
type queue struct {
	store    *Store
	holdings holdings
	// room has an entry for each write that has not been answered.
	room chan struct{}
	work sync.WaitGroup

	mu      sync.Mutex
	waiting []*write
	running []*batch
	idle    int // how many more transactions may begin
}

// start leaves some connections to reads.
func (q *queue) start(s *Store) {
	q.store = s
	q.room = make(chan struct{}, queued)
	q.idle = max(1, int(s.pool.Config().MaxConns)*3/4)
}

// stop waits until every write is answered.
func (q *queue) stop() { q.work.Wait() }

// Write implements [store.Store].
func (s *Store) Write(ctx context.Context, fn func(store.Tx) error) error {
	outcome := make(chan error, 1)
	s.Submit(ctx, fn, func(err error) { outcome <- err })
	return <-outcome
}

// WriteNow implements [store.Store]. A server is always waited for.
func (s *Store) WriteNow(context.Context, func(store.Tx) error) (bool, error) { return false, nil }

// Submit implements [store.Store]. Of writes with a scope only those keep their
// order that could tell it.
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
	case s.queue.room <- struct{}{}:
		s.queue.add(&write{ctx: ctx, fn: fn, done: done, scope: store.ScopeOf(ctx)})
	}
}

func (q *queue) add(w *write) {
	w.demand = newDemand(w.scope, &q.holdings)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, w)
	q.begin()
}

// begin starts what may run now. It is called with the lock held.
func (q *queue) begin() {
	if q.idle == 0 {
		return
	}
	var earlier claims
	var formed []*batch
	rest := q.waiting[:0]
	for _, w := range q.waiting {
		if !q.place(w, &earlier, &formed) {
			earlier.add(&w.demand)
			rest = append(rest, w)
		}
	}
	clear(q.waiting[len(rest):])
	q.waiting = rest
	for _, b := range formed {
		q.idle--
		q.running = append(q.running, b)
		q.work.Go(func() { q.run(b) })
	}
}

// place finds a transaction for a write: one that is about to begin on the same
// runs, or a new one. It reports false if the write must wait.
func (q *queue) place(w *write, earlier *claims, formed *[]*batch) bool {
	meets := func(b *batch) bool { return b.claims.meets(&w.demand) }
	if earlier.meets(&w.demand) || slices.ContainsFunc(q.running, meets) {
		return false
	}
	home := slices.IndexFunc(*formed, meets)
	if home < 0 {
		if len(*formed) == q.idle {
			return false
		}
		b := &batch{}
		b.add(w)
		*formed = append(*formed, b)
		return true
	}
	b := (*formed)[home]
	if slices.ContainsFunc((*formed)[home+1:], meets) || len(b.members) == batched || !sameRuns(&b.members[0].demand, &w.demand) {
		return false
	}
	b.add(w)
	return true
}

func sameRuns(a, b *demand) bool {
	return a.everything == b.everything && slices.Equal(a.runs, b.runs)
}

// run serves a batch, lets what waited for it begin, and answers.
func (q *queue) run(b *batch) {
	q.store.serve(b.members)
	q.mu.Lock()
	q.running = slices.DeleteFunc(q.running, func(other *batch) bool { return other == b })
	q.idle++
	q.begin()
	q.mu.Unlock()
	for _, w := range b.members {
		w.done(w.err)
		<-q.room
	}
}
