package main

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dsh-taskforce/sidecar/schema"
)

// pythonByHand are the methods that the client offers in a form of its own: an
// iterator of changes, and the start and end of the connection.
var pythonByHand = []string{"governor.watch", "governor.unwatch", "initialize", "shutdown"}

// writeGroups writes the classes with the calls of each group, first for the
// blocking client, then for the asyncio client.
func (f *pythonFile) writeGroups() {
	groups := map[string][]method{}
	for _, m := range f.doc.Methods {
		if m.Result != nil && !slices.Contains(pythonByHand, m.Name) {
			groups[pythonGroup(m.Name)] = append(groups[pythonGroup(m.Name)], m)
		}
	}
	for _, async := range []bool{false, true} {
		for _, group := range slices.Sorted(maps.Keys(groups)) {
			f.writeGroup(group, groups[group], async)
		}
	}
}

// pythonGroup names the group of a method. Methods about the connection itself have no prefix of their own.
func pythonGroup(name string) string {
	prefix, _, found := strings.Cut(name, ".")
	if !found || prefix == "rpc" {
		return "connection"
	}
	return prefix
}

func (f *pythonFile) writeGroup(group string, methods []method, async bool) {
	class, call := pythonClass(group)+"Calls", "Call"
	flavour := "blocking"
	if async {
		class, call, flavour = "Async"+class, "AsyncCall", "asyncio"
	}
	about := "The calls `" + group + ".*` of the " + flavour + " client."
	if group == "connection" {
		about = "The calls about the connection itself of the " + flavour + " client."
	}
	f.line(0, "")
	f.line(0, "")
	f.line(0, "class %s:", class)
	f.docstring(1, about)
	f.line(0, "")
	f.line(1, "def __init__(self, call: %s) -> None:", call)
	f.line(2, "self._call = call")
	for _, m := range methods {
		f.line(0, "")
		f.writeMethod(m, async)
	}
}

func (f *pythonFile) writeMethod(m method, async bool) {
	prefix, await := "", ""
	if async {
		prefix, await = "async ", "await "
	}
	result := f.typeOf(m.Result.Schema)
	def := prefix + "def " + pythonName(m.Name[strings.LastIndex(m.Name, ".")+1:])
	f.writeOverloads(def, m)
	f.writeSignature(def, m.Params, result)
	f.WriteString(":\n")
	f.docstring(2, pythonMethodDoc(m)...)
	f.line(2, "result: %s = %sself._call(", result, await)
	f.line(3, "%q,", m.Name)
	f.line(3, "%s,", pythonArguments(m.Params))
	f.line(2, ")")
	f.line(2, "return result")
}

func (f *pythonFile) writeSignature(def string, params []descriptor, result string) {
	if len(params) == 0 {
		f.line(1, "%s(self) -> %s", def, result)
		f.Truncate(f.Len() - 1)
		return
	}
	f.line(1, "%s(", def)
	f.line(2, "self,")
	for _, p := range params {
		if p.Required {
			f.line(2, "%s: %s,", pythonName(p.Name), f.typeOf(p.Schema))
		} else {
			f.line(2, "%s: Optional[%s] = None,", pythonName(p.Name), f.typeOf(p.Schema))
		}
	}
	f.line(1, ") -> %s", result)
	f.Truncate(f.Len() - 1)
}

// writeOverloads writes a signature for each kind of result, where a parameter
// and a member of the result, of the same name, tell the kind.
func (f *pythonFile) writeOverloads(def string, m method) {
	result := f.doc.Components.Schemas[pythonRefName(m.Result.Schema.Ref)]
	if result == nil {
		return
	}
	for _, branch := range result.OneOf {
		kind := f.doc.Components.Schemas[pythonRefName(branch.Ref)]
		params := slices.Clone(m.Params)
		for i, param := range params {
			if property, ok := kind.Properties.Get(param.Name); ok && property.Const != nil {
				params[i].Schema = property
			}
		}
		f.line(1, "@overload")
		f.writeSignature(def, params, f.typeOf(branch))
		f.WriteString(": ...\n\n")
	}
}

// pythonMethodDoc returns the paragraphs of a method's docstring.
func pythonMethodDoc(m method) []string {
	paragraphs := []string{m.Description}
	var params []string
	for _, p := range m.Params {
		params = append(params, "`"+pythonName(p.Name)+"`: "+p.Description)
	}
	if params != nil {
		paragraphs = append(paragraphs, strings.Join(params, "\n"))
	}
	var codes []string
	for _, code := range schema.Lookup(m.Name).Errors {
		codes = append(codes, "`"+string(code)+"`")
	}
	if !m.Resends {
		codes = append(codes, "`E_SIDECAR_LOST`")
	}
	return append(paragraphs, "Raises "+strings.Join(codes, ", ")+".")
}

// pythonArguments spells the parameters object of a call.
func pythonArguments(params []descriptor) string {
	optional := false
	pairs := make([]string, len(params))
	for i, p := range params {
		pairs[i] = strconv.Quote(p.Name) + ": " + pythonName(p.Name)
		optional = optional || !p.Required
	}
	object := "{" + strings.Join(pairs, ", ") + "}"
	if optional {
		return "_given(" + object + ")"
	}
	return object
}
