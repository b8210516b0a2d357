package schema

import (
	"bytes"
	"errors"
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

// The oracle is what a complete implementation of JSON Schema says about the same
// document and parameters, in our words.

// oracles holds what was compiled so far: nothing is compiled before a
// method is first called.
var oracles struct {
	sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

const documentURL = "taskforce:///openrpc.json"

func oracle(name string) *jsonschema.Schema {
	oracles.Lock()
	defer oracles.Unlock()
	if oracles.compiler == nil {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(OpenRPC))
		if err != nil {
			panic("schema: embedded document: " + err.Error())
		}
		oracles.compiler = jsonschema.NewCompiler()
		oracles.compiled = map[string]*jsonschema.Schema{}
		if err := oracles.compiler.AddResource(documentURL, document); err != nil {
			panic("schema: embedded document: " + err.Error())
		}
	}
	if oracles.compiled[name] == nil {
		oracles.compiled[name] = oracles.compiler.MustCompile(documentURL + "#/components/schemas/" + name)
	}
	return oracles.compiled[name]
}

// judge returns every violation that the library finds, or nil.
func (s *Spec) judge(params jsontext.Value) []Violation {
	return judge(oracle(TypeName(s.Params)), params)
}

func judge(s *jsonschema.Schema, text jsontext.Value) []Violation {
	decoder := stdjson.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return []Violation{{Rule: "type", Message: "is not JSON"}}
	}
	err := s.Validate(value)
	if err == nil {
		return nil
	}
	var broken *jsonschema.ValidationError
	if !errors.As(err, &broken) {
		return []Violation{{Rule: "schema", Message: "cannot be validated"}}
	}
	violations := flatten(broken, nil)
	sortViolations(violations)
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

func pointerTo(location []string) string {
	var b strings.Builder
	for _, token := range location {
		b.WriteString("/" + pointerEscapes.Replace(token))
	}
	return b.String()
}
