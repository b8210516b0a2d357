package main

import (
	"bytes"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// The value of a JSON text, exact: numbers keep their spelling and objects
// their order. It is an object, a []any, a string, a number, a bool or nil.
type (
	object []member
	member struct {
		name  string
		value any
	}
	number string
)

func (o object) has(name string) bool {
	for _, m := range o {
		if m.name == name {
			return true
		}
	}
	return false
}

// get returns the value of a member, nil if there is none.
func (o object) get(name string) any {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

func parse(t *testing.T, text []byte) any {
	t.Helper()
	value, err := readValue(jsontext.NewDecoder(bytes.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func readValue(d *jsontext.Decoder) (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '{':
		value := object{}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return nil, err
			}
			m := member{name: name.String()}
			if m.value, err = readValue(d); err != nil {
				return nil, err
			}
			value = append(value, m)
		}
		_, err := d.ReadToken()
		return value, err
	case '[':
		value := []any{}
		for d.PeekKind() != ']' {
			item, err := readValue(d)
			if err != nil {
				return nil, err
			}
			value = append(value, item)
		}
		_, err := d.ReadToken()
		return value, err
	case '"':
		return token.String(), nil
	case '0':
		return number(token.String()), nil
	case 'n':
		return nil, nil
	}
	return token.Bool(), nil
}

// textOf is the JSON text of a value.
func textOf(value any) []byte {
	switch value := value.(type) {
	case object:
		text := []byte{'{'}
		for i, m := range value {
			if i > 0 {
				text = append(text, ',')
			}
			text, _ = jsontext.AppendQuote(text, m.name)
			text = append(append(text, ':'), textOf(m.value)...)
		}
		return append(text, '}')
	case []any:
		text := []byte{'['}
		for i, item := range value {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(text, textOf(item)...)
		}
		return append(text, ']')
	case string:
		text, _ := jsontext.AppendQuote(nil, value)
		return text
	case number:
		return []byte(value)
	case bool:
		if value {
			return []byte("true")
		}
		return []byte("false")
	}
	return []byte("null")
}
