package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/invopop/jsonschema"
)

// pythonKeywords are Python's reserved words that JSON member names might use.
var pythonKeywords = []string{"as", "class", "def", "except", "from", "global", "import", "in", "is", "not", "or", "pass", "return", "with", "yield"}

// writeType writes the type of that name after every type that it refers to,
// so that annotations can be evaluated in order.
func (f *pythonFile) writeType(name string) {
	if f.done[name] {
		return
	}
	f.done[name] = true
	if name == "TransactionCall" {
		f.writeTransactionCalls()
		return
	}
	definition := f.doc.Components.Schemas[name]
	for _, ref := range pythonReferences(definition) {
		f.writeType(ref)
	}
	f.line(0, "")
	f.line(0, "")
	if definition.OneOf != nil {
		f.line(0, "%s = %s", name, f.typeOf(definition))
		f.docstring(0, definition.Description)
		return
	}
	f.writeTypedDict(name, definition)
}

// writeTransactionCalls writes a type for each call that a transaction may
// contain, so that its parameters are checked as those of the call alone.
func (f *pythonFile) writeTransactionCalls() {
	var names []string
	for _, m := range f.doc.Methods {
		if !schema.Lookup(m.Name).Is(schema.Composes) {
			continue
		}
		params := pythonParams(m)
		f.writeType(params)
		name := "_" + pythonClass(m.Name) + "Call"
		names = append(names, name)
		f.line(0, "")
		f.line(0, "")
		f.line(0, "class %s(TypedDict):", name)
		f.line(1, "method: Literal[%q]", m.Name)
		f.line(1, "params: %s", params)
	}
	f.line(0, "")
	f.line(0, "")
	f.list("TransactionCall = Union[", names, "]")
	f.docstring(0, f.doc.Components.Schemas["TransactionCall"].Description)
}

// pythonParams names the type of a method's parameters.
func pythonParams(m method) string {
	if m.Params[0].Name == "input" {
		return strings.TrimSuffix(pythonRefName(m.Params[0].Schema.Ref), "Input") + "Params"
	}
	return schema.Lookup(m.Name).Params.Name()
}

// writeTypedDict writes an object type. Members that are reserved words need
// the functional form, and members that may be absent a class of their own;
// the class syntax carries the documentation.
func (f *pythonFile) writeTypedDict(name string, definition *jsonschema.Schema) {
	keywords, required, optional := pythonMembers(definition)
	base := "TypedDict"
	if len(keywords) > 0 {
		f.writeKeywordBase("_"+name+"Keywords", keywords, definition)
		base = "_" + name + "Keywords"
	}
	if len(required) > 0 && len(optional) > 0 {
		f.writeClass("_"+name+"Required", base, "The members of `"+name+"` that are always present.", required, definition)
		base = "_" + name + "Required"
	}
	if len(optional) > 0 {
		f.writeClass(name, base+", total=False", definition.Description, optional, definition)
		return
	}
	f.writeClass(name, base, definition.Description, required, definition)
}

func (f *pythonFile) writeKeywordBase(name string, keywords []string, definition *jsonschema.Schema) {
	f.line(0, "%s = TypedDict(", name)
	f.line(1, "%q,", name)
	f.line(1, "{")
	for _, key := range keywords {
		property, _ := definition.Properties.Get(key)
		f.comment(2, property.Description)
		f.line(2, "%q: %s,", key, f.typeOf(property))
	}
	f.line(1, "},")
	f.line(0, ")")
	f.line(0, "")
	f.line(0, "")
}

func (f *pythonFile) writeClass(name, bases, description string, names []string, definition *jsonschema.Schema) {
	f.line(0, "class %s(%s):", name, bases)
	f.docstring(1, description)
	for _, key := range names {
		property, _ := definition.Properties.Get(key)
		f.line(0, "")
		f.line(1, "%s: %s", key, f.typeOf(property))
		f.docstring(1, property.Description)
	}
	if strings.HasPrefix(name, "_") {
		f.line(0, "")
		f.line(0, "")
	}
}

// pythonMembers splits the properties of an object type by how Python can declare them.
func pythonMembers(definition *jsonschema.Schema) (keywords, required, optional []string) {
	for pair := definition.Properties.Oldest(); pair != nil; pair = pair.Next() {
		needed := slices.Contains(definition.Required, pair.Key)
		switch {
		case needed && slices.Contains(pythonKeywords, pair.Key):
			keywords = append(keywords, pair.Key)
		case needed:
			required = append(required, pair.Key)
		default:
			optional = append(optional, pair.Key)
		}
	}
	return keywords, required, optional
}

// pythonReferences returns the names of the types that a schema refers to, in order.
func pythonReferences(s *jsonschema.Schema) (names []string) {
	if s == nil {
		return nil
	}
	if s.Ref != "" {
		names = append(names, pythonRefName(s.Ref))
	}
	for _, branch := range s.OneOf {
		names = append(names, pythonReferences(branch)...)
	}
	names = append(names, pythonReferences(s.Items)...)
	names = append(names, pythonReferences(s.AdditionalProperties)...)
	if s.Properties != nil {
		for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
			names = append(names, pythonReferences(pair.Value)...)
		}
	}
	return names
}

func pythonRefName(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// typeOf spells a schema as a Python type expression.
func (f *pythonFile) typeOf(s *jsonschema.Schema) string {
	switch {
	case s.Ref != "":
		return pythonRefName(s.Ref)
	case s.OneOf != nil:
		return f.unionOf(s.OneOf)
	case s.Const != nil:
		return "Literal[" + pythonLiteral(s.Const) + "]"
	case s.Enum != nil:
		return f.enumOf(s.Enum)
	}
	switch s.Type {
	case "string":
		return "str"
	case "integer":
		return "int"
	case "number":
		return "float"
	case "boolean":
		return "bool"
	case "array":
		return "list[" + f.itemsOf(s.Items) + "]"
	case "object":
		if s.AdditionalProperties != nil && s.Properties == nil {
			return "dict[str, " + f.typeOf(s.AdditionalProperties) + "]"
		}
		return "Mapping[str, Any]"
	}
	return "Any"
}

func (f *pythonFile) itemsOf(items *jsonschema.Schema) string {
	if items == nil {
		return "Any"
	}
	return f.typeOf(items)
}

func (f *pythonFile) unionOf(branches []*jsonschema.Schema) string {
	var types []string
	nullable := false
	for _, branch := range branches {
		if branch.Type == "null" {
			nullable = true
			continue
		}
		types = append(types, f.typeOf(branch))
	}
	union := types[0]
	if len(types) > 1 {
		union = "Union[" + strings.Join(types, ", ") + "]"
	}
	if nullable {
		return "Optional[" + union + "]"
	}
	return union
}

func (f *pythonFile) enumOf(values []any) string {
	if name, ok := f.enums[fmt.Sprint(values)]; ok {
		return name
	}
	literals := make([]string, len(values))
	for i, value := range values {
		literals[i] = pythonLiteral(value)
	}
	return "Literal[" + strings.Join(literals, ", ") + "]"
}
