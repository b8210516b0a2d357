package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
)

func TestTypescriptTypes(t *testing.T) {
	text := &jsonschema.Schema{Type: "string"}
	for want, s := range map[string]*jsonschema.Schema{
		"string":                  text,
		"number":                  {Type: "integer"},
		"unknown":                 {},
		"unknown[]":               {Type: "array"},
		"string[]":                {Type: "array", Items: text},
		"Reservation":             {Ref: "#/components/schemas/Reservation"},
		"string | null":           {OneOf: []*jsonschema.Schema{text, {Type: "null"}}},
		"(string | null)[]":       {Type: "array", Items: &jsonschema.Schema{OneOf: []*jsonschema.Schema{text, {Type: "null"}}}},
		"'terminal'":              {Type: "string", Const: "terminal"},
		"true":                    {Type: "boolean", Const: true},
		"Mode":                    {Type: "string", Enum: []any{"read", "write"}},
		"Record<string, string>":  {Type: "object", AdditionalProperties: text},
		"Record<string, never>":   {Type: "object", Properties: jsonschema.NewProperties()},
		"Record<string, unknown>": {Type: "object"},
	} {
		w := &typescriptWriter{enums: map[string][]string{}}
		if got := w.typeOf(s); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestTypescriptRefusesAnEnumerationWithoutAName(t *testing.T) {
	w := &typescriptWriter{enums: map[string][]string{}}
	w.enumeration([]any{"read", "write"})
	defer func() {
		if recover() == nil {
			t.Error("two enumerations were given one name")
		}
	}()
	w.enumeration([]any{"read", "write", "append"})
}

func TestTypescriptBreaksLinesAsTheFormatterDoes(t *testing.T) {
	long := strings.Repeat("x", 60)
	w := &typescriptWriter{}
	w.comment("  ", "Short.")
	w.comment("  ", long+" "+long)
	w.list("  f(", []string{"a", "b"}, ")")
	w.list("  f(", []string{long, long}, ")")
	want := "  /** Short. */\n  /**\n   * " + long + "\n   * " + long + "\n   */\n" +
		"  f(a, b)\n  f(\n    " + long + ",\n    " + long + ",\n  )\n"
	if got := w.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTypescriptIsDeterministic(t *testing.T) {
	first, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	second, err := generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	const path = "clients/node/src/generated.ts"
	if !bytes.Equal(first[path], second[path]) {
		t.Error("the same document gives two different files")
	}
}
