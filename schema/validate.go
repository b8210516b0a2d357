package schema

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// validation walks once over the text of parameters, beside their schema.
type validation struct {
	buffer  bytes.Buffer
	decoder jsontext.Decoder
	// at is the JSON Pointer of the text in the parameters.
	at         string
	violations []Violation
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// validations keeps decoders for reuse, because one costs more than small parameters.
var validations = sync.Pool{New: func() any { return new(validation) }}

// validate returns every violation in the order of their pointers, or nil.
func (s *Spec) validate(params jsontext.Value) []Violation {
	violations, err := compile(TypeName(s.Params)).validate("", params)
	if err != nil {
		return []Violation{{Rule: "type", Message: "is not JSON"}}
	}
	sortViolations(violations)
	return violations
}

func sortViolations(list []Violation) {
	slices.SortStableFunc(list, func(a, b Violation) int { return strings.Compare(a.Pointer, b.Pointer) })
}

// validate returns the violations of a text that stands at the pointer. What
// no schema speaks about, as duplicate members, is left to [Decode].
func (s *subschema) validate(at string, text jsontext.Value) ([]Violation, error) {
	v := validations.Get().(*validation)
	defer validations.Put(v)
	v.at, v.buffer = at, *bytes.NewBuffer(text) // the decoder reads it in place
	v.decoder.Reset(&v.buffer, lenient)
	err := v.value(s)
	violations := v.violations
	v.buffer, v.violations = bytes.Buffer{}, nil
	return violations, err
}

var lenient = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// add notes a violation. As only the first are listed, the others need not be kept.
func (v *validation) add(list ...Violation) {
	v.violations = append(v.violations, list...)
	if len(v.violations) > 20*maxViolations {
		sortViolations(v.violations)
		v.violations = v.violations[:maxViolations]
	}
}

// broken notes that the value which was just read breaks a rule.
func (v *validation) broken(rule, message string) {
	v.add(Violation{v.pointer(), rule, message})
}

// pointer is where the value stands that was just read.
func (v *validation) pointer() string { return v.at + string(v.decoder.StackPointer()) }

// value reads the next value and checks it. A rule is named when its value has
// been read, because only then does the decoder point to it.
func (v *validation) value(s *subschema) error {
	kind := v.decoder.PeekKind()
	got := typeNames[kind]
	if !s.accepts(got) {
		return v.mistyped(s, got)
	}
	switch {
	case s.forms != nil:
		return v.union(s)
	case got == "object" && s.Properties != nil:
		return v.object(s)
	case got == "array" && (s.Items != nil || s.MinItems != nil || s.MaxItems != nil):
		return v.array(s)
	case got == "object" || got == "array":
		return v.decoder.SkipValue()
	}
	text, err := v.decoder.ReadValue()
	if err != nil {
		return err
	}
	switch got {
	case "string":
		v.text(s, text)
	case "number":
		v.number(s, text)
	default:
		v.constant(s, text)
	}
	return nil
}

// typeNames are the types of JSON Schema. What is no JSON has none.
var typeNames = map[jsontext.Kind]string{
	jsontext.KindNull: "null", jsontext.KindTrue: "boolean", jsontext.KindFalse: "boolean", jsontext.KindString: "string",
	jsontext.KindNumber: "number", jsontext.KindBeginObject: "object", jsontext.KindBeginArray: "array",
}

// accepts reports whether a value may have the type. Whether a number is an integer shows later.
func (s *subschema) accepts(got string) bool {
	return slices.Contains(s.types, got) || got == "number" && slices.Contains(s.types, "integer")
}

// mistyped skips a value of a type that is not wanted.
func (v *validation) mistyped(s *subschema, got string) error {
	if err := v.decoder.SkipValue(); err != nil {
		return err
	}
	v.broken("type", "got "+got+", want "+strings.Join(s.types, " or "))
	return nil
}

func (v *validation) object(s *subschema) error {
	var room [16]bool
	present := append(room[:0], make([]bool, len(s.Required))...)
	if _, err := v.decoder.ReadToken(); err != nil {
		return err
	}
	for v.decoder.PeekKind() != jsontext.KindEndObject {
		quoted, err := v.decoder.ReadValue()
		if err != nil {
			return err
		}
		var room [64]byte
		name := unquote(room[:0], quoted)
		for i := range present {
			present[i] = present[i] || s.Required[i] == string(name)
		}
		if property := s.Properties[string(name)]; property != nil {
			err = v.value(property)
		} else {
			v.broken("additionalProperties", "is not a known member")
			err = v.decoder.SkipValue()
		}
		if err != nil {
			return err
		}
	}
	if _, err := v.decoder.ReadToken(); err != nil {
		return err
	}
	for i, name := range s.Required {
		if !present[i] {
			v.add(Violation{v.pointer() + "/" + pointerEscapes.Replace(name), "required", "is required"})
		}
	}
	return nil
}

func (v *validation) array(s *subschema) error {
	if _, err := v.decoder.ReadToken(); err != nil {
		return err
	}
	n := 0
	for ; v.decoder.PeekKind() != jsontext.KindEndArray; n++ {
		if err := v.value(s.Items); err != nil {
			return err
		}
	}
	if _, err := v.decoder.ReadToken(); err != nil {
		return err
	}
	if s.MinItems != nil && n < *s.MinItems {
		v.broken("minItems", "must have at least "+items(*s.MinItems))
	}
	if s.MaxItems != nil && n > *s.MaxItems {
		v.broken("maxItems", "must have at most "+items(*s.MaxItems))
	}
	return nil
}

func items(n int) string {
	if n == 1 {
		return "1 item"
	}
	return strconv.Itoa(n) + " items"
}

// union checks an object by the rules of the form that its `kind` chooses, so
// that nobody reads how it breaks the others.
func (v *validation) union(s *subschema) error {
	text, err := v.decoder.ReadValue()
	if err != nil {
		return err
	}
	var chosen struct {
		Kind string `json:"kind"`
	}
	// Where `kind` is no string, none is chosen.
	_ = json.Unmarshal(text, &chosen, lenient)
	form := s.forms[chosen.Kind]
	if form == nil {
		v.add(Violation{v.pointer() + "/kind", "oneOf", "must choose one of the known forms"})
		return nil
	}
	violations, err := form.validate(v.pointer(), text)
	v.add(violations...)
	return err
}
