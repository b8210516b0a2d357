package rpc

import (
	"fmt"
	"log/slog"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json/jsontext"
)

// refuse answers what never became a call. Only the reader does.
func (s *stream) refuse(id jsontext.Value, refusal *schema.Error) {
	s.outbox.add(response(id, nil, refusal, s.log))
}

// deliver hands the reply of a call over, or the replies of its batch once they are complete.
func (s *stream) deliver(c *call) {
	text, calls, bytes := c.reply, 1, c.size
	if b := c.batch; b != nil {
		if !s.complete(b, c) {
			return
		}
		text, calls, bytes = b.text(), b.calls, b.bytes
	} else if c.number == 0 {
		s.outbox.add(text) // the reader has it, and took no room
		return
	}
	s.outbox.send(text, func() { s.room.give(calls, bytes) })
}

// complete adds a reply to its batch and reports whether it was the last.
func (s *stream) complete(b *batch, c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.replies[c.place] = c.reply
	b.missing--
	return b.missing == 0
}

// text is the JSON text of the batch's replies, in the order of the requests.
func (b *batch) text() schema.Pieces {
	var text schema.Pieces
	text.Raw("[")
	for i, reply := range b.replies {
		if i > 0 {
			text.Raw(",")
		}
		text = append(text, reply...)
	}
	text = append(text, []byte("]"))
	return text
}

// response is the JSON text of a response; without an id it answers under null.
func response(id jsontext.Value, result any, err error, log *slog.Logger) schema.Pieces {
	text := append(make([]byte, 0, 128), `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		id = jsontext.Value("null")
	}
	text = append(text, id...)
	if err == nil {
		var whole schema.Pieces
		if whole, err = withResult(append(text, `,"result":`...), result); err == nil {
			return whole
		}
	}
	wire := toWire(err, log)
	text = fmt.Appendf(text, `,"error":{"code":%d,"message":`, wire.Code)
	text, _ = jsontext.AppendQuote(text, wire.Message)
	text = append(append(text, `,"data":`...), *wire.Data...)
	return schema.Pieces{append(text, "}}"...)}
}

// withResult ends a response with its result. One that is in pieces already is
// taken over as it is.
func withResult(text []byte, result any) (schema.Pieces, error) {
	switch result := result.(type) {
	case *schema.Pieces:
		whole := append(schema.Pieces{text}, *result...)
		return append(whole, []byte("}")), nil
	case *schema.Empty: // what a ping is answered
		return schema.Pieces{append(text, "{}}"...)}, nil
	}
	text, err := schema.AppendTo(text, result)
	return schema.Pieces{append(text, '}')}, err
}
