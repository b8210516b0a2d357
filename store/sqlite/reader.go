package sqlite

import (
	"context"
	"sync"

	"github.com/dsh-taskforce/sidecar/store"
)

// readers is how many reads run at once. One host rarely asks for more, and
// each connection has a page cache of its own.
const readers = 4

// reader keeps the connections that only read.
type reader struct {
	// turns holds one entry for each read that may run.
	turns chan struct{}
	mu    sync.Mutex
	// idle are the open connections; the last one used is the next, so that
	// reads one after another use one connection and what it remembers.
	idle []*conn
}

func (r *reader) start() {
	r.turns = make(chan struct{}, readers)
	for range readers {
		r.turns <- struct{}{}
	}
}

// stop waits for running reads and closes every connection.
func (r *reader) stop() {
	for range readers {
		<-r.turns
	}
	for _, c := range r.idle {
		c.close()
	}
}

// take returns an idle connection, nil if one is to be opened.
func (r *reader) take() *conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.idle) == 0 {
		return nil
	}
	last := len(r.idle) - 1
	c := r.idle[last]
	r.idle = r.idle[:last]
	return c
}

// give takes a connection back; nil stands for one that had to be closed.
func (r *reader) give(c *conn) {
	if c != nil {
		r.mu.Lock()
		r.idle = append(r.idle, c)
		r.mu.Unlock()
	}
	r.turns <- struct{}{}
}

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, fn func(store.Tx) error) error {
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed {
		return errClosed()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-s.reader.turns:
	}
	if err := ctx.Err(); err != nil { // select chooses among what is ready by chance
		s.reader.give(nil)
		return err
	}
	keep, err := s.read(ctx, s.reader.take(), fn)
	s.reader.give(keep)
	return err
}

// read runs fn on a connection and returns the connection to keep: nil if it
// had to be closed.
func (s *Store) read(ctx context.Context, c *conn, fn func(store.Tx) error) (keep *conn, err error) {
	if err := s.checkFiles(context.WithoutCancel(ctx), c); err != nil {
		if c != nil {
			c.close()
		}
		return nil, err
	}
	if c == nil {
		if c, err = s.connectReader(ctx); err != nil {
			return nil, err
		}
	}
	// The transaction outlives a cancelled context: interrupting SQLite in the
	// middle would cost the connection and save little.
	bg := context.WithoutCancel(ctx)
	if err := c.exec(bg, "BEGIN"); err != nil {
		c.close()
		return nil, classify(err, "a read cannot begin")
	}
	err = runReading(bg, c, fn)
	c.ledger.settled()
	if end := c.exec(bg, "ROLLBACK"); end != nil {
		c.close()
		return nil, err
	}
	return c, err
}

func runReading(ctx context.Context, c *conn, fn func(store.Tx) error) error {
	if err := c.refresh(ctx); err != nil {
		return classify(err, "the database cannot be read")
	}
	return store.Contain(func() error { return fn(&tx{ctx: ctx, conn: c, broken: new(error)}) })
}

// connectReader opens a connection that cannot write, on the file that the
// store was opened on.
func (s *Store) connectReader(ctx context.Context) (*conn, error) {
	c, err := s.connect(ctx, s.options.ReadOnly)
	if err != nil {
		return nil, err
	}
	if s.options.ReadOnly {
		err = c.shadow(ctx)
	}
	if err == nil {
		_, err = c.c.ExecContext(ctx, "PRAGMA query_only = ON")
	}
	if err == nil {
		err = s.checkFiles(ctx, c)
	}
	if err != nil {
		c.close()
		return nil, classify(err, "the database cannot be read")
	}
	return c, nil
}
