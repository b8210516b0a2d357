package schema

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxInteger is the largest integer of the wire: both sides of a JSON pipe can
// hold it exactly, whatever their language.
const MaxInteger = 1<<53 - 1

// Decode reads parameters that their schema has already accepted. Member names
// are compared exactly and integers may be written 1, 1.0 or 1e0.
func Decode(data []byte, into any) error {
	return json.Unmarshal(data, into, decodeOptions)
}

// Encode writes v as ECMAScript's JSON.stringify would: no spaces, members in
// the order of their declaration, only quotes, backslashes and control
// characters escaped (DESIGN.md, section 6). Rows compare this text, so it must
// never change.
func Encode(v any) ([]byte, error) {
	return json.Marshal(v, encodeOptions)
}

// AppendTo appends the encoding of v to b.
func AppendTo(b []byte, v any) ([]byte, error) {
	buffer := bytes.NewBuffer(b)
	err := json.MarshalWrite(buffer, v, encodeOptions)
	return buffer.Bytes(), err
}

var encodeOptions = json.JoinOptions(json.Deterministic(true), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(false))

var decodeOptions = json.JoinOptions(
	json.RejectUnknownMembers(true),
	json.WithUnmarshalers(json.UnmarshalFromFunc(decodeInteger)),
)

func decodeInteger(d *jsontext.Decoder, into *int64) error {
	token, err := d.ReadToken()
	if err != nil {
		return err
	}
	if token.Kind() != '0' {
		return fmt.Errorf("want an integer, got %v", token.Kind())
	}
	n, err := parseInteger(token.String())
	*into = n
	return err
}

// parseInteger reads a JSON number that denotes an integer of the wire.
func parseInteger(text string) (int64, error) {
	n, ok := parseIntegral(text)
	switch {
	case !ok:
		return 0, fmt.Errorf("%s is not an integer", text)
	case n > MaxInteger || n < -MaxInteger:
		return 0, fmt.Errorf("%s is not a safe integer", text)
	}
	return n, nil
}

// parseIntegral reads a JSON number and reports whether it denotes an integer,
// however it is spelt. One that is too large for n becomes the largest of its sign.
func parseIntegral(text string) (n int64, ok bool) {
	if !strings.ContainsAny(text, ".eE") {
		n, _ = strconv.ParseInt(text, 10, 64) // out of range, it returns the bound
		return n, true
	}
	digits, exponent := splitNumber(text)
	sign := strings.HasPrefix(digits, "-")
	digits = strings.TrimLeft(strings.TrimPrefix(digits, "-"), "0")
	significant := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(significant)
	const longest = 18 // digits that always fit
	switch {
	case significant == "":
		return 0, true
	case exponent < 0:
		return 0, false
	case len(significant)+exponent > longest:
		n = math.MaxInt64
	default:
		n, _ = strconv.ParseInt(significant+strings.Repeat("0", exponent), 10, 64)
	}
	if sign {
		n = -n
	}
	return n, true
}

// splitNumber returns the digits of a JSON number without its point, and the
// power of ten they are to be multiplied by.
func splitNumber(text string) (digits string, exponent int) {
	digits = text
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		digits = text[:i]
		exponent, _ = strconv.Atoi(text[i+1:]) // out of range, it returns the bound
		exponent = min(max(exponent, math.MinInt32), math.MaxInt32)
	}
	if whole, fraction, ok := strings.Cut(digits, "."); ok {
		digits = whole + fraction
		exponent -= len(fraction)
	}
	return digits, exponent
}
