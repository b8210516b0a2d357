package schema

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxMembers is how many members an array or object in parameters may have.
	// Each that breaks the schema costs the validator half a microsecond, and one
	// frame has room for two million: it would keep the calls behind it waiting.
	MaxMembers = 10_000
	// maxViolations is how many violations an error lists.
	maxViolations = 100
)

// overcrowded finds an array or object with too many members.
func overcrowded(params jsontext.Value) []Violation {
	if len(params) < 2*MaxMembers {
		return nil // no room for so many
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(params))
	for {
		if _, err := d.ReadToken(); err != nil {
			return nil // the end: the text is valid
		}
		kind, members := d.StackIndex(d.StackDepth())
		rule := "maxItems"
		if kind == jsontext.KindBeginObject {
			rule, members = "maxProperties", members/2
		}
		if members > MaxMembers {
			where := string(d.StackPointer().Parent())
			return []Violation{{where, rule, fmt.Sprintf("must have at most %d members", MaxMembers)}}
		}
	}
}
