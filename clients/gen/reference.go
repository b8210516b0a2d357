package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/invopop/jsonschema"
)

const referenceHead = `<!-- Written by "go run ./clients/gen" from package schema. Do not edit. -->

# Reference

Every call, type and refusal of the wire contract, with the spelling of both clients. A Node method returns
a promise and takes ` + "`{ signal }`" + ` as one more argument, behind its own optional members; a Python method returns
its result, and is awaited on ` + "`AsyncClient`" + `. What a refusal asks for is in [refusals](refusals.md).

`

// reference returns the page that lists methods, types and errors.
func reference(doc *document) []byte {
	w := &referenceWriter{doc: doc, types: &typescriptWriter{enums: map[string][]string{}}}
	w.printf("%s## Methods\n", referenceHead)
	for _, m := range doc.Methods {
		w.method(m)
	}
	w.printf("\n## Types\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		if !strings.HasSuffix(name, "Params") || name == "ChangedParams" {
			w.definition(name, doc.Components.Schemas[name])
		}
	}
	w.errors()
	return []byte(w.String())
}

type referenceWriter struct {
	strings.Builder
	doc *document
	// types spells types; its own text is not used.
	types *typescriptWriter
}

func (w *referenceWriter) printf(format string, args ...any) {
	fmt.Fprintf(&w.Builder, format, args...)
}

func (w *referenceWriter) method(m method) {
	w.printf("\n### `%s`\n\n%s\n\n", m.Name, m.Description)
	if node, python := spellings(m); node != "" {
		w.printf("- Node: `%s`\n- Python: `%s`\n", node, python)
	}
	w.printf("- Result: %s\n", w.result(m))
	var codes []string
	for _, code := range schema.Lookup(m.Name).Errors {
		codes = append(codes, "`"+string(code)+"`")
	}
	w.printf("- Refusals: %s\n", strings.Join(codes, ", "))
	if m.Resends {
		w.printf("- Sent again after the loss of a sidecar: it cannot take effect twice\n")
	}
	if len(m.Params) == 0 {
		return
	}
	w.printf("\n| parameter | type | meaning |\n| --- | --- | --- |\n")
	for _, p := range m.Params {
		w.member(optional(p.Name, p.Required), p.Schema, p.Description)
	}
}

// spellings returns how the clients call the method; nothing for those that
// the clients use by themselves.
func spellings(m method) (node, python string) {
	switch m.Name {
	case "shutdown", "exit", "$/cancelRequest":
		return "", ""
	case "governor.unwatch":
		return "changes.return()", "changes.close()"
	}
	var required, pythonic, more []string
	for _, p := range m.Params {
		if p.Required {
			required = append(required, p.Name)
			pythonic = append(pythonic, snakeCase(p.Name))
		} else {
			more = append(more, p.Name+"?")
		}
	}
	if more != nil && m.Name != "initialize" {
		required = append(required, "{ "+strings.Join(more, ", ")+" }")
		for _, name := range more {
			pythonic = append(pythonic, snakeCase(strings.TrimSuffix(name, "?"))+"=None")
		}
	}
	node, python = m.Name, snakeCase(m.Name)
	switch {
	case strings.HasPrefix(m.Name, "task."):
		node = "store." + m.Name
	case m.Name == "governor.watch":
		python = "watch"
	case m.Name == "store.transaction":
		python = "transaction"
	case m.Name == "initialize":
		return "store.initialize()", "client.server"
	case m.Name == "rpc.discover":
		node, python = "store.discover", "discover"
	case m.Name == "ping":
		node = "store.ping"
	}
	return node + "(" + strings.Join(required, ", ") + ")", "client." + python + "(" + strings.Join(pythonic, ", ") + ")"
}

func snakeCase(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func (w *referenceWriter) result(m method) string {
	if m.Result == nil {
		return "none, it is a notification"
	}
	return w.link(m.Result.Schema)
}

func (w *referenceWriter) definition(name string, s *jsonschema.Schema) {
	_, description, _ := strings.Cut(s.Description, " ")
	if !strings.HasPrefix(s.Description, name+" ") {
		description = s.Description
	}
	w.printf("\n### %s\n\n%s\n", name, upperFirst(description))
	if s.OneOf != nil {
		w.printf("\nOne of %s.\n", w.link(s))
		return
	}
	if s.Properties == nil || s.Properties.Len() == 0 {
		return
	}
	w.printf("\n| member | type | meaning |\n| --- | --- | --- |\n")
	for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
		w.member(optional(pair.Key, slices.Contains(s.Required, pair.Key)), pair.Value, pair.Value.Description)
	}
}

func upperFirst(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

func (w *referenceWriter) member(name string, s *jsonschema.Schema, description string) {
	w.printf("| `%s` | %s | %s |\n", name, w.link(s), strings.ReplaceAll(description, "|", `\|`))
}

// link spells a type with a link to each type of this page that it names.
func (w *referenceWriter) link(s *jsonschema.Schema) string {
	var parts []string
	for _, part := range w.alternatives(s) {
		name := strings.TrimSuffix(part, "[]")
		if w.doc.Components.Schemas[name] != nil {
			part = "[" + part + "](#" + strings.ToLower(name) + ")"
		} else {
			part = "`" + part + "`"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " or ")
}

// alternatives spells the members of a type, enumerations by their values.
func (w *referenceWriter) alternatives(s *jsonschema.Schema) []string {
	switch {
	case s.Type == "object" && s.Properties != nil && s.Properties.Len() == 0:
		return []string{"{}"}
	case len(s.Enum) > 10:
		return []string{"string"}
	case s.Enum != nil:
		var values []string
		for _, value := range s.Enum {
			values = append(values, fmt.Sprint(value))
		}
		return values
	}
	return w.types.alternatives(s)
}

// errors lists the codes with the members of their details.
func (w *referenceWriter) errors() {
	w.printf("\n## Refusals\n\n`error.data` on the wire, `details` of both clients' errors. Each has `code` and `retryable`.\n")
	w.printf("\n| code | when | always | sometimes |\n| --- | --- | --- | --- |\n")
	for _, spec := range schema.Codes {
		members := detailsOf(string(spec.Code))
		w.printf("| `%s` | %s | %s | %s |\n", spec.Code, spec.Doc, quoted(members.always), quoted(members.sometimes))
	}
}

func quoted(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, "`"+name+"`")
	}
	return strings.Join(all, ", ")
}
