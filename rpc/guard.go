package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// The bounds of strict JSON (DESIGN.md, section 4).
const (
	maxDepth       = 64
	maxNumberBytes = 64
	maxExponent    = 400
)

// message is the envelope of one request. Its raw members alias the frame.
type message struct {
	version, method, params, id jsontext.Value
	// object says that it is one; whatever else a frame may hold is no request.
	object bool
	// response says that the message has a result or an error and no method.
	response bool
	// misspelt names a member that differs from a known one only in case.
	misspelt string
}

// parsed is what the guard made of a frame: one message, or a batch of them.
type parsed struct {
	one   message
	batch bool
	// members are those of a batch, and total counts them: only as many as were
	// asked for are kept.
	members []message
	total   int
}

// parser walks over one frame.
type parser struct {
	frame   []byte
	buffer  bytes.Buffer
	decoder jsontext.Decoder
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

// parse checks a frame before anything of it is used: strict JSON by jsontext
// (valid UTF-8, no unpaired surrogates, no duplicate members), then the bounds
// on depth and numbers. It keeps at most limit members of a batch, but checks
// them all.
func parse(frame []byte, limit int) (parsed, error) {
	p := parsers.Get().(*parser)
	defer parsers.Put(p)
	p.frame, p.buffer = frame, *bytes.NewBuffer(frame) // the decoder reads it in place
	p.decoder.Reset(&p.buffer)
	result, err := p.parse(limit)
	p.frame, p.buffer = nil, bytes.Buffer{}
	return result, err
}

func (p *parser) parse(limit int) (result parsed, err error) {
	if result.batch = p.decoder.PeekKind() == '['; result.batch {
		err = p.parseBatch(&result, limit)
	} else {
		result.one, err = p.parseMessage(1)
	}
	if err != nil {
		return parsed{}, err
	}
	if rest := trim(p.frame[p.decoder.InputOffset():]); len(rest) > 0 {
		return parsed{}, errors.New("more than one value in a frame")
	}
	return result, nil
}

func (p *parser) parseBatch(result *parsed, limit int) error {
	if _, err := p.decoder.ReadToken(); err != nil {
		return err
	}
	for p.decoder.PeekKind() != ']' {
		m, err := p.parseMessage(2)
		if err != nil {
			return err
		}
		if result.total++; result.total <= limit {
			result.members = append(result.members, m)
		}
	}
	_, err := p.decoder.ReadToken()
	return err
}

// parseMessage takes one envelope apart, which lies `depth` levels deep.
func (p *parser) parseMessage(depth int) (m message, err error) {
	if p.decoder.PeekKind() != '{' {
		value, err := p.readValue()
		if err != nil {
			return m, err
		}
		return m, bounded(value, depth-1)
	}
	if _, err := p.decoder.ReadToken(); err != nil {
		return m, err
	}
	m.object = true
	for p.decoder.PeekKind() != '}' {
		name, err := p.readValue()
		if err != nil {
			return m, err
		}
		value, err := p.readValue()
		if err != nil {
			return m, err
		}
		if err := m.set(name, value, depth); err != nil {
			return m, err
		}
	}
	_, err = p.decoder.ReadToken()
	m.response = m.response && m.method == nil
	return m, err
}

// readValue reads one value and returns where it stands in the frame: what the
// decoder returns is its own, and only good until it reads on.
func (p *parser) readValue() (jsontext.Value, error) {
	value, err := p.decoder.ReadValue()
	if err != nil {
		return nil, err
	}
	end := p.decoder.InputOffset()
	return p.frame[end-int64(len(value)) : end : end], nil
}

func (m *message) set(quoted, value jsontext.Value, depth int) error {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = jsontext.Value(unquote(quoted))
	}
	switch string(name) {
	case "jsonrpc":
		m.version = value
	case "method":
		m.method = value
	case "params":
		m.params = value
	case "id":
		m.id = value
		if value.Kind() == '0' {
			return nil // ids are echoed whatever their size
		}
	case "result", "error":
		m.response = true
	default:
		for _, known := range []string{"jsonrpc", "method", "params", "id"} {
			if strings.EqualFold(string(name), known) {
				m.misspelt = string(name)
			}
		}
	}
	return bounded(value, depth)
}

// bounded checks depth and numbers of a valid JSON text that lies `depth` levels deep.
func bounded(text jsontext.Value, depth int) error {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			i = endOfString(text, i)
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("nested deeper than %d", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		case c == '-' || c >= '0' && c <= '9':
			end := endOfNumber(text, i)
			if err := boundedNumber(string(text[i:min(end, i+maxNumberBytes+1)])); err != nil {
				return err
			}
			i = end - 1
		}
	}
	return nil
}

// endOfString returns the position of the quote that ends the string at i.
func endOfString(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

func endOfNumber(text []byte, i int) int {
	for i < len(text) && strings.IndexByte("+-.eE0123456789", text[i]) >= 0 {
		i++
	}
	return i
}

func boundedNumber(text string) error {
	if len(text) > maxNumberBytes {
		return fmt.Errorf("a number is longer than %d bytes", maxNumberBytes)
	}
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		digits := strings.TrimLeft(strings.TrimLeft(text[e+1:], "+-"), "0")
		if len(digits) > 3 || len(digits) == 3 && digits > fmt.Sprint(maxExponent) {
			return fmt.Errorf("a number has an exponent beyond %d", maxExponent)
		}
	}
	return nil
}
