package rpc

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// idKey is the value of an id, so that 1 and 1.0, or two spellings of one
// string, are the same. An id that is null has no key.
func idKey(id jsontext.Value) string {
	switch id.Kind() {
	case '"':
		return "s" + unquote(id)
	case '0':
		return "n" + canonicalNumber(string(id))
	}
	return ""
}

// unquote returns the text that a valid JSON string denotes.
func unquote(value jsontext.Value) string {
	text, _ := jsontext.AppendUnquote(nil, value)
	return string(text)
}

// canonicalNumber spells a JSON number as its significant digits and a power of
// ten. A number whose exponent is beyond any use stands for itself.
func canonicalNumber(text string) string {
	mantissa, exponent := text, 0
	if e := strings.IndexAny(text, "eE"); e >= 0 {
		power, err := strconv.ParseInt(text[e+1:], 10, 32)
		if err != nil {
			return text
		}
		mantissa, exponent = text[:e], int(power)
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	switch exponent += len(digits) - len(significant) - len(fraction); {
	case significant == "":
		return "0"
	case negative:
		significant = "-" + significant
	}
	return significant + "e" + strconv.Itoa(exponent)
}
