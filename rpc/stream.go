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

// call is one request from its arrival until its reply is written.
type call struct {
	method string
	params jsontext.Value
	// id is echoed exactly; nil for a notification.
	id jsontext.Value
	// key is the value of id, "" if it has none that could collide.
	key string
	// ctx ends when the host cancels the call.
	ctx    context.Context
	cancel context.CancelFunc
	batch  *batch
	// reply is the JSON text of the response, set before it is sent.
	reply []byte
	// inline says that the reader answers the call itself and may block on the output.
	inline bool
}

// batch collects the replies of its members. It is guarded by the stream's lock.
type batch struct {
	replies [][]byte
	// missing counts the members whose replies are still to come.
	missing int
	// slots are the requests in flight that the batch stands for.
	slots int
}

// stream is the jsonrpc2.ObjectStream between the frames and the library. The
// library sees requests as {"method", "id"} with ids of the stream's own;
// everything else of a request waits in the side table under that id.
type stream struct {
	frames *framer
	outbox *outbox
	log    *slog.Logger
	// slots bounds the requests in flight: reading stops when there is none left.
	slots chan struct{}

	// ready are messages that were read and not yet shown to the library.
	ready []*call

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

func newStream(outbox *outbox, frames *framer, maxInFlight int, log *slog.Logger) *stream {
	s := &stream{
		frames: frames, outbox: outbox, log: log, slots: make(chan struct{}, maxInFlight),
		calls: map[uint64]*call{}, keys: map[string]*call{},
	}
	s.empty = sync.NewCond(&s.mu)
	return s
}

// ReadObject shows the next request to jsonrpc2. Frames that hold none are
// answered here and read past. At the end of input it waits until every reply
// has been handed over, because jsonrpc2 drops what comes later.
func (s *stream) ReadObject(v any) error {
	for len(s.ready) == 0 {
		frame, err := s.frames.next()
		switch {
		case err == nil:
			s.receive(frame)
		case errors.Is(err, errTooLong):
			s.refuse(nil, protocolError(schema.ErrInvalidRequest, fmt.Sprintf("%v of %d bytes", err, s.frames.limit)))
		case errors.Is(err, errBadHeader), errors.Is(err, errCut):
			s.refuse(nil, protocolError(schema.ErrParse, err.Error()))
		default:
			if !errors.Is(err, io.EOF) {
				s.log.Error("the input cannot be read", "error", err)
			}
			s.wait()
			return io.EOF
		}
	}
	next := s.ready[0]
	s.ready = s.ready[1:]
	return show(s.register(next), next.method, v)
}

// show gives jsonrpc2 the one form of a request that it carries unharmed.
func show(id uint64, method string, v any) error {
	text := append([]byte(`{"id":`), strconv.FormatUint(id, 10)...)
	text = append(text, `,"method":`...)
	text, _ = jsontext.AppendQuote(text, method)
	return v.(json.Unmarshaler).UnmarshalJSON(append(text, '}'))
}

// WriteObject writes the reply of the call that jsonrpc2 is sending.
func (s *stream) WriteObject(any) error {
	s.mu.Lock()
	c := s.calls[s.sending]
	s.mu.Unlock()
	s.release(c)
	s.deliver(c)
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

// receive turns a frame into calls, and answers what is not one.
func (s *stream) receive(frame []byte) {
	p, err := parse(frame)
	switch {
	case err != nil:
		s.refuse(nil, protocolError(schema.ErrParse, "the frame is not strict JSON: "+describe(err)))
	case !p.batch:
		s.receiveOne(p.messages[0])
	case len(p.messages) == 0:
		s.refuse(nil, protocolError(schema.ErrInvalidRequest, "an empty batch"))
	default:
		s.receiveBatch(p.messages)
	}
}

// describe tells what is wrong with a text and where, without the library's prefix.
func describe(err error) string {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && syntax.Err != nil {
		return fmt.Sprintf("%v at byte %d", syntax.Err, syntax.ByteOffset)
	}
	return err.Error()
}

func (s *stream) receiveOne(m message) {
	c, refusal := s.admit(m)
	switch {
	case refusal != nil:
		s.refuse(c.id, refusal)
	case c != nil:
		if c.id != nil {
			s.slots <- struct{}{}
		}
		s.ready = append(s.ready, c)
	}
}

// receiveBatch admits the members of a batch. They take their slots together,
// so a batch that needs more than there are is refused.
func (s *stream) receiveBatch(messages []message) {
	if len(messages) > cap(s.slots) {
		s.refuse(nil, protocolError(schema.ErrInvalidRequest, fmt.Sprintf("a batch of %d is over the bound of %d requests in flight", len(messages), cap(s.slots))))
		return
	}
	b := &batch{}
	var members []*call
	for _, m := range messages {
		c, refusal := s.admit(m)
		switch {
		case refusal != nil:
			b.replies = append(b.replies, response(c.id, nil, refusal, s.log))
		case c != nil && c.id != nil:
			c.batch = b
			b.missing++
			fallthrough
		case c != nil:
			members = append(members, c)
		}
	}
	b.slots = b.missing
	for range b.slots {
		s.slots <- struct{}{}
	}
	if b.missing == 0 && len(b.replies) > 0 {
		s.outbox.send(b.text(), func() {})
	}
	s.ready = append(s.ready, members...)
}

// admit makes a call of a message. With a refusal it returns the id to answer
// under; with neither a call nor a refusal there is nothing to do.
func (s *stream) admit(m message) (*call, *schema.Error) {
	if m.response {
		s.log.Warn("a response was received, but nothing was asked")
		return nil, nil
	}
	c := &call{params: m.params, id: m.id}
	if c.params.Kind() == 'n' {
		c.params = nil // the same as absent
	}
	if refusal := m.check(); refusal != nil {
		switch m.id.Kind() {
		case '"', '0':
			if s.claimed(idKey(m.id)) {
				c.id = nil
			}
		default:
			c.id = nil
		}
		return c, refusal
	}
	method, _ := jsontext.AppendUnquote(nil, m.method)
	c.method = string(method)
	if c.id == nil {
		return c, nil
	}
	if c.key = idKey(c.id); !s.claim(c) {
		refusal := protocolError(schema.ErrInvalidRequest, "a request with this id is in flight")
		refusal.Details.ID = c.id
		return &call{}, refusal
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// check says what keeps a message from being a request.
func (m *message) check() *schema.Error {
	switch {
	case string(m.version) != `"2.0"`:
		return protocolError(schema.ErrInvalidRequest, `"jsonrpc" must be "2.0"`)
	case m.method.Kind() != '"':
		return protocolError(schema.ErrInvalidRequest, `"method" must be a string`)
	case m.misspelt != "":
		return protocolError(schema.ErrInvalidRequest, fmt.Sprintf("the member %q differs from a known one only in case", m.misspelt))
	}
	switch m.id.Kind() {
	case 0, '"', '0', 'n':
	default:
		return protocolError(schema.ErrInvalidRequest, `"id" must be a string, a number or null`)
	}
	switch m.params.Kind() {
	case 0, '{', '[', 'n':
		return nil
	}
	return protocolError(schema.ErrInvalidRequest, `"params" must be an object or an array`)
}

func (s *stream) claimed(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys[key] != nil
}

// claim takes the id for the call; false if a request with it is in flight.
func (s *stream) claim(c *call) bool {
	if c.key == "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[c.key] != nil {
		return false
	}
	s.keys[c.key] = c
	return true
}

// register enters a call into the side table and returns its id there.
func (s *stream) register(c *call) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.calls[s.last] = c
	return s.last
}

// lookup returns the call that jsonrpc2 knows by the id.
func (s *stream) lookup(id uint64) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[id]
}

// release gives the id of a call free. It comes before the reply, because the
// host may use the id again as soon as it has the reply.
func (s *stream) release(c *call) {
	c.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.key != "" {
		delete(s.keys, c.key)
	}
}

// forget removes a call from the side table. It comes after the reply has been
// handed over, because the end of input waits for it.
func (s *stream) forget(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, id)
	if len(s.calls) == 0 {
		s.empty.Broadcast()
	}
}

// cancel ends the context of the call with that id, if it is in flight.
func (s *stream) cancel(id jsontext.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.keys[idKey(id)]; c != nil {
		c.cancel()
	}
}

// cancelAll ends the context of every call in flight.
func (s *stream) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if c.cancel != nil {
			c.cancel()
		}
	}
}

// abandon lets the reader go when the session is over.
func (s *stream) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = true
	s.empty.Broadcast()
}

// deliver hands the reply of a call over, or the replies of its batch once they are complete.
func (s *stream) deliver(c *call) {
	send := s.outbox.send
	if c.inline {
		send = s.outbox.sendNow
	}
	if c.batch == nil {
		send(c.reply, func() { <-s.slots })
		return
	}
	s.mu.Lock()
	b := c.batch
	b.replies = append(b.replies, c.reply)
	b.missing--
	complete := b.missing == 0
	s.mu.Unlock()
	if complete {
		send(b.text(), func() {
			for range b.slots {
				<-s.slots
			}
		})
	}
}

func (b *batch) text() []byte {
	text := []byte{'['}
	for i, reply := range b.replies {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, reply...)
	}
	return append(text, ']')
}

// refuse answers what never became a call.
func (s *stream) refuse(id jsontext.Value, refusal *schema.Error) {
	s.outbox.send(response(id, nil, refusal, s.log), func() {})
}

// response is the JSON text of a response; without an id it answers under null.
func response(id jsontext.Value, result []byte, err error, log *slog.Logger) []byte {
	text := append(make([]byte, 0, len(result)+len(id)+64), `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		id = jsontext.Value("null")
	}
	text = append(text, id...)
	if err == nil {
		text = append(append(text, `,"result":`...), result...)
		return append(text, '}')
	}
	wire := toWire(err, log)
	text = fmt.Appendf(text, `,"error":{"code":%d,"message":`, wire.Code)
	text, _ = jsontext.AppendQuote(text, wire.Message)
	text = append(append(text, `,"data":`...), *wire.Data...)
	return append(text, "}}"...)
}
