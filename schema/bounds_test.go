package schema

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// An array or object with too many members is refused before it is validated.
func TestMaxMembers(t *testing.T) {
	t.Parallel()
	reserve := func(resources string) string {
		return `[{"operation_key":"k","task_id":1,"generation":0,"mode":"read","kind":"new","resources":[` + resources +
			`]},"run",{"role":"lead","sessionId":"s"}]`
	}
	members := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"m%d":1`, i)
		}
		return b.String()[1:]
	}
	tests := []struct {
		name   string
		spec   *Spec
		params string
		want   string // pointer and rule, "" if it is accepted
	}{
		{"as many as may be", Reserve.Spec, reserve(strings.Repeat(`"r",`, MaxMembers-1) + `"r"`), ""},
		{"one more", Reserve.Spec, reserve(strings.Repeat(`"r",`, MaxMembers) + `"r"`), "/input/resources maxItems"},
		{"of another type", Reserve.Spec, reserve(strings.Repeat(`1,`, 1_000_000) + `1`), "/input/resources maxItems"},
		{"unknown members", Ping.Spec, "{" + members(100_000) + "}", " maxProperties"},
		{"positional", Ping.Spec, "[" + strings.Repeat("1,", 1_000_000) + "1]", "/0 maxItems"},
		{"in a call of a transaction", Transaction.Spec, `[[{"method":"m","params":[` + strings.Repeat("1,", MaxMembers) + `1]}]]`, "/calls/0/params maxItems"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := test.spec.Bind(jsontext.Value(test.params), reflect.New(test.spec.Params).Interface()); err != nil {
				first := violationsOf(err)[0]
				got = first.Pointer + " " + first.Rule
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// What breaks the schema in many places is described by the first of them.
func TestMaxViolations(t *testing.T) {
	t.Parallel()
	params := "[" + strings.TrimSuffix(strings.Repeat(`{"x":1},`, 200), ",") + "]"
	err := Transaction.Bind(jsontext.Value("["+params+"]"), new(TransactionParams))
	if n := len(violationsOf(err)); n != maxViolations {
		t.Errorf("%d violations are listed, want %d", n, maxViolations)
	}
}

func violationsOf(err error) []Violation {
	var refusal *Error
	if !errors.As(err, &refusal) {
		return nil
	}
	return refusal.Details.Violations
}
