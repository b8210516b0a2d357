package postgres

import (
	"crypto/sha256"
	"reflect"
	"strings"
)

// PostgreSQL's text cannot hold U+0000, which the contract's keys may. It is
// kept as U+0001 U+0001, and U+0001 itself as U+0001 U+0002, so that every
// string has one spelling of its own and the order of the bytes stays the same.
// JSON texts escape both, so hardly any text ever differs from what it says.
var (
	escaper   = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")
	unescaper = strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01")
)

func escape(text string) string {
	if strings.IndexByte(text, 0) < 0 && strings.IndexByte(text, 1) < 0 {
		return text
	}
	return escaper.Replace(text)
}

func unescape(text string) string {
	if strings.IndexByte(text, 1) < 0 {
		return text
	}
	return unescaper.Replace(text)
}

// digest is what the generated columns hold of a key. Keys may be longer than
// an index entry, so indexes have their digests instead.
func digest(text string) []byte {
	sum := sha256.Sum256([]byte(escape(text)))
	return sum[:]
}

// escapeAll prepares the arguments of a statement. Types of strings become
// strings, because without a prepared statement the driver knows only those.
func escapeAll(args []any) []any {
	escaped := make([]any, len(args))
	for i, arg := range args {
		switch value := arg.(type) {
		case string:
			escaped[i] = escape(value)
		case nil, int64, bool, []byte, []int64:
			escaped[i] = value
		default:
			escaped[i] = escapeOther(reflect.ValueOf(arg))
		}
	}
	return escaped
}

func escapeOther(value reflect.Value) any {
	if value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return nil
		}
		value = value.Elem()
	}
	if value.Kind() == reflect.String {
		return escape(value.String())
	}
	return value.Interface()
}

// unescapeAll restores what a row was scanned into.
func unescapeAll(fields []any) {
	for _, field := range fields {
		switch text := field.(type) {
		case *string:
			*text = unescape(*text)
		case **string:
			if *text != nil {
				**text = unescape(**text)
			}
		}
	}
}
