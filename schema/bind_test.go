package schema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// bind reads parameters of a method into a new value of its type.
func bind(s *Spec, params string) (any, error) {
	into := reflect.New(s.Params)
	err := s.Bind(jsontext.Value(params), into.Interface())
	return into.Elem().Interface(), err
}

// violations returns how the parameters break the schema, as "pointer rule message".
func violations(t *testing.T, s *Spec, params string) (list []string) {
	t.Helper()
	_, err := bind(s, params)
	if err == nil {
		return nil
	}
	var known *Error
	if !errors.As(err, &known) || known.Code != s.InvalidCode() || known.Details.Reason != ReasonParameters || known.Number() != InvalidParams {
		t.Fatalf("%s %s: got %v", s.Name, params, err)
	}
	if !strings.Contains(known.Message, s.Name) {
		t.Errorf("the message names no method: %s", known.Message)
	}
	for _, v := range known.Details.Violations {
		list = append(list, strings.TrimSpace(v.Pointer+" "+v.Rule+" "+v.Message))
	}
	return list
}

// settleWith is a settle call with the proof.
func settleWith(proof string) string {
	return `{"input":{"reservation_id":"r","generation":1,"proof":` + proof + `},"runId":"r","authority":{"role":"lead","sessionId":"s"}}`
}

func TestViolations(t *testing.T) {
	t.Parallel()
	tests := []struct {
		spec   *Spec
		params string
		want   []string
	}{
		{Settle.Spec, `{}`, []string{"/authority required is required", "/input required is required", "/runId required is required"}},
		{Settle.Spec, `[]`, []string{"/authority required is required", "/input required is required", "/runId required is required"}},
		{Settle.Spec, ``, []string{"/authority required is required", "/input required is required", "/runId required is required"}},
		{Settle.Spec, `"x"`, []string{"type must be an object or an array"}},
		{Settle.Spec, `null`, []string{"type must be an object or an array"}},
		{Settle.Spec, settleWith(`{"kind":"never_started"}`), nil},
		{Settle.Spec, settleWith(`{"kind":"terminal","outcome":"failed","quiescent":true,"evidence":"e"}`), nil},
		{Settle.Spec, settleWith(`{}`), []string{"/input/proof/kind oneOf must choose one of the known forms"}},
		{Settle.Spec, settleWith(`{"kind":"done"}`), []string{"/input/proof/kind oneOf must choose one of the known forms"}},
		{Settle.Spec, settleWith(`{"kind":1}`), []string{"/input/proof/kind oneOf must choose one of the known forms"}},
		{Settle.Spec, settleWith(`{"kind":"never_started","evidence":"e"}`), []string{"/input/proof/evidence additionalProperties is not a known member"}},
		{Settle.Spec, settleWith(`{"kind":"terminal"}`), []string{
			"/input/proof/evidence required is required", "/input/proof/outcome required is required", "/input/proof/quiescent required is required"}},
		{Settle.Spec, settleWith(`{"kind":"terminal","outcome":"won","quiescent":false,"evidence":" "}`), []string{
			"/input/proof/evidence pattern must not be blank",
			"/input/proof/outcome enum value must be one of 'succeeded', 'failed', 'cancelled'",
			"/input/proof/quiescent const value must be true"}},
		{Settle.Spec, settleWith(`[1]`), []string{"/input/proof type got array, want object"}},
		{Settle.Spec, settleWith(`null`), []string{"/input/proof type got null, want object"}},
		{GetSnapshot.Spec, `{"runId":"r","runid":"r","x/y~z":1}`, []string{
			"/runid additionalProperties is not a known member", "/x~1y~0z additionalProperties is not a known member"}},
		{GetSnapshot.Spec, `{"RunId":"r"}`, []string{"/RunId additionalProperties is not a known member", "/runId required is required"}},
		{Reserve.Spec, `[{"operation_key":"k","task_id":0,"generation":-1,"mode":"rw","kind":"","resources":["a"," "]},"",{"role":"boss","sessionId":"\ufeff"}]`, []string{
			"/authority/role enum value must be one of 'lead', 'worker'",
			"/authority/sessionId pattern must not be blank",
			"/input/generation minimum must be at least 0",
			"/input/kind enum value must be one of 'new', 'reuse', 'retry'",
			"/input/mode enum value must be one of 'read', 'write'",
			"/input/resources/1 pattern must not be blank",
			"/input/task_id minimum must be at least 1",
			"/runId pattern must not be blank"}},
		{Reserve.Spec, `[{"operation_key":"k","task_id":1,"generation":0,"mode":"read","kind":"new","resources":null},"r",{"role":"lead","sessionId":"s"}]`,
			[]string{"/input/resources type got null, want array"}},
		{ExtendBudget.Spec, `[{"reason":"r","max_active":null,"max_writers":0,"max_created":9007199254740992},"r",{"role":"lead","sessionId":"s"}]`, []string{
			"/input/max_active type got null, want integer", "/input/max_created maximum must be at most 9007199254740991", "/input/max_writers minimum must be at least 1"}},
		{History.Spec, `["r","audit",1.5,1001]`, []string{"/after type got number, want integer", "/limit maximum must be at most 1000"}},
		{History.Spec, `["r","audit",1,1,1]`, []string{"/4 maxItems takes 4 positional parameters, got 5"}},
		{Transaction.Spec, `{"calls":[]}`, []string{"/calls minItems must have at least 1 item"}},
		{Transaction.Spec, `{"calls":[` + strings.Repeat(`{"method":"m","params":[]},`, 256) + `{"method":"m","params":{}}]}`, []string{"/calls maxItems must have at most 256 items"}},
		{Transaction.Spec, `{"calls":[{"method":"m","params":1},{"method":"m"}]}`, []string{
			"/calls/0/params type got number, want object or array", "/calls/1/params required is required"}},
		{Ping.Spec, `[1]`, []string{"/0 maxItems takes 0 positional parameters, got 1"}},
		{Ping.Spec, `{"a":1}`, []string{"/a additionalProperties is not a known member"}},
		{Ping.Spec, ``, nil},
		{Ping.Spec, `{}`, nil},
		{Ping.Spec, `[]`, nil},
		{Runs.Spec, ``, nil},
		{ListTasks.Spec, `[{"status":""},"r",{"role":"lead","sessionId":"s"}]`, []string{
			"/input/status enum value must be one of 'open', 'claimed', 'submitted', 'accepted', 'rejected', 'cancelled', 'done', 'partial', 'failed'"}},
	}
	for _, test := range tests {
		if got := violations(t, test.spec, test.params); !slices.Equal(got, test.want) {
			t.Errorf("%s %.200s:\ngot  %q\nwant %q", test.spec.Name, test.params, got, test.want)
		}
	}
}

// TestByPositionIsByName: the same call in both forms.
func TestByPositionIsByName(t *testing.T) {
	t.Parallel()
	const in, run, authority = `{"task_id":1.0}`, `" r "`, `{"sessionId":"s","role":"worker"}`
	named, err := bind(GetTask.Spec, `{"authority":`+authority+`,"runId":`+run+`,"input":`+in+`}`)
	if err != nil {
		t.Fatal(err)
	}
	positional, err := bind(GetTask.Spec, `[`+in+`,`+run+`,`+authority+`]`)
	if err != nil {
		t.Fatal(err)
	}
	want := TaskParams{Input: TaskInput{TaskID: 1}, RunID: " r ", Authority: Authority{Role: Worker, SessionID: "s"}}
	if named != any(want) || positional != any(want) {
		t.Errorf("got %+v and %+v", named, positional)
	}
	short, err := bind(History.Spec, `["r","audit"]`)
	if err != nil || short != any(HistoryParams{RunID: "r", View: ViewAudit}) {
		t.Errorf("got %+v, %v", short, err)
	}
}

// TestNonBlank: what ECMAScript's trim leaves empty, every code point tried.
func TestNonBlank(t *testing.T) {
	t.Parallel()
	trimmed := []rune{0x9, 0xa, 0xb, 0xc, 0xd, 0x20, 0xa0, 0x1680, 0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006,
		0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff}
	blank := func(text string) bool {
		quoted, err := Encode(text)
		if err != nil {
			t.Fatal(err)
		}
		return GetSnapshot.validate(jsontext.Value(`{"runId":`+string(quoted)+`}`)) != nil
	}
	for _, c := range trimmed {
		if !blank(string(c)) || !blank(" "+string(c)+"\t") {
			t.Errorf("U+%04X is not blank", c)
		}
		if blank(string(c) + "a") {
			t.Errorf("U+%04X makes a word blank", c)
		}
	}
	if !blank("") || !blank(string(trimmed)) {
		t.Error("nothing is not blank")
	}
	for _, c := range []rune{0, 1, 0x1c, 0x1f, 0x7f, 0x85, 0x180e, 0x200b, 0x200c, 0x200d, 0x2060, 0xfffe, 0xffff, 0x1f600, 'a'} {
		if blank(string(c)) {
			t.Errorf("U+%04X is blank", c)
		}
	}
}

// TestIntegersOnTheWire: the schema accepts the spellings that decode, and no others.
func TestIntegersOnTheWire(t *testing.T) {
	t.Parallel()
	for _, test := range integers {
		_, err := bind(ExtendBudget.Spec, `[{"reason":"r","max_active":`+test.text+`},"r",{"role":"lead","sessionId":"s"}]`)
		if want := test.ok && test.want >= 1; (err == nil) != want {
			t.Errorf("%s as a limit: got %v", test.text, err)
		}
		params, err := bind(History.Spec, `["r","audit",`+test.text+`]`)
		if want := test.ok && test.want >= 0; (err == nil) != want {
			t.Errorf("%s as a cursor: got %v", test.text, err)
		} else if want && params.(HistoryParams).After != test.want {
			t.Errorf("%s as a cursor: got %d", test.text, params.(HistoryParams).After)
		}
	}
}

// examples are valid parameters, by method.
var examples = map[*Spec][]string{
	Reserve.Spec:      {`{"input":{"operation_key":"k","task_id":1,"generation":0,"mode":"read","kind":"new","resources":["a"]},"runId":"r","authority":{"role":"lead","sessionId":"s"}}`},
	Bind.Spec:         {`{"input":{"reservation_id":"r","generation":1,"session_id":"s"},"runId":"r","authority":{"role":"lead","sessionId":"s"}}`},
	MarkUnknown.Spec:  {`{"input":{"reservation_id":"r","generation":1,"reason":"w"},"runId":"r","authority":{"role":"lead","sessionId":"s"}}`},
	Settle.Spec:       {settleWith(`{"kind":"never_started"}`), settleWith(`{"kind":"terminal","outcome":"failed","quiescent":true,"evidence":"e"}`)},
	ExtendBudget.Spec: {`{"input":{"reason":"w","max_active":7,"max_writers":3,"max_created":4,"max_retries":3},"runId":"r","authority":{"role":"lead","sessionId":"s"}}`},
	GetSnapshot.Spec:  {`{"runId":"r"}`},
	History.Spec:      {`{"runId":"r","view":"audit","after":1,"limit":2}`},
	Runs.Spec:         {`{"after":"r","limit":2}`},
	OpenTask.Spec:     {`{"input":{"title":"t","note":"n"},"runId":"r","authority":{"role":"lead","sessionId":"s"}}`},
	ClaimTask.Spec:    {`{"input":{"task_id":1,"owner":"o","owner_session":"s"},"runId":"r","authority":{"role":"worker","sessionId":"s"}}`},
	SubmitTask.Spec:   {`{"input":{"task_id":1,"note":"n"},"runId":"r","authority":{"role":"lead","sessionId":"s"}}`},
	GetTask.Spec:      {`{"input":{"task_id":1},"runId":"r","authority":{"role":"lead","sessionId":"s"}}`},
	RejectTask.Spec:   {`{"input":{"task_id":1,"reason":"w"},"runId":"r","authority":{"role":"lead","sessionId":"s"}}`},
	TaskHistory.Spec:  {`{"input":{"task_id":1,"after":1,"limit":2},"runId":"r","authority":{"role":"lead","sessionId":"s"}}`},
	ListTasks.Spec:    {`{"input":{"after":1,"limit":2,"status":"open"},"runId":"r","authority":{"role":"lead","sessionId":"s"}}`},
	Transaction.Spec:  {`{"calls":[{"method":"m","params":{"a":[1]}},{"method":"n","params":[]}]}`},
	Initialize.Spec:   {`{"protocol":1,"client":{"name":"n","version":"v"}}`},
	Cancel.Spec:       {`{"id":1}`, `{"id":"x"}`},
	Ping.Spec:         {`{}`},
}

// TestSchemaAndDecoderAgree: every member of every example is replaced by every
// kind of value, renamed, removed or joined by another. Whatever the schema then
// accepts also decodes.
func TestSchemaAndDecoderAgree(t *testing.T) {
	t.Parallel()
	values := []string{`null`, `true`, `false`, `""`, `" "`, `"x"`, `"lead"`, `0`, `-0`, `1`, `1.0`, `1e0`, `1.5`, `-1`, `1e2`, `9007199254740991`,
		`9007199254740992`, `1e300`, `[]`, `["x"]`, `[1]`, `[null]`, `{}`, `{"kind":"never_started"}`, `{"a":1}`}
	for spec, texts := range examples {
		for _, text := range texts {
			if got := violations(t, spec, text); got != nil {
				t.Errorf("%s %s: %q", spec.Name, text, got)
			}
			for _, changed := range changes(t, text, values) {
				if spec.validate(jsontext.Value(changed)) != nil {
					continue
				}
				if _, err := bind(spec, changed); err != nil {
					t.Errorf("%s: the schema accepts %s, but %v", spec.Name, changed, err)
				}
			}
		}
	}
}

// changes returns the text with each member or element in turn replaced by each
// value, renamed, removed, and joined by another.
func changes(t *testing.T, text string, values []string) (list []string) {
	t.Helper()
	var value any
	if err := Decode([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	print := func() {
		changed, err := Encode(value)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(changed))
	}
	var walk func(node any)
	walk = func(node any) {
		switch n := node.(type) {
		case map[string]any:
			for name, child := range n {
				for _, v := range values {
					n[name] = jsontext.Value(v)
					print()
				}
				delete(n, name)
				print()
				for _, other := range []string{strings.ToUpper(name[:1]) + name[1:], name + " ", "another"} {
					n[other] = child
					print()
					delete(n, other)
				}
				n[name] = child
				n["another"] = 1
				print()
				delete(n, "another")
				walk(child)
			}
		case []any:
			for i, child := range n {
				for _, v := range values {
					n[i] = jsontext.Value(v)
					print()
				}
				n[i] = child
				walk(child)
			}
		}
	}
	walk(value)
	return list
}

func TestExamplesCoverEveryShape(t *testing.T) {
	t.Parallel()
	covered := map[reflect.Type]bool{reflect.TypeFor[AnyParams](): true}
	for spec := range examples {
		covered[spec.Params] = true
	}
	for _, spec := range Methods {
		if !covered[spec.Params] {
			t.Errorf("no example has the parameters of %s: %s", spec.Name, fmt.Sprint(spec.Params))
		}
	}
}
