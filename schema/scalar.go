package schema

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// NonBlank matches a string that ECMAScript's trim does not leave empty. The
// class is written out because engines disagree about \s: U+FEFF is blank,
// U+0085 is not. It is the only pattern that the validator knows.
const NonBlank = "[^\\t\\n\\v\\f\\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"

// isBlank reports whether the text does not match [NonBlank].
func isBlank(text []byte) bool { return bytes.IndexFunc(text, isNonBlank) < 0 }

func isNonBlank(r rune) bool {
	switch {
	case r == ' ', r >= '\t' && r <= '\r':
		return false
	case r < 0xa0:
		return true
	}
	switch r {
	case 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff:
		return false
	}
	return r < 0x2000 || r > 0x200a
}

// text checks a string.
func (v *validation) text(s *subschema, quoted jsontext.Value) {
	if s.Const != nil {
		v.constant(s, quoted)
		return
	}
	if s.Enum == nil && s.Pattern == "" {
		return
	}
	var room [64]byte
	text := unquote(room[:0], quoted)
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(value string) bool { return value == string(text) }) {
		v.broken("enum", oneOf(s.Enum))
	} else if s.Pattern != "" && isBlank(text) {
		v.broken("pattern", "must not be blank")
	}
}

func oneOf(values []string) string {
	if len(values) == 1 {
		return "value must be '" + values[0] + "'"
	}
	return "value must be one of '" + strings.Join(values, "', '") + "'"
}

// constant checks a value that may have to be one certain text or boolean.
func (v *validation) constant(s *subschema, text jsontext.Value) {
	if s.Const == nil || bytes.Equal(unquote(nil, text), unquote(nil, s.Const)) {
		return
	}
	want := s.Const.String()
	if s.Const.Kind() == jsontext.KindString {
		want = "'" + string(unquote(nil, s.Const)) + "'"
	}
	v.broken("const", "value must be "+want)
}

// number checks a number, which may be spelt in any way.
func (v *validation) number(s *subschema, text jsontext.Value) {
	if slices.Contains(s.types, "number") {
		return
	}
	n, integral := parseIntegral(string(text))
	switch {
	case !integral:
		v.broken("type", "got number, want "+strings.Join(s.types, " or "))
	case s.Minimum != nil && n < *s.Minimum:
		v.broken("minimum", "must be at least "+strconv.FormatInt(*s.Minimum, 10))
	case s.Maximum != nil && n > *s.Maximum:
		v.broken("maximum", "must be at most "+strconv.FormatInt(*s.Maximum, 10))
	}
}

// unquote returns the text of a JSON string, appended to room if it has escapes.
func unquote(room []byte, quoted jsontext.Value) []byte {
	if quoted.Kind() != jsontext.KindString {
		return quoted
	}
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	// Invalid UTF-8 becomes U+FFFD here and is refused by [Decode].
	text, _ := jsontext.AppendUnquote(room, quoted)
	return text
}
