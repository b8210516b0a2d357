package schema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// subschema is a JSON Schema of the generated document. It knows the keywords
// that the schemas of parameters use and, being decoded strictly, no others: a
// keyword that it does not know is a fault of the build, never a rule unchecked.
type subschema struct {
	Description string                `json:"description"`
	Ref         string                `json:"$ref"`
	Type        string                `json:"type"`
	OneOf       []*subschema          `json:"oneOf"`
	Properties  map[string]*subschema `json:"properties"`
	Required    []string              `json:"required"`
	Additional  *bool                 `json:"additionalProperties"`
	Items       *subschema            `json:"items"`
	MinItems    *int                  `json:"minItems"`
	MaxItems    *int                  `json:"maxItems"`
	Enum        []string              `json:"enum"`
	Const       jsontext.Value        `json:"const"`
	Pattern     string                `json:"pattern"`
	Minimum     *int64                `json:"minimum"`
	Maximum     *int64                `json:"maximum"`

	// types are those that a value may have; in a union, the types of all members.
	types []string
	// forms are the members of a union of objects, by the `kind` that each demands.
	forms map[string]*subschema
}

// compiled holds what was compiled so far. Nothing is compiled before a method
// is first called, and then only what its parameters refer to.
var compiled struct {
	sync.Mutex
	schemas map[string]*subschema
}

// compile returns the schema of that name in the document.
func compile(name string) *subschema {
	compiled.Lock()
	defer compiled.Unlock()
	if compiled.schemas == nil {
		compiled.schemas = map[string]*subschema{}
	}
	s, err := define(name)
	if err != nil {
		panic(fmt.Sprintf("schema: embedded document: %s: %v", name, err))
	}
	return s
}

// define compiles the schema of that name, unless it was before.
func define(name string) (*subschema, error) {
	if s := compiled.schemas[name]; s != nil {
		return s, nil
	}
	s, err := parseSubschema(definitions()[name])
	if err != nil {
		return nil, err
	}
	compiled.schemas[name] = s // before it is resolved, because it may refer to itself
	return s, s.resolve()
}

// parseSubschema reads a schema and refuses keywords that are not known.
func parseSubschema(text jsontext.Value) (*subschema, error) {
	s := new(subschema)
	return s, json.Unmarshal(text, s, json.RejectUnknownMembers(true))
}

// resolve puts definitions in the place of references, all the way down, and
// refuses what the validator would not check.
func (s *subschema) resolve() (err error) {
	for name, property := range s.Properties {
		if s.Properties[name], err = property.refer(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if s.Items != nil {
		if s.Items, err = s.Items.refer(); err != nil {
			return err
		}
	}
	for i, member := range s.OneOf {
		if s.OneOf[i], err = member.refer(); err != nil {
			return err
		}
	}
	switch {
	case s.Pattern != "" && s.Pattern != NonBlank:
		return fmt.Errorf("unknown pattern %q", s.Pattern)
	case s.Enum != nil && s.Type != "string", s.Const != nil && s.Type != "string" && s.Type != "boolean",
		(s.Minimum != nil || s.Maximum != nil) && s.Type != "integer", (s.MinItems != nil || s.MaxItems != nil) && s.Items == nil:
		return errors.New("rules that are only known for another type")
	case (s.Properties == nil) != (s.Additional == nil), s.Additional != nil && *s.Additional:
		return errors.New("an object that is neither closed nor without rules")
	case s.OneOf != nil:
		return s.unite()
	case s.Type == "":
		return errors.New("no type")
	}
	s.types = []string{s.Type}
	return nil
}

// refer returns what s stands for: the definition that it refers to, or itself.
func (s *subschema) refer() (*subschema, error) {
	if s.Ref == "" {
		return s, s.resolve()
	}
	if !reflect.DeepEqual(s, &subschema{Ref: s.Ref, Description: s.Description}) {
		return nil, fmt.Errorf("rules beside a reference to %s", s.Ref)
	}
	return define(strings.TrimPrefix(s.Ref, "#/components/schemas/"))
}

// unite prepares a union: either its members are types and nothing more, or
// they are objects that each demand another `kind`.
func (s *subschema) unite() error {
	for _, member := range s.OneOf {
		if !slices.Contains(s.types, member.Type) {
			s.types = append(s.types, member.Type)
		}
		if kind := member.Properties["kind"]; kind != nil && kind.Const.Kind() == jsontext.KindString {
			if s.forms == nil {
				s.forms = map[string]*subschema{}
			}
			s.forms[string(unquote(nil, kind.Const))] = member
		} else if !reflect.DeepEqual(member, &subschema{Type: member.Type, types: member.types}) {
			return errors.New("a union whose members no `kind` tells apart")
		}
	}
	if s.forms != nil && len(s.forms) != len(s.OneOf) {
		return errors.New("a union of objects and others")
	}
	return nil
}
