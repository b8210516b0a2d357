package main

import (
	"slices"
	"testing"

	"github.com/invopop/jsonschema"
)

func TestPythonNames(t *testing.T) {
	for name, want := range map[string]string{"markUnknown": "mark_unknown", "runId": "run_id", "reserve": "reserve"} {
		if got := pythonName(name); got != want {
			t.Errorf("pythonName(%q) = %q, want %q", name, got, want)
		}
	}
	if got := pythonClass("governor.markUnknown"); got != "GovernorMarkUnknown" {
		t.Errorf("pythonClass = %q", got)
	}
}

func TestPythonWrap(t *testing.T) {
	got := pythonWrap("one two  three four", 9, "  ")
	if want := []string{"one two", "  three", "  four"}; !slices.Equal(got, want) {
		t.Errorf("pythonWrap = %q, want %q", got, want)
	}
}

func TestPythonDocstringEscapes(t *testing.T) {
	f := &pythonFile{}
	f.docstring(1, `A \ and """.`)
	if got, want := f.String(), `    """A \\ and \"\"\"."""`+"\n"; got != want {
		t.Errorf("docstring = %q, want %q", got, want)
	}
}

func TestPythonTypes(t *testing.T) {
	text, null := &jsonschema.Schema{Type: "string"}, &jsonschema.Schema{Type: "null"}
	f := &pythonFile{enums: map[string]string{"[a b]": "Letter"}}
	for want, s := range map[string]*jsonschema.Schema{
		"Thing":             {Ref: "#/components/schemas/Thing"},
		"Optional[str]":     {OneOf: []*jsonschema.Schema{text, null}},
		"list[Letter]":      {Type: "array", Items: &jsonschema.Schema{Type: "string", Enum: []any{"a", "b"}}},
		`Literal["a", "c"]`: {Type: "string", Enum: []any{"a", "c"}},
		"Literal[True]":     {Type: "boolean", Const: true},
		"dict[str, str]":    {Type: "object", AdditionalProperties: text},
		"Mapping[str, Any]": {Type: "object"},
		"Any":               {},
	} {
		if got := f.typeOf(s); got != want {
			t.Errorf("typeOf = %q, want %q", got, want)
		}
	}
}

func TestPythonDetails(t *testing.T) {
	if got := pythonDetails("E_RESOURCE_BUSY"); got != "ResourceBusyDetails" {
		t.Errorf("pythonDetails = %q", got)
	}
	for code, want := range map[string]bool{"E_RESOURCE_BUSY": true, "E_INVALID_REQUEST": true, "E_STORE_FULL": false} {
		if got := hasDetails(code); got != want {
			t.Errorf("hasDetails(%q) = %v, want %v", code, got, want)
		}
	}
}
