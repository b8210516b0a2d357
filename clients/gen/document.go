package main

import (
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
	return map[string][]byte{
		"README.md":                                          text,
		"schema/generated/openrpc.json":                      openRPC,
		"clients/node/src/generated.ts":                      typescript(&doc),
		"clients/python/src/taskforce_sidecar/_generated.py": python(&doc),
	}, nil
}
