package openrpc

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// TestGeneratedDocumentIsCurrent: the committed document is what the
// declarations of package schema say.
func TestGeneratedDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	want, err := Generate("../..")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../generated/openrpc.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("generated/openrpc.json is out of date; run: go run ./clients/gen")
	}
	if !bytes.Equal(got, schema.OpenRPC) {
		t.Error("another document is embedded")
	}
}

// document is the part of the document that the tests below look at.
func document(t *testing.T) (doc struct {
	Methods []struct {
		Name, Description string
		Params            []struct{ Name, Description string }
		Result            *struct{ Schema any }
		Errors            []struct {
			Ref string `json:"$ref"`
		}
	}
	Components struct {
		Schemas map[string]map[string]any
		Errors  map[string]any
	}
}) {
	t.Helper()
	if err := json.Unmarshal(schema.OpenRPC, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDocumentDescribesEverything(t *testing.T) {
	t.Parallel()
	doc := document(t)
	if len(doc.Methods) != len(schema.Methods) {
		t.Errorf("%d methods, want %d", len(doc.Methods), len(schema.Methods))
	}
	for i, method := range doc.Methods {
		if method.Name != schema.Methods[i].Name || method.Description == "" {
			t.Errorf("method %d is %q: %q", i, method.Name, method.Description)
		}
		for _, param := range method.Params {
			if param.Description == "" {
				t.Errorf("%s: the parameter %s is not described", method.Name, param.Name)
			}
		}
		for _, reference := range method.Errors {
			name := strings.TrimPrefix(reference.Ref, "#/components/errors/")
			if doc.Components.Errors[name] == nil {
				t.Errorf("%s refers to %s", method.Name, reference.Ref)
			}
		}
	}
	for name, definition := range doc.Components.Schemas {
		if definition["description"] == nil && name != "NoParams" {
			t.Errorf("%s is not described", name)
		}
		properties, _ := definition["properties"].(map[string]any)
		for member, property := range properties {
			if property.(map[string]any)["description"] == nil {
				t.Errorf("%s.%s is not described", name, member)
			}
		}
	}
}

// TestDocumentIsSoundJSONSchema: references lead somewhere and objects are closed.
func TestDocumentIsSound(t *testing.T) {
	t.Parallel()
	doc := document(t)
	var walk func(where string, node any)
	walk = func(where string, node any) {
		switch n := node.(type) {
		case []any:
			for _, child := range n {
				walk(where, child)
			}
		case map[string]any:
			if reference, ok := n["$ref"].(string); ok && doc.Components.Schemas[strings.TrimPrefix(reference, "#/components/schemas/")] == nil {
				t.Errorf("%s refers to %s", where, reference)
			}
			if n["properties"] != nil && n["additionalProperties"] != false {
				t.Errorf("%s is open", where)
			}
			for _, child := range n {
				walk(where, child)
			}
		}
	}
	for name, definition := range doc.Components.Schemas {
		walk(name, definition)
	}
	for _, method := range doc.Methods {
		if method.Result != nil {
			walk(method.Name, method.Result.Schema)
		}
	}
}
