package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
)

// writeDetails writes, for each error code, the type of the data that comes with it, and their
// union: comparing the code tells a type checker which members are there.
func (f *pythonFile) writeDetails() {
	var classes []string
	var plain []any
	for _, code := range slices.Sorted(maps.Keys(f.doc.Components.Errors)) {
		if !hasDetails(code) {
			plain = append(plain, code)
			continue
		}
		name := pythonDetails(code)
		classes = append(classes, name)
		f.line(0, "")
		f.line(0, "")
		f.writeTypedDict(name, f.detailsType(code, &jsonschema.Schema{
			Const:       code,
			Description: "Always `" + code + "`.",
		}, f.doc.Components.Errors[code].Message))
	}
	classes = append(classes, "PlainDetails")
	f.enums[fmt.Sprint(plain)] = "PlainCode"
	f.line(0, "")
	f.line(0, "")
	f.line(0, "PlainCode = Literal[")
	for _, code := range plain {
		f.line(1, "%s,", pythonLiteral(code))
	}
	f.line(0, "]")
	f.line(0, "")
	f.line(0, "")
	f.writeTypedDict("PlainDetails", f.detailsType("", &jsonschema.Schema{
		Enum:        plain,
		Description: "One of the codes that say everything.",
	}, "The details of an error that needs no explanation."))
	f.line(0, "")
	f.line(0, "")
	f.list("RefusalDetails = Union[", classes, "]")
	f.docstring(0, "The details of an error of the sidecar: its `code` tells which.")
	f.names = append(f.names, classes...)
	f.names = append(f.names, "PlainCode", "RefusalDetails")
}

// hasDetails says whether anything comes with the code beside what comes with any.
func hasDetails(code string) bool {
	own, any := detailsOf(code), detailsOf("")
	return len(own.always) > 0 || len(own.sometimes) > len(any.sometimes)
}

// detailsType describes the details of one code.
func (f *pythonFile) detailsType(code string, codes *jsonschema.Schema, about string) *jsonschema.Schema {
	data := f.doc.Components.Schemas["ErrorData"]
	members := detailsOf(code)
	properties := jsonschema.NewProperties()
	properties.Set("code", codes)
	for _, name := range slices.Concat([]string{"retryable"}, members.always, members.sometimes) {
		property, _ := data.Properties.Get(name)
		properties.Set(name, property)
	}
	return &jsonschema.Schema{
		Description: about,
		Properties:  properties,
		Required:    slices.Concat([]string{"code", "retryable"}, members.always),
	}
}

// pythonDetails turns a code such as E_RESOURCE_BUSY into ResourceBusyDetails.
func pythonDetails(code string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(strings.TrimPrefix(code, "E_"), "_") {
		b.WriteString(word[:1] + strings.ToLower(word[1:]))
	}
	return b.String() + "Details"
}
