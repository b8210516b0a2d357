package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/dsh-taskforce/sidecar/schema/openrpc"
	"github.com/invopop/jsonschema"
)

// document is the part of the OpenRPC document that the clients are made from.
type document struct {
	Methods    []method `json:"methods"`
	Components struct {
		Schemas map[string]*jsonschema.Schema `json:"schemas"`
		Errors  map[string]struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
			Data    struct {
				Retryable bool `json:"retryable"`
			} `json:"data"`
		} `json:"errors"`
	} `json:"components"`
}

// method is one line of the method table.
type method struct {
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Params      []descriptor `json:"params"`
	// Result is nil for a notification.
	Result  *descriptor `json:"result"`
	Mutates bool        `json:"x-mutates"`
	Resends bool        `json:"x-resends"`
}

type descriptor struct {
	Name        string             `json:"name"`
	Description string             `json:"description"`
	Required    bool               `json:"required"`
	Schema      *jsonschema.Schema `json:"schema"`
}

// generate returns the text of every generated file by its path from the module's root folder.
func generate(root string) (map[string][]byte, error) {
	openRPC, err := openrpc.Generate(root)
	if err != nil {
		return nil, err
	}
	var doc document
	if err := json.Unmarshal(openRPC, &doc); err != nil {
		return nil, fmt.Errorf("read the generated document: %w", err)
	}
	text, err := readme(root, &doc)
	if err != nil {
		return nil, err
	}
	types, err := typeSchemas(openRPC)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"README.md":                                          text,
		"docs/reference.md":                                  reference(&doc),
		"schema/generated/openrpc.json":                      openRPC,
		"schema/generated/taskforce.schema.json":             types,
		"clients/node/src/generated.ts":                      typescript(&doc),
		"clients/python/src/taskforce_sidecar/_generated.py": python(&doc),
	}, nil
}

// typeSchemas returns the types of the OpenRPC document as one JSON Schema,
// for validators that know nothing of OpenRPC.
func typeSchemas(openRPC []byte) ([]byte, error) {
	var doc struct {
		Components struct{ Schemas json.RawMessage }
	}
	if err := json.Unmarshal(openRPC, &doc); err != nil {
		return nil, fmt.Errorf("read the generated document: %w", err)
	}
	types := struct {
		Schema string          `json:"$schema"`
		ID     string          `json:"$id"`
		Title  string          `json:"title"`
		Defs   json.RawMessage `json:"$defs"`
	}{
		jsonschema.Version, "https://github.com/dsh-taskforce/sidecar/taskforce.schema.json",
		"The types of the Taskforce sidecar",
		bytes.ReplaceAll(doc.Components.Schemas, []byte(`"#/components/schemas/`), []byte(`"#/$defs/`)),
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(types)
	return b.Bytes(), err
}
