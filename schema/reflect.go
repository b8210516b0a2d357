package schema

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/invopop/jsonschema"
)

// NonBlank matches a string that ECMAScript's trim does not leave empty. The
// class is written out because engines disagree about \s: U+FEFF is blank,
// U+0085 is not.
const NonBlank = "[^\\t\\n\\v\\f\\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"

const modulePath = "github.com/dsh-taskforce/sidecar"

// enums lists the values of each type that the wire spells as an enumeration.
var enums = map[reflect.Type][]any{
	reflect.TypeFor[Role]():         {Lead, Worker},
	reflect.TypeFor[Mode]():         {Read, Write},
	reflect.TypeFor[Kind]():         {New, Reuse, Retry},
	reflect.TypeFor[State]():        {Reserved, Running, Unknown, Settled},
	reflect.TypeFor[ProofKind]():    {NeverStarted, Terminal},
	reflect.TypeFor[Outcome]():      {Succeeded, Failed, Cancelled},
	reflect.TypeFor[ChargeSource](): {FromAdmission, FromLegacy},
	reflect.TypeFor[HistoryView]():  {ViewReservations, ViewAudit, ViewRetryCharges},
	reflect.TypeFor[LimitName]():    {LimitActive, LimitWriters, LimitCreated, LimitRetries},
	reflect.TypeFor[Fence]():        {FenceReservation, FenceAdmission, FenceRework},
	reflect.TypeFor[TaskStatus](): {TaskOpen, TaskClaimed, TaskSubmitted, TaskAccepted, TaskRejected,
		TaskCancelled, TaskDone, TaskPartial, TaskFailed},
	reflect.TypeFor[Code](): codeValues(),
	reflect.TypeFor[Reason](): {ReasonTaskNotFound, ReasonReservationNotFound, ReasonCrossRun, ReasonOwner,
		ReasonCapturedOwner, ReasonOperationKey, ReasonTerminalTask, ReasonActiveAdmission, ReasonAccounting,
		ReasonWorkflow, ReasonUnowned, ReasonSession, ReasonState, ReasonProof, ReasonNotLead, ReasonLimits,
		ReasonParameters, ReasonPinned, ReasonProtocol},
}

func codeValues() (values []any) {
	for _, spec := range Codes {
		values = append(values, spec.Code)
	}
	return values
}

// unions lists the types whose wire form is one of several objects.
var unions = map[reflect.Type][]reflect.Type{
	reflect.TypeFor[Proof]():       {reflect.TypeFor[NeverStartedProof](), reflect.TypeFor[TerminalProof]()},
	reflect.TypeFor[HistoryPage](): {reflect.TypeFor[ReservationsPage](), reflect.TypeFor[AuditPage](), reflect.TypeFor[RetryChargesPage]()},
}

// reflector turns Go types into JSON Schemas that refer to each other by name.
type reflector struct {
	jsonschema.Reflector
	definitions map[string]*jsonschema.Schema
}

// newReflector reads the doc comments of this package from the module's root folder.
func newReflector(moduleRoot string) (*reflector, error) {
	r := &reflector{definitions: map[string]*jsonschema.Schema{}}
	r.Anonymous = true
	r.Namer = typeName
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

// typeName names Call[ReserveInput] as ReserveParams and any other type as Go does.
func typeName(t reflect.Type) string {
	name := t.Name()
	if _, argument, ok := strings.Cut(name, "["); ok {
		input := argument[strings.LastIndex(argument, ".")+1 : len(argument)-1]
		return strings.TrimSuffix(input, "Input") + "Params"
	}
	return name
}

func mapType(t reflect.Type) *jsonschema.Schema {
	if values, ok := enums[t]; ok {
		return &jsonschema.Schema{Type: "string", Enum: values}
	}
	if _, ok := unions[t]; ok {
		return &jsonschema.Schema{Ref: "#/$defs/" + typeName(t)}
	}
	switch t {
	case reflect.TypeFor[int64]():
		return &jsonschema.Schema{Type: "integer", Minimum: json.Number(strconv.Itoa(-MaxInteger)), Maximum: json.Number(strconv.Itoa(MaxInteger))}
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
	return &jsonschema.Schema{Ref: "#/$defs/" + typeName(t)}
}

// addUnions defines every union and its members.
func (r *reflector) addUnions() {
	for union, members := range unions {
		definition := &jsonschema.Schema{Description: r.LookupComment(union, "")}
		for _, member := range members {
			definition.OneOf = append(definition.OneOf, r.add(member))
		}
		r.definitions[typeName(union)] = definition
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
	r.applyFieldRules(r.definitions[typeName(t)], t, seen)
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
		property.Pattern = NonBlank
	case "const":
		property.Enum = nil
		property.Const = any(value)
		if property.Type == "boolean" {
			property.Const = value == "true"
		}
	case "object":
		property.Type = "object"
	case "params":
		property.OneOf = []*jsonschema.Schema{{Type: "object"}, {Type: "array", Items: jsonschema.TrueSchema}}
	case "id":
		property.OneOf = []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "null"}}
	}
}
