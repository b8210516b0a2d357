package sqlite

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/dsh-taskforce/sidecar/schema"
)

// What rows keep as JSON, said here once more: a verification that shared the
// governor's own types would find its mistakes right.

// request is a payload.
type request struct {
	TaskID     int64       `json:"task_id"`
	Generation int64       `json:"generation"`
	Mode       schema.Mode `json:"mode"`
	Kind       schema.Kind `json:"kind"`
	Resources  []string    `json:"resources"`
}

// uncertainty is the details of a markUnknown.
type uncertainty struct {
	Generation int64  `json:"generation"`
	Reason     string `json:"reason"`
}

// extension is the details of an extendBudget.
type extension struct {
	Reason string        `json:"reason"`
	Before schema.Limits `json:"before"`
	After  schema.Limits `json:"after"`
}

// readCanonical reads text that must be what the contract prints for its value.
func readCanonical[T any](text string) (value T, err error) {
	if err := schema.Decode([]byte(text), &value); err != nil {
		return value, fmt.Errorf("the text %.200q is not JSON of the contract's members", text)
	}
	if again, err := schema.Encode(value); err != nil || string(again) != text {
		return value, fmt.Errorf("the text %.200q is not spelt as the contract prints it", text)
	}
	return value, nil
}

// readRequest reads a payload, whose resources must be in order.
func readRequest(text string) (request, error) {
	r, err := readCanonical[request](text)
	if err != nil {
		return r, err
	}
	for i, key := range r.Resources {
		if blank(key) {
			return r, fmt.Errorf("the resource %q is blank", key)
		}
		if i > 0 && compareUTF16(r.Resources[i-1], key) >= 0 {
			return r, fmt.Errorf("the resource %.200q is out of order, or there twice", key)
		}
	}
	return r, nil
}

// readProof reads a settlement.
func readProof(text string) (schema.Proof, error) {
	p, err := readCanonical[schema.Proof](text)
	switch {
	case err != nil:
		return p, err
	case p == (schema.Proof{Kind: schema.NeverStarted}):
		return p, nil
	case p.Kind == schema.Terminal && p.Quiescent && !blank(p.Evidence) &&
		slices.Contains([]schema.Outcome{schema.Succeeded, schema.Failed, schema.Cancelled}, p.Outcome):
		return p, nil
	}
	return p, fmt.Errorf("the text %.200q is not a proof of the contract", text)
}

// quoted is a string as the contract prints it.
func quoted(text string) string {
	encoded, err := schema.Encode(text)
	if err != nil { // it is not UTF-8, so no writer has printed it
		return "?"
	}
	return string(encoded)
}

// spelt is limits as people read them.
func spelt(l schema.Limits) string {
	return fmt.Sprintf("%d active, %d writers, %d new, %d retries", l.MaxActive, l.MaxWriters, l.MaxCreated, l.MaxRetries)
}

// blank says that ECMAScript's trim leaves nothing.
func blank(text string) bool {
	return strings.TrimFunc(text, func(r rune) bool {
		return unicode.Is(unicode.Zs, r) || strings.ContainsRune("\t\n\v\f\r\u2028\u2029\ufeff", r)
	}) == ""
}

// compareUTF16 orders strings as ECMAScript's sort does.
func compareUTF16(a, b string) int {
	return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
}
