package schema

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	stdjson "encoding/json"
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
	switch params.Kind() {
	case '{':
		return params, nil
	case '[':
	case 0:
		return jsontext.Value("{}"), nil
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

// validators holds what was compiled so far: nothing is compiled before a
// method is first called.
var validators struct {
	sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

const documentURL = "taskforce:///openrpc.json"

func validator(name string) *jsonschema.Schema {
	validators.Lock()
	defer validators.Unlock()
	if validators.compiler == nil {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(OpenRPC))
		if err != nil {
			panic("schema: embedded document: " + err.Error())
		}
		validators.compiler = jsonschema.NewCompiler()
		validators.compiled = map[string]*jsonschema.Schema{}
		if err := validators.compiler.AddResource(documentURL, document); err != nil {
			panic("schema: embedded document: " + err.Error())
		}
	}
	if validators.compiled[name] == nil {
		validators.compiled[name] = validators.compiler.MustCompile(documentURL + "#/components/schemas/" + name)
	}
	return validators.compiled[name]
}

// validate returns every violation, or nil.
func (s *Spec) validate(params jsontext.Value) []Violation {
	decoder := stdjson.NewDecoder(bytes.NewReader(params))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return []Violation{{Rule: "type", Message: "is not JSON"}}
	}
	err := validator(typeName(s.Params)).Validate(value)
	if err == nil {
		return nil
	}
	var broken *jsonschema.ValidationError
	if !errors.As(err, &broken) {
		return []Violation{{Rule: "schema", Message: "cannot be validated"}}
	}
	violations := flatten(broken, nil)
	slices.SortStableFunc(violations, func(a, b Violation) int { return strings.Compare(a.Pointer, b.Pointer) })
	return violations
}

var english = message.NewPrinter(language.English)

// flatten lists the leaves of a validation error.
func flatten(e *jsonschema.ValidationError, into []Violation) []Violation {
	if _, union := e.ErrorKind.(*kind.OneOf); union {
		return flattenUnion(e, into)
	}
	for _, cause := range e.Causes {
		into = flatten(cause, into)
	}
	if len(e.Causes) > 0 {
		return into
	}
	pointer := pointerTo(e.InstanceLocation)
	path := e.ErrorKind.KeywordPath()
	rule := path[len(path)-1]
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			into = append(into, Violation{pointer + pointerTo([]string{name}), rule, "is not a known member"})
		}
		return into
	case *kind.Required:
		for _, name := range k.Missing {
			into = append(into, Violation{pointer + pointerTo([]string{name}), rule, "is required"})
		}
		return into
	}
	return append(into, Violation{pointer, rule, explain(e.ErrorKind)})
}

// explain says what is demanded. Bounds are spelled as JSON numbers, which the
// library would print with separators and powers of ten.
func explain(broken jsonschema.ErrorKind) string {
	switch k := broken.(type) {
	case *kind.Pattern:
		return "must not be blank"
	case *kind.Minimum:
		return "must be at least " + k.Want.RatString()
	case *kind.Maximum:
		return "must be at most " + k.Want.RatString()
	case *kind.MinItems:
		return "must have at least " + items(k.Want)
	case *kind.MaxItems:
		return "must have at most " + items(k.Want)
	}
	return broken.LocalizedString(english)
}

func items(n int) string {
	if n == 1 {
		return "1 item"
	}
	return fmt.Sprintf("%d items", n)
}

// flattenUnion reports only the member of a union that `kind` chose, or that
// no member has such a kind.
func flattenUnion(e *jsonschema.ValidationError, into []Violation) []Violation {
	at := pointerTo(e.InstanceLocation)
	if mismatch := noBranchOfType(e); mismatch != nil {
		return append(into, Violation{at, "type", mismatch.LocalizedString(english)})
	}
	for _, branch := range e.Causes {
		violations := flatten(branch, nil)
		chosen := !slices.ContainsFunc(violations, func(v Violation) bool {
			return v.Pointer == at+"/kind"
		})
		if chosen {
			return append(into, violations...)
		}
	}
	return append(into, Violation{at + "/kind", "oneOf", "must choose one of the known forms"})
}

// noBranchOfType returns what types the members of a union want if the value
// has none of them, else nil.
func noBranchOfType(e *jsonschema.ValidationError) *kind.Type {
	var mismatch *kind.Type
	for _, branch := range e.Causes {
		for len(branch.Causes) == 1 {
			branch = branch.Causes[0]
		}
		wrong, ok := branch.ErrorKind.(*kind.Type)
		if !ok || !slices.Equal(branch.InstanceLocation, e.InstanceLocation) {
			return nil
		}
		if mismatch == nil {
			mismatch = &kind.Type{Got: wrong.Got}
		}
		for _, want := range wrong.Want {
			if !slices.Contains(mismatch.Want, want) {
				mismatch.Want = append(mismatch.Want, want)
			}
		}
	}
	return mismatch
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func pointerTo(location []string) string {
	var b strings.Builder
	for _, token := range location {
		b.WriteString("/" + pointerEscapes.Replace(token))
	}
	return b.String()
}
