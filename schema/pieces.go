package schema

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// pieceSize is how much of a large JSON text lies together.
const pieceSize = 256 << 10

// Pieces is a JSON text that is kept in pieces, because it may be too large to
// be moved each time it grows: a snapshot holds a run's whole history.
type Pieces [][]byte

// Raw appends text as it is.
func (p *Pieces) Raw(text string) {
	last := p.room(len(text))
	*last = append(*last, text...)
}

// Value appends the encoding of v (see [Encode]).
func (p *Pieces) Value(v any) error {
	last := p.room(0)
	buffer := bytes.NewBuffer(*last)
	err := json.MarshalWrite(buffer, v, encodeOptions)
	*last = buffer.Bytes()
	return err
}

// Item appends the encoding of v to a list, after a comma unless it is the first.
func (p *Pieces) Item(v any) error {
	if len(*p) > 0 {
		p.Raw(",")
	}
	return p.Value(v)
}

// List appends a list whose items are already in pieces.
func (p *Pieces) List(items Pieces) {
	p.Raw("[")
	*p = append(*p, items...)
	*p = append(*p, []byte("]"))
}

// room returns the piece to append to: the last one until it is full. Small
// texts grow as they need; what is known to be large gets whole pieces.
func (p *Pieces) room(n int) *[]byte {
	last := len(*p) - 1
	if last < 0 {
		*p = append(*p, nil)
	} else if size := len((*p)[last]); size > 0 && size+n > pieceSize-4<<10 {
		*p = append(*p, make([]byte, 0, pieceSize))
	}
	return &(*p)[len(*p)-1]
}

// MarshalJSONTo writes the text as one value, where a call of a transaction needs it whole.
func (p Pieces) MarshalJSONTo(e *jsontext.Encoder) error {
	return e.WriteValue(bytes.Join(p, nil))
}
