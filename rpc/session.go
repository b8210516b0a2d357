package rpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/sourcegraph/jsonrpc2"
)

// The bounds of a connection, unless the options say otherwise.
const (
	DefaultMaxFrame    = 4 << 20
	DefaultMaxInFlight = 256
	// unread is how many bytes of replies may wait for a host that does not
	// read before nothing more is read or begun.
	unread = 1 << 20
	// drainGrace is how long a session that was told to end waits for a host
	// that takes nothing of its last replies. A host that only closed its side
	// has all the time it wants.
	drainGrace = 3 * time.Second
	// goneGrace is the same for a host that is dead: whoever holds its end of
	// the pipe may still be reading.
	goneGrace = 250 * time.Millisecond
)

// ErrOutput reports that the output broke: the host can no longer be answered.
var ErrOutput = errors.New("the output is broken")

// ErrExit reports that the host sent exit without shutdown before it.
var ErrExit = errors.New("exit without shutdown")

// ErrHostGone is the cause of a context that ends because the host is dead, as
// ErrOutput is of one that ends because nobody can read the output. A session
// with such a context begins nothing more and hardly waits for anybody to read.
var ErrHostGone = errors.New("the host is gone")

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

// session is one connection.
type session struct {
	store   store.Store
	options Options
	log     *slog.Logger
	stream  *stream
	outbox  *outbox
	watches watches

	queue chan *call
	// gate guards ended. The reader holds it while it begins or queues a call, so
	// that neither is cut off by the end.
	gate  sync.Mutex
	ended bool
	// unfinished counts calls that were queued and not yet replied to; while
	// there is none, the reader begins calls, else the dispatcher.
	unfinished atomic.Int64
	// pending counts submitted writes whose outcome is still to come.
	pending sync.WaitGroup
	// prepared says that the store's migration has run; it belongs to whoever begins calls.
	prepared bool

	// draining refuses what arrives from now on; shutdown refuses what was
	// queued after the request of that name; hostLost begins nothing more,
	// because nobody would learn the outcome.
	draining, shutdown, hostLost atomic.Bool
	exit                         sync.Once
	exited                       chan struct{}
}

// Serve answers the requests of one host from in on out, until the end of
// input, exit, or the end of ctx, and returns when everything that was received
// has its reply. It returns nil on an orderly end, and ErrOutput, ErrExit,
// ErrHostGone or an error of the input otherwise.
//
// After the end of ctx, exit or a broken output, goroutines may stay blocked in
// a read of in or a write to out, which only the other side or the end of the
// process can undo.
func Serve(ctx context.Context, s store.Store, in io.Reader, out io.Writer, options Options) error {
	return newSession(s, in, out, options).serve(ctx)
}

func newSession(store store.Store, in io.Reader, out io.Writer, options Options) *session {
	if options.MaxFrame == 0 {
		options.MaxFrame = DefaultMaxFrame
	}
	if options.MaxInFlight == 0 {
		options.MaxInFlight = DefaultMaxInFlight
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	s := &session{
		store: store, options: options, log: options.Log,
		queue: make(chan *call, options.MaxInFlight), exited: make(chan struct{}),
	}
	input := &flushing{in: in}
	frames := newFramer(input, options.MaxFrame)
	s.outbox = newOutbox(out, func() bool { return frames.headers })
	input.flush = s.outbox.flush
	s.stream = newStream(s.outbox, frames, newRoom(options.MaxInFlight, maxFlightBytes), s.settle, options.Log)
	s.watches.session = s
	return s
}

// flushing is the input of a reader that answers by itself: its answers are
// written before it waits for more.
type flushing struct {
	in    io.Reader
	flush func()
}

func (f *flushing) Read(p []byte) (int, error) {
	f.flush()
	return f.in.Read(p)
}

// serve runs the session. Between its begin and its end nothing waits for the
// host without a bound, unless the host is alive and has only closed its side.
func (s *session) serve(ctx context.Context) error {
	var dispatcher sync.WaitGroup
	dispatcher.Go(s.dispatch)
	conn := jsonrpc2.NewConn(context.Background(), s.stream, handler{s},
		jsonrpc2.OnSend(s.stream.onSend), jsonrpc2.SetLogger(quiet{}))
	stop := context.AfterFunc(ctx, func() { s.drain(context.Cause(ctx)) })
	defer stop()
	err := s.untilEnd(ctx, conn.DisconnectNotify())
	s.endQueue()
	dispatcher.Wait()
	s.pending.Wait()
	s.watches.stop()
	s.stream.abandon()
	broken := s.outbox.close()
	conn.Close()
	if broken != nil {
		return broken
	}
	return s.outcome(err)
}

// untilEnd waits for whatever ends the session.
func (s *session) untilEnd(ctx context.Context, inputEnd <-chan struct{}) error {
	select {
	case <-inputEnd:
		return s.stream.failure
	case <-s.exited:
		go s.outbox.expectProgress(drainGrace)
	case <-ctx.Done():
		return lost(context.Cause(ctx))
	case <-s.outbox.failed:
		s.loseHost()
	}
	return nil
}

// lost returns the cause of the end of a context if it says that the host cannot be reached.
func lost(cause error) error {
	if errors.Is(cause, ErrHostGone) || errors.Is(cause, ErrOutput) {
		return cause
	}
	return nil
}

// drain ends the session in good order: it refuses what arrives from now on and
// finishes the rest, but waits no longer than it must for a host that does not
// read. For a host that is lost nothing more is begun.
func (s *session) drain(cause error) {
	s.draining.Store(true)
	grace := drainGrace
	if lost(cause) != nil {
		s.loseHost()
		grace = goneGrace
	}
	s.outbox.expectProgress(grace)
}

// loseHost drops every call that has not begun.
func (s *session) loseHost() {
	s.draining.Store(true)
	s.hostLost.Store(true)
	s.stream.cancelAll()
}

// endQueue waits for what the reader has begun, and lets the dispatcher finish
// what was queued; nothing more is begun or queued.
func (s *session) endQueue() {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.ended = true
	close(s.queue)
}

// outcome judges the end by what the host said, whichever was noticed first:
// its exit or the end of its input.
func (s *session) outcome(err error) error {
	select {
	case <-s.exited:
		if !s.shutdown.Load() {
			return ErrExit
		}
		return nil
	default:
		return err
	}
}
