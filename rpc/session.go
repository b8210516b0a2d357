package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/sourcegraph/jsonrpc2"
)

// The bounds of a connection, unless the options say otherwise.
const (
	DefaultMaxFrame    = 4 << 20
	DefaultMaxInFlight = 256
	// unread is how many bytes of replies may wait for a host that does not
	// read before nothing more is begun.
	unread = 8 << 20
)

// ErrOutput reports that the output broke: the host can no longer be answered.
var ErrOutput = errors.New("the output is broken")

// ErrExit reports that the host sent exit without shutdown before it.
var ErrExit = errors.New("exit without shutdown")

// Options say how a connection is served.
type Options struct {
	// Version is the sidecar's own, for initialize.
	Version string
	// MaxFrame is the largest frame in bytes; 0 means [DefaultMaxFrame].
	MaxFrame int
	// MaxInFlight bounds the requests in flight; 0 means [DefaultMaxInFlight].
	MaxInFlight int
	// Pinned fixes the authority of the connection where its members are set.
	Pinned schema.PinnedAuthority
	// Log receives what the host is not told. It must not block.
	Log *slog.Logger
}

// drainGrace is how long an ending session waits for a host that does not read
// its last replies.
const drainGrace = 5 * time.Second

// session is one connection.
type session struct {
	store   store.Store
	options Options
	log     *slog.Logger
	stream  *stream
	outbox  *outbox
	conn    *jsonrpc2.Conn
	watches watches

	queue chan queued
	// gate guards ended: whoever queues a call holds it for reading, so that
	// the queue is not closed under the reader.
	gate  sync.RWMutex
	ended bool
	// unfinished counts calls that were queued and not yet replied to; while
	// there is none, the reader may answer by itself.
	unfinished atomic.Int64
	// pending counts submitted writes whose outcome is still to come.
	pending sync.WaitGroup
	// prepared says that the store's migration has run; the dispatcher's own.
	prepared bool

	// draining refuses what arrives from now on; shutdown refuses what was
	// queued after the request of that name.
	draining, shutdown atomic.Bool
	exit               sync.Once
	exited             chan struct{}
}

// queued is a call on its way through the queue.
type queued struct {
	id   uint64
	call *call
}

// Serve answers the requests of one host from in on out, until the end of
// input, exit, or the end of ctx, and returns when everything that was received
// has its reply. It returns nil on an orderly end, ErrOutput or ErrExit otherwise.
//
// After the end of ctx, exit or a broken output, a goroutine may stay blocked
// in a read of in, which only the end of input or of the process can undo.
func Serve(ctx context.Context, s store.Store, in io.Reader, out io.Writer, options Options) error {
	if options.MaxFrame == 0 {
		options.MaxFrame = DefaultMaxFrame
	}
	if options.MaxInFlight == 0 {
		options.MaxInFlight = DefaultMaxInFlight
	}
	frames := newFramer(in, options.MaxFrame)
	box := newOutbox(out, func() bool { return frames.headers })
	session := &session{
		store: s, options: options, log: options.Log, outbox: box,
		stream: newStream(box, frames, options.MaxInFlight, options.Log),
		queue:  make(chan queued, options.MaxInFlight),
		exited: make(chan struct{}),
	}
	session.watches.session = session
	return session.serve(ctx)
}

func (s *session) serve(ctx context.Context) error {
	var dispatcher sync.WaitGroup
	dispatcher.Go(s.dispatch)
	s.conn = jsonrpc2.NewConn(context.Background(), s.stream, handler{s},
		jsonrpc2.OnSend(s.stream.onSend), jsonrpc2.SetLogger(quiet{}))
	err := s.untilEnd(ctx)
	s.gate.Lock()
	s.ended = true
	close(s.queue)
	s.gate.Unlock()
	dispatcher.Wait()
	s.pending.Wait()
	s.watches.stop()
	s.stream.abandon()
	if s.outbox.close(drainGrace) != nil {
		err = ErrOutput
	}
	s.conn.Close()
	return err
}

// untilEnd waits for whatever ends the session.
func (s *session) untilEnd(ctx context.Context) error {
	select {
	case <-s.conn.DisconnectNotify():
		return nil
	case <-s.exited:
		if s.shutdown.Load() {
			return nil
		}
		return ErrExit
	case <-ctx.Done():
		s.draining.Store(true)
		return nil
	case <-s.outbox.failed:
		s.stream.cancelAll() // nobody would learn the outcome
		return ErrOutput
	}
}

// quiet drops the library's own log: the session logs what matters.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

// handler receives the requests that jsonrpc2 was shown, in the order received.
type handler struct{ *session }

// Handle implements jsonrpc2.Handler. It runs in the reader's goroutine.
func (h handler) Handle(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) {
	q := queued{id: r.ID.Num, call: h.stream.lookup(r.ID.Num)}
	if q.call.id == nil {
		h.notified(q.call)
		h.stream.forget(q.id)
		return
	}
	h.gate.RLock()
	defer h.gate.RUnlock()
	switch {
	case h.ended || h.draining.Load():
		h.unfinished.Add(1)
		h.reply(q, nil, errShuttingDown())
	case h.unfinished.Load() == 0 && answersInline(q.call.method):
		q.call.inline = true
		h.unfinished.Add(1)
		h.begin(q)
	default:
		h.unfinished.Add(1)
		h.queue <- q // has room: every request in it holds a slot
	}
}

func answersInline(method string) bool {
	op, ok := operations[method]
	return ok && op.spec.Is(schema.Session)
}

// notified handles a notification. Only those about the session do anything.
func (s *session) notified(c *call) {
	spec := schema.Lookup(c.method)
	switch {
	case c.method == schema.Exit.Name:
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
		s.log.Info("a notification was ignored", "method", c.method)
	}
}

// dispatch begins the queued calls one after another.
func (s *session) dispatch() {
	for q := range s.queue {
		s.outbox.waitRoom(unread)
		s.begin(q)
	}
}

// begin starts a call and sees to it that it is replied to once.
func (s *session) begin(q queued) {
	defer func() {
		if p := recover(); p != nil {
			s.reply(q, nil, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	if err := q.call.ctx.Err(); err != nil {
		s.reply(q, nil, err)
		return
	}
	if s.shutdown.Load() {
		s.reply(q, nil, errShuttingDown())
		return
	}
	op, ok := operations[q.call.method]
	if !ok {
		s.reply(q, nil, schema.Errorf(schema.ErrMethodNotFound, "no method %q", q.call.method))
		return
	}
	op.begin(s, q)
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

// submit runs fn as a write. Its place in the order is taken at once; the reply
// follows the commit.
func (s *session) submit(q queued, fn func(store.Tx) (any, error)) {
	var result any
	s.pending.Add(1)
	s.store.Submit(q.call.ctx, func(tx store.Tx) (err error) {
		result, err = fn(tx)
		return err
	}, func(err error) {
		s.reply(q, result, err)
		s.pending.Done()
	})
}

// read runs fn on the state that every write before it has led to.
func (s *session) read(q queued, fn func(store.Tx) (any, error)) {
	s.pending.Wait()
	var result any
	err := s.store.Read(q.call.ctx, func(tx store.Tx) (err error) {
		result, err = fn(tx)
		return err
	})
	s.reply(q, result, err)
}

// reply sends the outcome of a call. The transaction is over by now, so a host
// that does not read holds nothing but its own replies.
func (s *session) reply(q queued, result any, err error) {
	var text []byte
	if err == nil {
		text, err = schema.Encode(s.pin().redactResult(result))
	}
	q.call.reply = response(q.call.id, text, s.pin().redact(err), s.log)
	s.unfinished.Add(-1)
	null := json.RawMessage("null") // the stream writes the reply itself
	if err := s.conn.SendResponse(context.Background(), &jsonrpc2.Response{ID: jsonrpc2.ID{Num: q.id}, Result: &null}); err != nil {
		s.log.Warn("a reply could not be sent", "error", err)
	}
}
