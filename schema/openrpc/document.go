// Package openrpc reflects the declarations of package schema into the OpenRPC
// document that the sidecar embeds. Only the generator imports it, because the
// library behind it brings parsers of Go and YAML that no sidecar needs.
package openrpc

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/invopop/jsonschema"
)

type openRPC struct {
	OpenRPC    string          `json:"openrpc"`
	Info       openRPCInfo     `json:"info"`
	Methods    []openRPCMethod `json:"methods"`
	Components components      `json:"components"`
}

type openRPCInfo struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Version     string `json:"version"`
	License     struct {
		Name string `json:"name"`
	} `json:"license"`
}

type openRPCMethod struct {
	Name           string       `json:"name"`
	Description    string       `json:"description"`
	ParamStructure string       `json:"paramStructure"`
	Params         []descriptor `json:"params"`
	Result         *descriptor  `json:"result,omitempty"`
	Errors         []reference  `json:"errors"`
	Mutates        bool         `json:"x-mutates"`
	Composes       bool         `json:"x-composes"`
	Resends        bool         `json:"x-resends"`
	ParamsSchema   *reference   `json:"x-params,omitempty"`
}

type descriptor struct {
	Name        string             `json:"name"`
	Description string             `json:"description,omitempty"`
	Required    bool               `json:"required,omitempty"`
	Schema      *jsonschema.Schema `json:"schema"`
}

type reference struct {
	Ref string `json:"$ref"`
}

type components struct {
	Schemas map[string]*jsonschema.Schema `json:"schemas"`
	Errors  map[schema.Code]openRPCError  `json:"errors"`
}

type openRPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

// notifications are methods that never have a reply.
var notifications = []string{schema.Exit.Name, schema.Cancel.Name}

// Generate reflects the declarations of package schema, whose sources lie below
// the module's root folder, into the OpenRPC document.
func Generate(moduleRoot string) ([]byte, error) {
	r, err := newReflector(moduleRoot)
	if err != nil {
		return nil, err
	}
	doc := openRPC{OpenRPC: "1.3.2", Components: components{Errors: map[schema.Code]openRPCError{}}}
	doc.Info.Title = "Taskforce sidecar"
	doc.Info.Description = "One durable authority that says, before an agent is started: yes, there is room; or no, and why. JSON-RPC 2.0 over standard input and output."
	doc.Info.Version = fmt.Sprintf("%d.0.0", schema.Protocol)
	doc.Info.License.Name = "Apache-2.0"
	for _, spec := range schema.Methods {
		doc.Methods = append(doc.Methods, r.describe(spec))
	}
	r.addUnions()
	r.add(reflect.TypeFor[schema.ErrorData]())
	r.add(reflect.TypeFor[schema.ChangedParams]())
	doc.Components.Schemas = r.definitions
	for _, spec := range schema.Codes {
		data := map[string]any{"code": spec.Code, "retryable": spec.Retryable}
		doc.Components.Errors[spec.Code] = openRPCError{spec.Number, spec.Doc, data}
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, err
	}
	return append([]byte(strings.ReplaceAll(string(text), `"#/$defs/`, `"#/components/schemas/`)), '\n'), nil
}

func (r *reflector) describe(spec *schema.Spec) openRPCMethod {
	r.add(spec.Params)
	m := openRPCMethod{
		Name: spec.Name, Description: spec.Doc, ParamStructure: "either", Params: []descriptor{},
		Mutates: spec.Is(schema.Mutates), Composes: spec.Is(schema.Composes), Resends: spec.Is(schema.Resends),
	}
	if spec.Name != schema.NativeAdapter.Name {
		m.ParamsSchema = &reference{"#/components/schemas/" + schema.TypeName(spec.Params)}
	}
	definition := r.definitions[schema.TypeName(spec.Params)]
	for pair := definition.Properties.Oldest(); pair != nil; pair = pair.Next() {
		property := *pair.Value
		m.Params = append(m.Params, descriptor{pair.Key, property.Description, slices.Contains(definition.Required, pair.Key), &property})
	}
	if !slices.Contains(notifications, spec.Name) {
		m.Result = &descriptor{Name: "result", Schema: r.result(spec.Result)}
	}
	for _, code := range append([]schema.Code{}, spec.Errors...) {
		m.Errors = append(m.Errors, reference{"#/components/errors/" + string(code)})
	}
	return m
}

// result describes a result; those that are raw JSON have no type of ours.
func (r *reflector) result(t reflect.Type) *jsonschema.Schema {
	if t.Kind() != reflect.Struct {
		return jsonschema.TrueSchema
	}
	return r.add(t)
}
