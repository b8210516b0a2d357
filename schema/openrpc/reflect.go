package openrpc

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/invopop/jsonschema"
)

const modulePath = "github.com/dsh-taskforce/sidecar"

// enums lists the values of each type that the wire spells as an enumeration.
var enums = map[reflect.Type][]any{
	reflect.TypeFor[schema.Role]():         {schema.Lead, schema.Worker},
	reflect.TypeFor[schema.Mode]():         {schema.Read, schema.Write},
	reflect.TypeFor[schema.Kind]():         {schema.New, schema.Reuse, schema.Retry},
	reflect.TypeFor[schema.State]():        {schema.Reserved, schema.Running, schema.Unknown, schema.Settled},
	reflect.TypeFor[schema.ProofKind]():    {schema.NeverStarted, schema.Terminal},
	reflect.TypeFor[schema.Outcome]():      {schema.Succeeded, schema.Failed, schema.Cancelled},
	reflect.TypeFor[schema.ChargeSource](): {schema.FromAdmission, schema.FromLegacy},
	reflect.TypeFor[schema.HistoryView]():  {schema.ViewReservations, schema.ViewAudit, schema.ViewRetryCharges},
	reflect.TypeFor[schema.LimitName]():    {schema.LimitActive, schema.LimitWriters, schema.LimitCreated, schema.LimitRetries},
	reflect.TypeFor[schema.Watching]():     {schema.WatchNotify, schema.WatchPoll},
	reflect.TypeFor[schema.Fence]():        {schema.FenceReservation, schema.FenceAdmission, schema.FenceRework},
	reflect.TypeFor[schema.TaskStatus](): {schema.TaskOpen, schema.TaskClaimed, schema.TaskSubmitted, schema.TaskAccepted, schema.TaskRejected,
		schema.TaskCancelled, schema.TaskDone, schema.TaskPartial, schema.TaskFailed},
	reflect.TypeFor[schema.Code](): codeValues(),
	reflect.TypeFor[schema.Reason](): {schema.ReasonTaskNotFound, schema.ReasonReservationNotFound, schema.ReasonCrossRun, schema.ReasonOwner,
		schema.ReasonCapturedOwner, schema.ReasonOperationKey, schema.ReasonTerminalTask, schema.ReasonActiveAdmission, schema.ReasonAccounting,
		schema.ReasonWorkflow, schema.ReasonUnowned, schema.ReasonSession, schema.ReasonState, schema.ReasonProof, schema.ReasonNotLead, schema.ReasonLimits,
		schema.ReasonParameters, schema.ReasonPinned, schema.ReasonProtocol},
}

func codeValues() (values []any) {
	for _, spec := range schema.Codes {
		values = append(values, spec.Code)
	}
	return values
}

// unions lists the types whose wire form is one of several objects.
var unions = map[reflect.Type][]reflect.Type{
	reflect.TypeFor[schema.Proof]():       {reflect.TypeFor[schema.NeverStartedProof](), reflect.TypeFor[schema.TerminalProof]()},
	reflect.TypeFor[schema.HistoryPage](): {reflect.TypeFor[schema.ReservationsPage](), reflect.TypeFor[schema.AuditPage](), reflect.TypeFor[schema.RetryChargesPage]()},
}

// reflector turns Go types into JSON Schemas that refer to each other by name.
type reflector struct {
	jsonschema.Reflector
	definitions map[string]*jsonschema.Schema
}

// newReflector reads the doc comments of package schema from the module's root folder.
func newReflector(moduleRoot string) (*reflector, error) {
	r := &reflector{definitions: map[string]*jsonschema.Schema{}}
	r.Anonymous = true
	r.Namer = schema.TypeName
	r.Mapper = mapType
	if err := r.AddGoComments(modulePath, filepath.Join(moduleRoot, "schema"), jsonschema.WithFullComment()); err != nil {
		return nil, fmt.Errorf("read doc comments: %w", err)
	}
	// The reader names a package by where it found it, seen from the folder it was given.
	found := path.Join(modulePath, filepath.ToSlash(moduleRoot))
	r.LookupComment = func(t reflect.Type, field string) string {
		name, _, _ := strings.Cut(t.Name(), "[")
		key := path.Join(found, strings.TrimPrefix(t.PkgPath(), modulePath)) + "." + name
		if field != "" {
			key += "." + field
		}
		return plainComment(r.CommentMap[key])
	}
	return r, nil
}

var docLink = regexp.MustCompile(`\[([A-Za-z.]+)\]`)

// plainComment turns a Go doc comment into a description for every language.
func plainComment(text string) string {
	return strings.Join(strings.Fields(docLink.ReplaceAllString(text, "$1")), " ")
}

func mapType(t reflect.Type) *jsonschema.Schema {
	if values, ok := enums[t]; ok {
		return &jsonschema.Schema{Type: "string", Enum: values}
	}
	if _, ok := unions[t]; ok {
		return &jsonschema.Schema{Ref: "#/$defs/" + schema.TypeName(t)}
	}
	switch t {
	case reflect.TypeFor[int64]():
		return &jsonschema.Schema{Type: "integer", Minimum: json.Number(strconv.Itoa(-schema.MaxInteger)), Maximum: json.Number(strconv.Itoa(schema.MaxInteger))}
	case reflect.TypeFor[jsontext.Value]():
		return &jsonschema.Schema{}
	}
	return nil
}

// add defines t and everything it refers to, and returns a reference to it.
func (r *reflector) add(t reflect.Type) *jsonschema.Schema {
	if _, ok := unions[t]; !ok {
		for name, definition := range r.ReflectFromType(t).Definitions {
			r.definitions[name] = definition
		}
		r.applyRules(t, map[reflect.Type]bool{})
	}
	return &jsonschema.Schema{Ref: "#/$defs/" + schema.TypeName(t)}
}

// addUnions defines every union and its members.
func (r *reflector) addUnions() {
	for union, members := range unions {
		definition := &jsonschema.Schema{Description: r.LookupComment(union, "")}
		for _, member := range members {
			definition.OneOf = append(definition.OneOf, r.add(member))
		}
		r.definitions[schema.TypeName(union)] = definition
	}
}

// applyRules adds to the definitions what reflection cannot see: the project's
// own `rule` tags, and that a pointer without omitempty may be null.
func (r *reflector) applyRules(t reflect.Type, seen map[reflect.Type]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if _, union := unions[t]; union || t.Kind() != reflect.Struct || seen[t] {
		return
	}
	seen[t] = true
	r.applyFieldRules(r.definitions[schema.TypeName(t)], t, seen)
}

func (r *reflector) applyFieldRules(definition *jsonschema.Schema, t reflect.Type, seen map[reflect.Type]bool) {
	for _, field := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous || definition == nil || name == "" {
			continue
		}
		r.applyRules(field.Type, seen)
		property, _ := definition.Properties.Get(name)
		applyRule(property, field.Tag.Get("rule"))
		if field.Type.Kind() == reflect.Pointer && !strings.Contains(options, "omit") && property.OneOf == nil {
			description := property.Description
			property.Description = ""
			definition.Properties.Set(name, &jsonschema.Schema{
				OneOf: []*jsonschema.Schema{property, {Type: "null"}}, Description: description,
			})
		}
	}
}

func applyRule(property *jsonschema.Schema, rule string) {
	switch keyword, value, _ := strings.Cut(rule, "="); keyword {
	case "nonblank":
		if property.Type == "array" {
			property = property.Items
		}
		property.Pattern = schema.NonBlank
	case "const":
		property.Enum = nil
		property.Const = any(value)
		if property.Type == "boolean" {
			property.Const = value == "true"
		}
	case "object":
		property.Type = "object"
	case "params":
		property.OneOf = []*jsonschema.Schema{{Type: "object"}, {Type: "array"}}
	case "id":
		property.OneOf = []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "null"}}
	}
}
