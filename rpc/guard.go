package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
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
	// response says that the message has a result or an error and no method.
	response bool
	// misspelt names a member that differs from a known one only in case.
	misspelt string
}

// parsed is what the guard made of a frame: one message, or a batch of them.
type parsed struct {
	messages []message
	batch    bool
}

var decoders = sync.Pool{New: func() any { return new(jsontext.Decoder) }}

// parse checks a frame in one pass, before anything of it is used: strict JSON
// by jsontext (valid UTF-8, no unpaired surrogates, no duplicate members), then
// the bounds on depth and numbers. A member of a batch that is not an object
// becomes a message without a version.
func parse(frame []byte) (parsed, error) {
	d := decoders.Get().(*jsontext.Decoder)
	defer decoders.Put(d)
	d.Reset(bytes.NewBuffer(frame))
	var p parsed
	var err error
	if p.batch = d.PeekKind() == '['; p.batch {
		p.messages, err = parseBatch(d)
	} else {
		var m message
		m, err = parseMessage(d, 1)
		p.messages = []message{m}
	}
	if err != nil {
		return parsed{}, err
	}
	if d.PeekKind() != 0 || len(bytes.TrimSpace(d.UnreadBuffer())) > 0 {
		return parsed{}, errors.New("more than one value in a frame")
	}
	return p, nil
}

func parseBatch(d *jsontext.Decoder) (list []message, err error) {
	if _, err := d.ReadToken(); err != nil {
		return nil, err
	}
	for d.PeekKind() != ']' {
		m, err := parseMessage(d, 2)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	_, err = d.ReadToken()
	return list, err
}

// parseMessage takes one envelope apart. A value that is not an object gives an
// empty message, which is not a request.
func parseMessage(d *jsontext.Decoder, depth int) (m message, err error) {
	if d.PeekKind() != '{' {
		value, err := d.ReadValue()
		if err != nil {
			return m, err
		}
		return m, bounded(value, depth-1)
	}
	if _, err := d.ReadToken(); err != nil {
		return m, err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return m, err
		}
		member := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return m, err
		}
		// The decoder reuses its buffer, so what is kept is copied.
		if err := m.set(member, bytes.Clone(value), depth); err != nil {
			return m, err
		}
	}
	_, err = d.ReadToken()
	m.response = m.response && m.method == nil
	return m, err
}

func (m *message) set(name string, value jsontext.Value, depth int) error {
	switch name {
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
			if strings.EqualFold(name, known) {
				m.misspelt = name
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

// maxComparedID is the longest number id that is compared by value. The
// arithmetic on a longer one would cost more than the request; it is compared as text.
const maxComparedID = 1024

// idKey is the value of an id, so that 1 and 1.0, or two spellings of one
// string, are the same. An id that is null has no key.
func idKey(id jsontext.Value) string {
	switch id.Kind() {
	case '"':
		text, _ := jsontext.AppendUnquote(nil, id)
		return "s" + string(text)
	case '0':
		if len(id) > maxComparedID {
			return "n" + string(id)
		}
		return "n" + canonicalNumber(string(id))
	}
	return ""
}

// canonicalNumber spells a JSON number as its significant digits and a power of ten.
func canonicalNumber(text string) string {
	mantissa, exponentText := text, "0"
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		mantissa, exponentText = text[:e], text[e+1:]
	}
	exponent, _ := new(big.Int).SetString(strings.TrimPrefix(exponentText, "+"), 10)
	whole, fraction, _ := strings.Cut(mantissa, ".")
	exponent.Sub(exponent, big.NewInt(int64(len(fraction))))
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return "0"
	}
	exponent.Add(exponent, big.NewInt(int64(len(digits)-len(significant))))
	return sign + significant + "e" + exponent.String()
}
