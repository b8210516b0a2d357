package schema

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// spoilers are put in the place of members. Most of them break a rule somewhere.
var spoilers = []string{`null`, `true`, `false`, `""`, `" "`, `"\u0020\ufeff"`, `"x"`, `"lead"`, `"l\u0065ad"`, `"\ud83d\ude00"`, `"audit"`,
	`0`, `-0`, `1`, `1.0`, `1e0`, `1.5`, `-1`, `1e2`, `1e-1`, `1000`, `1001`, `9007199254740991`, `9007199254740991.0`, `9007199254740992`,
	`-9007199254740992`, `123456789012345678901`, `1e19`, `-1e300`, `1e-300`, `0e300`,
	`[]`, `["x"]`, `["x"," ",1]`, `[null]`, `[[]]`, `{}`, `{"a":1}`, `{"kind":"never_started"}`, `{"kind":"never_started","evidence":"e"}`,
	`{"kind":"terminal"}`, `{"kind":"terminal","outcome":"won","quiescent":false,"evidence":""}`, `{"kind":"done"}`, `{"kind":null,"a":[]}`,
	`{"method":"m","params":{}}`, `{"role":"boss","sessionId":"s"}`}

// agree compares both validators: the same violations in the same order and words.
func agree(t testing.TB, spec *Spec, params string) {
	t.Helper()
	got, want := spec.validate(jsontext.Value(params)), spec.judge(jsontext.Value(params))
	got, want = got[:min(len(got), maxViolations)], want[:min(len(want), maxViolations)]
	if !slices.Equal(got, want) {
		t.Fatalf("%s %s:\ngot  %q\nwant %q", spec.Name, params, got, want)
	}
}

// TestValidatorAgreesWithTheLibrary: every member of every example is replaced
// by every spoiler, renamed, removed or joined by another.
func TestValidatorAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	for spec, texts := range examples {
		for _, text := range append(slices.Clone(spoilers), texts...) {
			agree(t, spec, text)
		}
		for _, text := range texts {
			for _, changed := range changes(t, text, spoilers) {
				agree(t, spec, changed)
			}
		}
	}
	for _, n := range []int{1, 255, 256, 257} {
		agree(t, Transaction.Spec, `{"calls":[`+strings.Repeat(`{"method":"m","params":[]},`, n-1)+`{"method":"m","params":{}}]}`)
	}
	for _, spec := range Methods {
		agree(t, spec, `{"a/b~c":1,"":{},"input":{"":[]},"runId":1}`)
	}
}

// TestValidatorAgreesOnRules: rules that no parameters have today, but may have tomorrow.
func TestValidatorAgreesOnRules(t *testing.T) {
	t.Parallel()
	for i, text := range []string{
		`{"type":"string","const":"x"}`, `{"type":"boolean","const":false}`, `{"type":"string","enum":["lead"]}`, `{"type":"string"}`, `{"type":"null"}`,
		`{"type":"integer","minimum":-1,"maximum":0}`, `{"type":"integer"}`, `{"type":"number"}`, `{"type":"array"}`, `{"type":"object"}`,
		`{"type":"array","items":{"type":"null"},"minItems":2}`, `{"type":"array","items":{"type":"string"},"maxItems":0}`,
		`{"type":"object","properties":{"a/b~":{"type":"string"}},"additionalProperties":false,"required":["a/b~","kind"]}`,
		`{"oneOf":[{"type":"null"},{"type":"boolean"},{"type":"array"}]}`,
		`{"oneOf":[` +
			`{"type":"object","properties":{"kind":{"type":"string","const":"done"}},"additionalProperties":false,"required":["kind"]},` +
			`{"type":"object","properties":{"kind":{"type":"string","const":"terminal"},"outcome":{"type":"null"}},"additionalProperties":false,"required":["kind"]}]}`,
	} {
		s, err := parseSubschema(jsontext.Value(text))
		if err != nil || unresolved(s) {
			t.Fatalf("%s does not compile: %v", text, err)
		}
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		url := fmt.Sprintf("test:///%d", i)
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource(url, document); err != nil {
			t.Fatal(err)
		}
		library := compiler.MustCompile(url)
		for _, value := range spoilers {
			got, err := s.validate("", jsontext.Value(value))
			sortViolations(got)
			if want := judge(library, jsontext.Value(value)); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s %s: %v\ngot  %q\nwant %q", text, value, err, got, want)
			}
		}
	}
}

// TestValidatorAgreesOnManyFaults: examples with several faults at once.
func TestValidatorAgreesOnManyFaults(t *testing.T) {
	t.Parallel()
	specs := slices.SortedFunc(maps.Keys(examples), func(a, b *Spec) int { return strings.Compare(a.Name, b.Name) })
	rapid.Check(t, func(rt *rapid.T) {
		spec := rapid.SampledFrom(specs).Draw(rt, "spec")
		var value any
		if err := Decode([]byte(rapid.SampledFrom(examples[spec]).Draw(rt, "example")), &value); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 6).Draw(rt, "faults") {
			spoil(rt, value)
		}
		text, err := Encode(value)
		if err != nil {
			rt.Fatal(err)
		}
		got, want := spec.validate(text), spec.judge(text)
		if !slices.Equal(got, want) {
			rt.Fatalf("%s %s:\ngot  %q\nwant %q", spec.Name, text, got, want)
		}
	})
}

// spoil changes one member somewhere below the node.
func spoil(rt *rapid.T, node any) {
	spoiler := func() any {
		var value any
		text := rapid.SampledFrom(spoilers).Draw(rt, "spoiler")
		if strings.ContainsAny(text[:1], "[{") && Decode([]byte(text), &value) == nil {
			return value // to be spoilt in turn
		}
		return jsontext.Value(text)
	}
	down := func(child any) bool {
		switch child.(type) {
		case map[string]any, []any:
			if rapid.IntRange(0, 3).Draw(rt, "down") > 0 {
				spoil(rt, child)
				return true
			}
		}
		return false
	}
	switch n := node.(type) {
	case map[string]any:
		names := append(slices.Sorted(maps.Keys(n)), "kind", "another", "a/b~")
		name := rapid.SampledFrom(names).Draw(rt, "name")
		if down(n[name]) {
			return
		}
		if rapid.IntRange(0, 3).Draw(rt, "remove") == 0 {
			delete(n, name)
		} else {
			n[name] = spoiler()
		}
	case []any:
		if len(n) > 0 {
			if i := rapid.IntRange(0, len(n)-1).Draw(rt, "i"); !down(n[i]) {
				n[i] = spoiler()
			}
		}
	}
}

// unbounded matches numbers that the guard of package rpc refuses, and some that it does not.
var unbounded = regexp.MustCompile(`[0-9]{65}|[eE][+-]?[0-9]{4}`)

// FuzzValidate: on strict JSON both validators agree; anything else is refused in the end.
func FuzzValidate(f *testing.F) {
	for spec, texts := range examples {
		for _, text := range texts {
			f.Add(spec.Name, text)
		}
	}
	f.Add(GetSnapshot.Name, `{"run\u0049d":"\u00a0\ufeff","x":[{"y":1e400}]}`)
	f.Add(Settle.Name, `{"input":{"proof":{"k\u0069nd":"t\u0065rminal","evidence":"\t"}}}`)
	f.Add(Runs.Name, `A`)
	f.Fuzz(func(t *testing.T, method, params string) {
		spec := Lookup(method)
		if spec == nil || unbounded.MatchString(params) || len(params) > 1<<16 {
			t.Skip()
		}
		if jsontext.Value(params).IsValid() {
			agree(t, spec, params)
		} else if _, err := bind(spec, params); err == nil && params != "" {
			t.Fatalf("%s accepts %q", method, params)
		}
	})
}

// TestEveryKeywordIsKnown: whatever the schemas of parameters say is checked.
func TestEveryKeywordIsKnown(t *testing.T) {
	t.Parallel()
	for _, spec := range Methods {
		compile(TypeName(spec.Params)) // panics if it meets what it does not know
	}
}

// TestUnknownRules: what the validator would not check does not compile.
func TestUnknownRules(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"type":"string","format":"uuid"}`, `{"type":"string","minLength":1}`, `{"type":"array","items":{"type":"string"},"uniqueItems":true}`,
		`{"type":["string","null"]}`, `{"description":"anything"}`, `{"type":"string","pattern":"^a"}`,
		`{"type":"object","properties":{}}`, `{"type":"object","properties":{},"additionalProperties":true}`,
		`{"type":"object","properties":{"a":{"type":"object","properties":{}}},"additionalProperties":false}`,
		`{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"object","additionalProperties":false}`,
		`{"type":"integer","enum":[1]}`, `{"type":"integer","const":1}`, `{"type":"number","minimum":1}`, `{"type":"array","minItems":1}`,
		`{"type":"array","items":{"format":"uri"}}`, `{"type":"integer","maximum":1.5}`,
		`{"oneOf":[{"type":"string"},{"type":"string","enum":["a"]}]}`,
		`{"oneOf":[{"$ref":"#/components/schemas/TerminalProof"},{"type":"null"}]}`,
		`{"$ref":"#/components/schemas/Nobody"}`,
		`{"type":"array","items":{"$ref":"#/components/schemas/Authority","minItems":1}}`,
	} {
		if s, err := parseSubschema(jsontext.Value(text)); err == nil && !unresolved(s) {
			t.Errorf("%s compiles", text)
		}
	}
}

func unresolved(s *subschema) bool {
	compiled.Lock()
	defer compiled.Unlock()
	_, err := s.refer()
	return err != nil
}

// TestBlankIsThePattern: every code point.
func TestBlankIsThePattern(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(NonBlank)
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if text := string(r); isBlank([]byte(text)) == pattern.MatchString(text) {
			t.Errorf("U+%04X", r)
		}
	}
}

// BenchmarkCompile is what the first call of a method costs beside its validation.
func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		compiled.schemas = nil
		if compile("ReserveParams") == nil {
			b.Fatal("no schema")
		}
	}
}
