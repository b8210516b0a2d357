package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/sourcegraph/jsonrpc2"
)

// quiet drops the library's own log: the session logs what matters.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// handler receives the requests that jsonrpc2 was shown, in the order received.
type handler struct{ *session }

// Handle implements jsonrpc2.Handler. It runs in the reader's goroutine.
func (h handler) Handle(_ context.Context, conn *jsonrpc2.Conn, r *jsonrpc2.Request) {
	c := h.stream.lookup(r.ID.Num)
	c.conn = conn
	h.unfinished.Add(1)
	if !h.enqueue(c) {
		h.reply(c, nil, errShuttingDown())
	}
}

// enqueue gives a call its place in the order; false if the session is ending.
// It never blocks: the queue has room for every call that has room in flight.
func (s *session) enqueue(c *call) bool {
	s.gate.Lock()
	defer s.gate.Unlock()
	if s.ended {
		return false
	}
	s.queue <- c
	return true
}

// settle deals with what the reader can deal with at once: notifications, and,
// while nothing is queued, requests, which saves three goroutines a turn. Of
// those that change something it takes only one that came alone: several share a
// commit when they are queued. It runs in the reader's goroutine and reports
// false for a call that has to be queued.
func (s *session) settle(c *call) bool {
	if c.id == nil {
		s.contain(c, func() { s.notified(c) })
		return true
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	switch {
	case s.ended || s.draining.Load():
		s.reply(c, nil, errShuttingDown())
	case s.unfinished.Load() > 0 || c.op == nil:
		return false
	case !c.op.spec.Is(schema.Mutates):
		s.begin(c)
	default:
		return s.stream.alone(c) && s.writeNow(c)
	}
	return true
}

// writeNow is begin for a call that changes something, if the store can do that
// without keeping the reader waiting.
func (s *session) writeNow(c *call) (done bool) {
	done = true // by a panic too
	s.contain(c, func() {
		var result any
		err := c.op.ready(s, c)
		if err == nil {
			done, err = s.store.WriteNow(c.ctx, c.into(&result))
		}
		if done {
			s.reply(c, result, err)
		}
	})
	return done
}

// notified handles a notification. Only those about the session do anything.
func (s *session) notified(c *call) {
	spec := schema.Lookup(c.method)
	switch {
	case c.method == schema.Exit.Name:
		s.draining.Store(true) // what comes after it is refused
		s.exit.Do(func() { close(s.exited) })
	case c.method == schema.Cancel.Name:
		var p schema.CancelParams
		if err := schema.Cancel.Bind(c.params, &p); err != nil {
			s.log.Warn("a cancellation names no request", "error", err)
			return
		}
		s.stream.cancel(p.ID)
	case spec != nil && spec.Is(schema.Mutates):
		s.log.Warn("not executed: nobody would learn the outcome of a notification", "method", c.method)
	default:
		s.log.Info("a notification was ignored", "method", clip(c.method))
	}
}

// dispatch begins the queued calls one after another.
func (s *session) dispatch() {
	for c := range s.queue {
		if !s.outbox.waitRoom(unread) {
			s.loseHost()
		}
		s.begin(c)
	}
}

// begin starts a call and sees to it that it is replied to once.
func (s *session) begin(c *call) {
	s.contain(c, func() {
		switch {
		case s.hostLost.Load(), c.ctx.Err() != nil:
			s.reply(c, nil, context.Canceled)
		case s.shutdown.Load():
			s.reply(c, nil, errShuttingDown())
		case c.op == nil:
			s.reply(c, nil, schema.Errorf(schema.ErrMethodNotFound, "no method %s", clip(c.method)))
		default:
			c.op.begin(s, c)
		}
	})
}

// contain runs fn for a call. A panic costs that call and not the process.
func (s *session) contain(c *call, fn func()) {
	defer func() {
		if p := recover(); p != nil {
			err := fmt.Errorf("panic: %v\n%s", p, debug.Stack())
			if c.id == nil {
				s.log.Error("a notification failed", "error", err)
				return
			}
			s.reply(c, nil, err)
		}
	}()
	fn()
}

func errShuttingDown() error {
	return schema.Errorf(schema.ErrShuttingDown, "the sidecar is shutting down")
}

// prepare runs the store's migration before the first governor call.
func (s *session) prepare(ctx context.Context) error {
	if s.prepared {
		return nil
	}
	err := governor.Prepare(ctx, s.store)
	s.prepared = err == nil
	return err
}

// into is what the call does in a transaction, with the result put aside.
func (c *call) into(result *any) func(store.Tx) error {
	return func(tx store.Tx) (err error) {
		*result, err = c.run(tx)
		return err
	}
}

// submit runs a call as a write of its scope. Its place in the order is taken at
// once; the reply follows the commit.
func (s *session) submit(c *call) {
	var result any
	s.pending.Add(1)
	s.store.Submit(store.WithScope(c.ctx, c.scope), c.into(&result), func(err error) {
		defer s.pending.Done()
		s.contain(c, func() { s.reply(c, result, err) })
	})
}

// read runs a call on the state that every write before it has led to. The
// transaction is over before the reply is sent.
func (s *session) read(c *call) {
	s.pending.Wait()
	var result any
	err := s.store.Read(c.ctx, c.into(&result))
	s.reply(c, result, err)
}

// reply sends the outcome of a call, once. It never blocks on the host, and the
// transaction is over by now, so a host that does not read holds nothing but
// its own replies.
func (s *session) reply(c *call, result any, err error) {
	text := response(c.id, result, s.pin().redact(err), s.log)
	if !c.replied.CompareAndSwap(false, true) {
		return
	}
	c.reply, c.params, c.run = text, nil, nil
	if c.number == 0 {
		s.stream.finish(c)
		return
	}
	s.unfinished.Add(-1)
	null := json.RawMessage("null") // the stream writes the reply itself
	if err := c.conn.SendResponse(context.Background(), &jsonrpc2.Response{ID: jsonrpc2.ID{Num: c.number}, Result: &null}); err != nil {
		s.log.Info("a reply came after the end of the session", "error", err)
	}
}
