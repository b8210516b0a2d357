package schema

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Names returns the members of the method's parameters in the order in which
// they may be sent by position.
func (s *Spec) Names() []string {
	names := make([]string, 0, s.Params.NumField())
	for i := range s.Params.NumField() {
		name, _, _ := strings.Cut(s.Params.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// Bind reads the raw parameters of a call of the method into `into`, a pointer
// to the method's parameter type. Parameters may be given by name or by
// position, or be absent where nothing is required. It returns an [Error] of
// the method's [Spec.InvalidCode] with the violations when they break the schema
// or have too many members.
func (s *Spec) Bind(params jsontext.Value, into any) error {
	named, err := s.byName(params)
	if err != nil {
		return err
	}
	if violations := overcrowded(named); violations != nil {
		return s.invalid(violations)
	}
	if violations := s.validate(named); violations != nil {
		return s.invalid(violations[:min(len(violations), maxViolations)])
	}
	if err := Decode(named, into); err != nil {
		return s.invalid([]Violation{{Rule: "type", Message: "does not decode"}})
	}
	return nil
}

func (s *Spec) invalid(violations []Violation) *Error {
	first := violations[0]
	where := "the parameters"
	if first.Pointer != "" {
		where = first.Pointer
	}
	err := Errorf(s.InvalidCode(), "invalid parameters of %s: %s: %s", s.Name, where, first.Message)
	err.Details = Details{Reason: ReasonParameters, Violations: violations}
	return err
}

// byName turns positional parameters into an object.
func (s *Spec) byName(params jsontext.Value) (jsontext.Value, error) {
	if len(params) == 0 {
		return jsontext.Value("{}"), nil
	}
	switch params.Kind() {
	case '{':
		return params, nil
	case '[':
	default:
		return nil, s.invalid([]Violation{{Rule: "type", Message: "must be an object or an array"}})
	}
	names, object := s.Names(), []byte{'{'}
	given := 0
	d := jsontext.NewDecoder(bytes.NewBuffer(params))
	_, err := d.ReadToken()
	for ; err == nil && d.PeekKind() != jsontext.KindEndArray; given++ {
		var value jsontext.Value
		if value, err = d.ReadValue(); given >= len(names) {
			continue // only counted
		}
		if given > 0 {
			object = append(object, ',')
		}
		object, _ = jsontext.AppendQuote(object, names[given])
		object = append(append(object, ':'), value...)
	}
	if err != nil {
		return nil, err
	}
	if given > len(names) {
		return nil, s.invalid([]Violation{{Pointer: fmt.Sprintf("/%d", len(names)), Rule: "maxItems",
			Message: fmt.Sprintf("takes %d positional parameters, got %d", len(names), given)}})
	}
	return append(object, '}'), nil
}
