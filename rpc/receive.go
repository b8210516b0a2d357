package rpc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/sourcegraph/jsonrpc2"
)

// call is one request or notification, from its arrival until its reply is written.
type call struct {
	// op is what the method does; nil if there is no such method.
	op     *operation
	method string
	params jsontext.Value
	// run is what the call does in a transaction, and scope what that may touch,
	// once its parameters were read.
	run   func(store.Tx) (any, error)
	scope store.Scope
	// id is echoed exactly; nil for a notification.
	id jsontext.Value
	// key is the value of id under which the call has claimed it, "" if it has not.
	key string
	// size is how much of the bound on bytes in flight it takes.
	size int
	// number is its id in the side table; 0 while the reader has it to itself.
	number uint64
	// conn is where the reply to a queued call is sent.
	conn *jsonrpc2.Conn
	// ctx ends when the host cancels the call, which it can once it is in the side table.
	ctx    context.Context
	cancel context.CancelFunc
	batch  *batch
	// place is the position of its reply in the batch.
	place int
	// replied makes sure that there is one reply, whatever panics.
	replied atomic.Bool
	// reply is the JSON text of the response, set before it is sent.
	reply schema.Pieces
}

// batch collects the replies of its members. It is guarded by the stream's lock.
type batch struct {
	// replies stand in the order of the requests.
	replies []schema.Pieces
	// missing counts the members whose replies are still to come.
	missing int
	// calls and bytes are the room that the batch takes, until all of it is written.
	calls, bytes int
}

// receive turns a frame into calls, and answers what is not one. A fault of the
// sidecar here costs the frame, not the process.
func (s *stream) receive(frame []byte) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a frame could not be taken in", "panic", p, "stack", string(debug.Stack()))
			s.refuse(nil, protocolError(schema.ErrInternal, "the frame could not be taken in"))
		}
	}()
	p, err := parse(frame, s.room.maxCalls)
	switch {
	case len(frame) == 0: // which a Content-Length allows
		s.refuse(nil, protocolError(schema.ErrParse, "the frame is empty"))
	case err != nil:
		s.refuse(nil, protocolError(schema.ErrParse, "the frame is not strict JSON: "+describe(err)))
	case !p.batch:
		s.receiveOne(p.one, len(frame))
	case p.total == 0:
		s.refuse(nil, protocolError(schema.ErrInvalidRequest, "an empty batch"))
	case p.total > s.room.maxCalls:
		s.refuse(nil, protocolError(schema.ErrInvalidRequest,
			fmt.Sprintf("a batch of %d is over the bound of %d requests in flight", p.total, s.room.maxCalls)))
	default:
		s.receiveBatch(p.members, len(frame))
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

func (s *stream) receiveOne(m message, size int) {
	c, refusal := s.admit(m, nil)
	switch {
	case refusal != nil:
		s.refuse(c.id, refusal)
	case c != nil:
		c.size = size
		s.ready = append(s.ready, c)
	}
}

// receiveBatch admits the members of a batch. They take their room together.
func (s *stream) receiveBatch(messages []message, size int) {
	b := &batch{bytes: size}
	for _, m := range messages {
		c, refusal := s.admit(m, b)
		switch {
		case refusal != nil:
			b.replies = append(b.replies, response(c.id, nil, refusal, s.log))
		case c != nil && c.id != nil:
			c.place = len(b.replies)
			b.replies = append(b.replies, nil)
			b.missing++
			fallthrough
		case c != nil:
			s.ready = append(s.ready, c)
		}
	}
	switch b.calls = b.missing; {
	case b.missing > 0:
		s.outbox.flush()
		s.room.take(b.calls, b.bytes)
	case len(b.replies) > 0:
		s.outbox.add(b.text())
	}
}

// admit makes a call of a message, which may belong to a batch. With a refusal
// it returns the id to answer under; with neither a call nor a refusal there is
// nothing to do.
func (s *stream) admit(m message, b *batch) (*call, *schema.Error) {
	if m.response && m.misspelt == "" {
		s.log.Warn("a response was received, but nothing was asked")
		return nil, nil
	}
	if refusal := m.check(); refusal != nil {
		return &call{id: s.answerable(m.id)}, refusal
	}
	c := &call{params: m.params, id: m.id, batch: b, ctx: context.Background()}
	c.op, c.method = find(m.method)
	if c.params.Kind() == 'n' {
		c.params = nil // the same as absent
	}
	if c.id == nil || s.available(c) {
		return c, nil
	}
	refusal := protocolError(schema.ErrInvalidRequest, "a request with this id is in flight")
	refusal.Details.ID = c.id
	return &call{}, refusal
}

// find returns the operation and the name of a method.
func find(method jsontext.Value) (*operation, string) {
	if op, ok := operations[string(method[1:len(method)-1])]; ok { // as it is spelt
		return op, op.spec.Name
	}
	name := unquote(method)
	return operations[name], name
}

// available reports whether no request with the id of the call is in flight. A
// member of a batch claims the id at once, because others of the batch may want
// it; a single call claims it when it is queued, and most are not.
func (s *stream) available(c *call) bool {
	if c.batch != nil {
		return s.claim(c)
	}
	return !s.claimed(c.id)
}

// answerable returns the id under which a refused message can be answered: nil
// if it is none, or if the host would take the error for another's answer.
func (s *stream) answerable(id jsontext.Value) jsontext.Value {
	switch id.Kind() {
	case '"', '0':
		if !s.claimed(id) {
			return id
		}
	}
	return nil
}

// check says what keeps a message from being a request.
func (m *message) check() *schema.Error {
	switch {
	case !m.object:
		return protocolError(schema.ErrInvalidRequest, "a request must be an object")
	case m.misspelt != "":
		return protocolError(schema.ErrInvalidRequest, fmt.Sprintf("the member %s differs from a known one only in case", clip(m.misspelt)))
	case string(m.version) != `"2.0"` && (m.version.Kind() != '"' || unquote(m.version) != "2.0"):
		return protocolError(schema.ErrInvalidRequest, `"jsonrpc" must be "2.0"`)
	case m.method.Kind() != '"':
		return protocolError(schema.ErrInvalidRequest, `"method" must be a string`)
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

// clip quotes a name that the host chose, so that a long one is not echoed whole.
func clip(name string) string {
	const longest = 64
	if len(name) > longest {
		return fmt.Sprintf("%.*q...", longest, name)
	}
	return fmt.Sprintf("%q", name)
}
