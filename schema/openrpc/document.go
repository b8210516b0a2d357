package schema

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
)

// OpenRPC is the document that describes the service: every method with its
// parameters, result and errors, and every type with its meaning. It is
// generated ahead from the declarations of this package by [Generate].
//
//go:embed generated/openrpc.json
var OpenRPC []byte

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
	Errors  map[Code]openRPCError         `json:"errors"`
}

type openRPCError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

// notifications are methods that never have a reply.
var notifications = []string{Exit.Name, Cancel.Name}

// Generate reflects the declarations of this package, whose sources lie below
// the module's root folder, into the OpenRPC document.
func Generate(moduleRoot string) ([]byte, error) {
	r, err := newReflector(moduleRoot)
	if err != nil {
		return nil, err
	}
	doc := openRPC{OpenRPC: "1.3.2", Components: components{Errors: map[Code]openRPCError{}}}
	doc.Info.Title = "Taskforce sidecar"
	doc.Info.Description = "One durable authority that says, before an agent is started: yes, there is room; or no, and why. JSON-RPC 2.0 over standard input and output."
	doc.Info.Version = fmt.Sprintf("%d.0.0", Protocol)
	doc.Info.License.Name = "Apache-2.0"
	for _, spec := range Methods {
		doc.Methods = append(doc.Methods, r.describe(spec))
	}
	r.addUnions()
	r.add(reflect.TypeFor[ErrorData]())
	r.add(reflect.TypeFor[ChangedParams]())
	doc.Components.Schemas = r.definitions
	for _, spec := range Codes {
		data := map[string]any{"code": spec.Code, "retryable": spec.Retryable}
		doc.Components.Errors[spec.Code] = openRPCError{spec.Number, spec.Doc, data}
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, err
	}
	return append([]byte(strings.ReplaceAll(string(text), `"#/$defs/`, `"#/components/schemas/`)), '\n'), nil
}

func (r *reflector) describe(spec *Spec) openRPCMethod {
	r.add(spec.Params)
	m := openRPCMethod{
		Name: spec.Name, Description: spec.Doc, ParamStructure: "either", Params: []descriptor{},
		Mutates: spec.Is(Mutates), Composes: spec.Is(Composes), Resends: spec.Is(Resends),
	}
	if spec.Name != NativeAdapter.Name {
		m.ParamsSchema = &reference{"#/components/schemas/" + TypeName(spec.Params)}
	}
	definition := r.definitions[TypeName(spec.Params)]
	for pair := definition.Properties.Oldest(); pair != nil; pair = pair.Next() {
		property := *pair.Value
		m.Params = append(m.Params, descriptor{pair.Key, property.Description, slices.Contains(definition.Required, pair.Key), &property})
	}
	if !slices.Contains(notifications, spec.Name) {
		m.Result = &descriptor{Name: "result", Schema: r.result(spec.Result)}
	}
	for _, code := range append([]Code{}, spec.Errors...) {
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
