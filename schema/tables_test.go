package schema

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The method table.

func TestEveryMethodIsDescribed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, spec := range Methods {
		if seen[spec.Name] {
			t.Errorf("%s is declared twice", spec.Name)
		}
		seen[spec.Name] = true
		if Lookup(spec.Name) != spec {
			t.Errorf("%s is not found by its name", spec.Name)
		}
		if !strings.HasSuffix(spec.Doc, ".") {
			t.Errorf("%s has no description: %q", spec.Name, spec.Doc)
		}
		if len(spec.Errors) == 0 {
			t.Errorf("%s declares no errors", spec.Name)
		}
		for _, code := range spec.Errors {
			code.Spec() // panics if it is not declared
		}
		if spec.Params.Kind() != reflect.Struct {
			t.Errorf("the parameters of %s are no object", spec.Name)
		}
		if spec.InvalidCode() != ErrSchedulerCapability && !slices.Contains(spec.Errors, spec.InvalidCode()) && spec != NativeAdapter.Spec {
			t.Errorf("%s does not declare %s, the answer to invalid parameters", spec.Name, spec.InvalidCode())
		}
	}
	if Lookup("governor.Reserve") != nil || Lookup("") != nil {
		t.Error("a method is found by another name")
	}
}

// TestFlags: DESIGN.md, sections 5 and 9.
func TestFlags(t *testing.T) {
	t.Parallel()
	resendable := []string{"governor.reserve", "governor.bind", "governor.markUnknown", "governor.settle"}
	for _, spec := range Methods {
		if spec.Is(Mutates) && spec.Is(Resends) != slices.Contains(resendable, spec.Name) {
			t.Errorf("%s: sent again %t", spec.Name, spec.Is(Resends))
		}
		domain := strings.HasPrefix(spec.Name, "governor.") || strings.HasPrefix(spec.Name, "task.")
		alone := slices.Contains([]string{"governor.watch", "governor.unwatch", "governor.nativeAdapter"}, spec.Name)
		if spec.Is(Composes) != (domain && !alone) {
			t.Errorf("%s: part of a transaction %t", spec.Name, spec.Is(Composes))
		}
		if spec.Is(Session) && (spec.Is(Mutates) || spec.Is(Composes)) {
			t.Errorf("%s is about the session and the store", spec.Name)
		}
	}
}

// TestNames: parameters by position come in this order.
func TestNames(t *testing.T) {
	t.Parallel()
	for spec, want := range map[*Spec][]string{
		Reserve.Spec: {"input", "runId", "authority"}, ListTasks.Spec: {"input", "runId", "authority"},
		GetSnapshot.Spec: {"runId"}, History.Spec: {"runId", "view", "after", "limit"}, Runs.Spec: {"after", "limit"},
		Transaction.Spec: {"calls"}, Ping.Spec: {},
	} {
		if got := spec.Names(); !slices.Equal(got, want) {
			t.Errorf("%s takes %v, want %v", spec.Name, got, want)
		}
	}
}

// The error table.

// TestCodes: DESIGN.md, section 4.
func TestCodes(t *testing.T) {
	t.Parallel()
	want := map[Code]int{
		"E_GOVERNOR_CONFLICT": -32001, "E_GOVERNOR_FENCE": -32002, "E_BUDGET_EXHAUSTED": -32003, "E_RESOURCE_BUSY": -32004,
		"E_SCHEDULER_CAPABILITY": -32005, "E_SHUTTING_DOWN": -32006,
		"E_STORE_BUSY": -32010, "E_STORE_CLOSED": -32011, "E_STORE_FULL": -32012, "E_STORE_READONLY": -32013, "E_STORE_IO": -32014,
		"E_STORE_CORRUPT": -32015, "E_STORE_REPLACED": -32016, "E_STORE_VERSION": -32017, "E_STORE_CONFIG": -32018, "E_STORE_UNKNOWN": -32019,
		"E_NOT_FOUND": -32021, "E_CROSS_RUN": -32022, "E_TERMINAL": -32023, "E_STATUS": -32024, "E_TASK_CONFLICT": -32025,
		"E_NOT_LEAD": -32026, "E_INPUT": -32602,
		"E_PARSE": -32700, "E_INVALID_REQUEST": -32600, "E_METHOD_NOT_FOUND": -32601, "E_INTERNAL": -32603, "E_CANCELLED": -32800,
	}
	numbers := map[int]Code{}
	for _, spec := range Codes {
		if other, taken := numbers[spec.Number]; taken {
			t.Errorf("%s and %s share the number %d", spec.Code, other, spec.Number)
		}
		numbers[spec.Number] = spec.Code
		if number, known := want[spec.Code]; !known || number != spec.Number {
			t.Errorf("%s has the number %d, want %d", spec.Code, spec.Number, number)
		}
		delete(want, spec.Code)
		if spec.Retryable != (spec.Code == ErrStoreBusy) {
			t.Errorf("%s is retryable: %t", spec.Code, spec.Retryable)
		}
		if !strings.HasSuffix(spec.Doc, ".") || spec.Code.Spec() != spec {
			t.Errorf("%s is not described: %q", spec.Code, spec.Doc)
		}
	}
	if len(want) > 0 {
		t.Errorf("not declared: %v", want)
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	plain := Errorf(ErrStoreBusy, "wait for %d", 5)
	if plain.Number() != -32010 || plain.Error() != "E_STORE_BUSY: wait for 5" || !plain.Data().Retryable {
		t.Errorf("got %d, %q", plain.Number(), plain.Error())
	}
	conflict := Conflict(ReasonOwner, "no")
	if conflict.Number() != -32001 || conflict.Data().Reason != ReasonOwner {
		t.Errorf("got %d, %+v", conflict.Number(), conflict.Data())
	}
	invalid := Conflict(ReasonParameters, "no")
	if invalid.Number() != InvalidParams {
		t.Errorf("invalid parameters have the number %d", invalid.Number())
	}
	caused := &Error{Code: ErrStoreIO, Message: "m", Err: plain}
	if caused.Error() != "E_STORE_IO: m: E_STORE_BUSY: wait for 5" || any(caused.Unwrap()) != any(plain) {
		t.Errorf("got %q", caused.Error())
	}
	text, err := Encode(caused.Data())
	if err != nil || string(text) != `{"code":"E_STORE_IO","retryable":false}` {
		t.Errorf("the cause shows: %s, %v", text, err)
	}
}
