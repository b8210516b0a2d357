package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/sourcegraph/jsonrpc2"
)

// stream is the jsonrpc2.ObjectStream between the frames and the library. The
// library sees the requests that are to be queued, as {"id", "method"} with ids
// of the stream's own; everything else of a request waits in the side table
// under that id.
type stream struct {
	frames *framer
	outbox *outbox
	room   *room
	log    *slog.Logger
	// settle answers a call at once if it can, and is asked before the library sees it.
	settle func(*call) bool

	// ready are calls that were read and, from next on, not yet settled or shown;
	// the reader's own.
	ready []*call
	next  int
	// failure is why the input ended, nil at the end of it. It is set before
	// the library reports the end.
	failure error

	mu    sync.Mutex
	last  uint64
	calls map[uint64]*call
	keys  map[string]*call
	// abandoned says that the session is over and replies are no longer waited for.
	abandoned bool
	// empty wakes the end of input when no call is left.
	empty *sync.Cond

	// sending is the id of the response that jsonrpc2 is about to write. The
	// library serialises its writes, and calls onSend before each.
	sending uint64
}

func newStream(outbox *outbox, frames *framer, room *room, settle func(*call) bool, log *slog.Logger) *stream {
	s := &stream{
		frames: frames, outbox: outbox, room: room, settle: settle, log: log,
		calls: map[uint64]*call{}, keys: map[string]*call{},
	}
	s.empty = sync.NewCond(&s.mu)
	return s
}

// ReadObject shows the next call that has to be queued to jsonrpc2. At the end
// of input it waits until every reply has been handed over, because the library
// drops what comes later. When nobody can be answered, nothing more is read.
func (s *stream) ReadObject(v any) error {
	for {
		for s.next < len(s.ready) {
			c := s.ready[s.next]
			s.ready[s.next] = nil
			s.next++
			if !s.settle(c) {
				return show(s.register(c), v)
			}
		}
		s.ready, s.next = s.ready[:0], 0
		if !s.outbox.waitRoom(unread) || !s.receiveFrame() {
			s.outbox.flush()
			s.wait()
			return io.EOF
		}
	}
}

// alone reports whether a call came alone: in no batch, and nothing after it has
// arrived yet.
func (s *stream) alone(c *call) bool {
	return c.batch == nil && s.next == len(s.ready) && s.frames.in.Buffered() == 0
}

// receiveFrame reads one frame and answers what is wrong with it. It reports
// false at the end of the input.
func (s *stream) receiveFrame() bool {
	frame, err := s.frames.next()
	switch {
	case err == nil:
		s.receive(frame)
	case errors.Is(err, errTooLong):
		s.refuse(nil, protocolError(schema.ErrInvalidRequest, fmt.Sprintf("%v of %d bytes", err, s.frames.limit)))
	case errors.Is(err, errBadHeader), errors.Is(err, errCut):
		s.refuse(nil, protocolError(schema.ErrParse, err.Error()))
	case errors.Is(err, io.EOF):
		return false
	default:
		s.failure = fmt.Errorf("the input cannot be read: %w", err)
		return false
	}
	return true
}

// register takes room for a call, enters it into the side table and returns its
// id there. While there is no room nothing is read.
func (s *stream) register(c *call) uint64 {
	if c.batch == nil {
		s.claim(c)
		s.outbox.flush()
		s.room.take(1, c.size)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	c.number = s.last
	c.ctx, c.cancel = context.WithCancel(c.ctx)
	s.calls[c.number] = c
	return c.number
}

// show gives jsonrpc2 the one form of a request that it carries unharmed.
func show(number uint64, v any) error {
	text := append([]byte(`{"id":`), strconv.FormatUint(number, 10)...)
	return v.(json.Unmarshaler).UnmarshalJSON(append(text, `,"method":""}`...))
}

// WriteObject writes the reply of the call that jsonrpc2 is sending.
func (s *stream) WriteObject(any) error {
	s.finish(s.lookup(s.sending))
	s.forget(s.sending)
	return nil
}

// onSend notes which response jsonrpc2 writes next; its own message type does not tell.
func (s *stream) onSend(_ *jsonrpc2.Request, r *jsonrpc2.Response) { s.sending = r.ID.Num }

// Close implements jsonrpc2.ObjectStream. The input and output belong to the session.
func (s *stream) Close() error { return nil }

// wait blocks until no call is left.
func (s *stream) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.calls) > 0 && !s.abandoned {
		s.empty.Wait()
	}
}

// claim takes the id for the call; false if a request with it is in flight.
func (s *stream) claim(c *call) bool {
	key := idKey(c.id)
	if key == "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[key] != nil {
		return false
	}
	c.key = key
	s.keys[key] = c
	return true
}

// claimed reports whether a request with the id is in flight.
func (s *stream) claimed(id jsontext.Value) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys) > 0 && s.keys[idKey(id)] != nil
}

// lookup returns the call that jsonrpc2 knows by the id.
func (s *stream) lookup(number uint64) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[number]
}

// finish sends the reply of a call. Its id is free before that, because the
// host may use it again as soon as it has the reply.
func (s *stream) finish(c *call) {
	if c.key != "" {
		s.mu.Lock()
		delete(s.keys, c.key)
		s.mu.Unlock()
	}
	if c.cancel != nil {
		c.cancel()
	}
	s.deliver(c)
}

// forget removes a call from the side table. It comes after the reply has been
// handed over, because the end of input waits for it.
func (s *stream) forget(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, number)
	if len(s.calls) == 0 {
		s.empty.Broadcast()
	}
}

// cancel ends the context of the call with that id, if it is in flight.
func (s *stream) cancel(id jsontext.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.keys[idKey(id)]; c != nil && c.cancel != nil {
		c.cancel()
	}
}

// cancelAll ends the context of every call in flight.
func (s *stream) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		c.cancel()
	}
}

// abandon lets the reader go when the session is over.
func (s *stream) abandon() {
	s.room.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = true
	s.empty.Broadcast()
}
