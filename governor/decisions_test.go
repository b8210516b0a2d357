package governor

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// The decisions, without a database.

func TestRetryCharge(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind               schema.Kind
		evidence, recorded int64
		want               int64
	}{
		{schema.New, 0, 0, 0}, {schema.Reuse, 0, 0, 0}, {schema.Retry, 0, 0, 1},
		{schema.New, 1, 0, 1}, {schema.Reuse, 1, 0, 1}, {schema.Retry, 1, 0, 1},
		{schema.New, 5, 0, 5}, {schema.Retry, 5, 0, 5}, {schema.Retry, 5, 4, 1}, {schema.Retry, 5, 3, 2},
		{schema.New, 5, 5, 0}, {schema.Retry, 5, 5, 1},
		// A restored backup can leave a task behind its admissions.
		{schema.New, 2, 5, 0}, {schema.Retry, 2, 5, 1},
	}
	for _, test := range tests {
		if got := retryCharge(test.kind, test.evidence, test.recorded); got != test.want {
			t.Errorf("%s at %d after %d: got %d, want %d", test.kind, test.evidence, test.recorded, got, test.want)
		}
	}
}

func TestLegacyCharge(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind               schema.Kind
		evidence, recorded int64
		newest             bool
		want               int64
	}{
		{schema.New, 3, 0, false, 0}, {schema.Retry, 3, 0, false, 1},
		{schema.New, 3, 0, true, 3}, {schema.Retry, 3, 0, true, 4}, // the two add: their overlap is unknown
		{schema.Reuse, 3, 2, true, 1}, {schema.Reuse, 2, 3, true, 0}, {schema.Retry, 0, 0, true, 1},
	}
	for _, test := range tests {
		row := store.Unaccounted{ReservationID: "r", TaskID: 1, Kind: test.kind, EvidenceGeneration: test.evidence, Recorded: test.recorded, Newest: test.newest}
		want := schema.RetryCharge{ReservationID: "r", ReworkGeneration: test.evidence, RetryCharge: test.want, Source: schema.FromLegacy}
		if got := legacyCharge(row); got != want {
			t.Errorf("%+v: got %+v, want %+v", row, got, want)
		}
	}
}

func TestNormalizeLeavesItsInputAlone(t *testing.T) {
	t.Parallel()
	in := &schema.ReserveInput{OperationKey: "k", TaskID: 1, Resources: []string{"b", "a", "b"}}
	if got := normalize(in).Resources; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %v", got)
	}
	if !slices.Equal(in.Resources, []string{"b", "a", "b"}) {
		t.Errorf("the input became %v", in.Resources)
	}
}

// TestCompareUTF16: what ECMAScript's sort makes of these strings.
func TestCompareUTF16(t *testing.T) {
	t.Parallel()
	sorted := []string{"", "B", "a", "a\x00", "a ", "aa", "b", "e\u0301", "\x7f", "\u00e9", "\u2028", "\ud7ff", "\U0001f600", "\U0010ffff", "\ue000", "\uffee", "\uffff"}
	for i, a := range sorted {
		for j, b := range sorted {
			got := compareUTF16(a, b)
			if (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("%q against %q: %d", a, b, got)
			}
		}
	}
}

// roomy are facts that refuse nothing.
func roomy() *facts {
	return &facts{
		request: request{TaskID: 1, Mode: schema.Write, Kind: schema.New, Resources: []string{"a"}},
		task:    &store.Task{Task: schema.Task{TaskID: 1, Status: schema.TaskClaimed}},
		limits:  schema.DefaultLimits(),
	}
}

func TestLimitsAreReachedAtTheirValue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		set  func(*facts)
		want []schema.LimitName
	}{
		{"nothing used", func(*facts) {}, nil},
		{"one slot left", func(f *facts) { f.usage.Active = 5 }, nil},
		{"no slot left", func(f *facts) { f.usage.Active = 6 }, []schema.LimitName{schema.LimitActive}},
		{"more than the slots", func(f *facts) { f.usage.Active = 60 }, []schema.LimitName{schema.LimitActive}},
		{"one writer left", func(f *facts) { f.usage.Writers = 1 }, nil},
		{"no writer left", func(f *facts) { f.usage.Writers = 2 }, []schema.LimitName{schema.LimitWriters}},
		{"no writer left for a reader", func(f *facts) { f.usage.Writers, f.request.Mode = 2, schema.Read }, nil},
		{"one new left", func(f *facts) { f.usage.Created = 2 }, nil},
		{"no new left", func(f *facts) { f.usage.Created = 3 }, []schema.LimitName{schema.LimitCreated}},
		{"no new left for a reuse", func(f *facts) { f.usage.Created, f.request.Kind = 3, schema.Reuse }, nil},
		{"retries exactly used", func(f *facts) { f.admissions.Charged = 2 }, nil},
		{"retries exactly reached", func(f *facts) { f.task.EvidenceGeneration = 2 }, nil},
		{"retries exceeded", func(f *facts) { f.task.EvidenceGeneration = 3 }, []schema.LimitName{schema.LimitRetries}},
		{"retries exceeded before", func(f *facts) { f.admissions.Charged = 3 }, []schema.LimitName{schema.LimitRetries}},
		{"a retry too many", func(f *facts) { f.admissions.Charged, f.request.Kind = 2, schema.Retry }, []schema.LimitName{schema.LimitRetries}},
		{"everything", func(f *facts) {
			f.usage.Active, f.usage.Writers, f.usage.Created, f.admissions.Charged = 6, 2, 3, 3
		}, []schema.LimitName{schema.LimitActive, schema.LimitWriters, schema.LimitCreated, schema.LimitRetries}},
		{"the largest limits", func(f *facts) {
			f.limits = schema.Limits{MaxActive: schema.MaxInteger, MaxWriters: schema.MaxInteger, MaxCreated: schema.MaxInteger, MaxRetries: schema.MaxInteger}
			f.usage.Active = schema.MaxInteger
		}, []schema.LimitName{schema.LimitActive}},
	}
	for _, test := range tests {
		f := roomy()
		test.set(f)
		var got []schema.LimitName
		for _, refusal := range f.decide() {
			if refusal.Details.Budget == nil || refusal.Code != schema.ErrBudgetExhausted {
				t.Fatalf("%s: %v", test.name, refusal)
			}
			got = append(got, refusal.Details.Budget.Limit)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

func TestExtend(t *testing.T) {
	t.Parallel()
	before := schema.Limits{MaxActive: 6, MaxWriters: 2, MaxCreated: 3, MaxRetries: 2}
	for n := range int64(9) {
		after, err := extend(before, &schema.ExtendBudgetInput{MaxActive: &n})
		if accepted := n > 6; (err == nil) != accepted {
			t.Errorf("%d: got %v", n, err)
		} else if accepted && after != (schema.Limits{MaxActive: n, MaxWriters: 2, MaxCreated: 3, MaxRetries: 2}) {
			t.Errorf("%d: got %+v", n, after)
		} else if !accepted && after != before {
			t.Errorf("%d was refused but gave %+v", n, after)
		}
	}
}

func TestReworkFence(t *testing.T) {
	t.Parallel()
	charge := func(rework int64, source schema.ChargeSource) *schema.RetryCharge {
		return &schema.RetryCharge{ReworkGeneration: rework, Source: source}
	}
	tests := []struct {
		charge   *schema.RetryCharge
		evidence int64
		want     string
	}{
		{charge(0, schema.FromAdmission), 0, "open"}, {charge(7, schema.FromAdmission), 7, "open"},
		{charge(0, schema.FromAdmission), 1, "0"}, {charge(7, schema.FromAdmission), 6, "7"},
		{charge(1, schema.FromLegacy), 1, "never recorded"}, {nil, 0, "never recorded"},
	}
	for _, test := range tests {
		err := reworkFence(&store.Task{Task: schema.Task{EvidenceGeneration: test.evidence}}, test.charge)
		got := "open"
		var refusal *schema.Error
		if errors.As(err, &refusal) {
			f := refusal.Details.Fence
			if got = "never recorded"; f.Expected != nil {
				got = fmt.Sprint(*f.Expected)
			}
			if f.Fence != schema.FenceRework || f.Current != test.evidence || refusal.Code != schema.ErrGovernorFence {
				t.Errorf("%+v", refusal)
			}
		}
		if got != test.want {
			t.Errorf("%+v at %d: %s, want %s", test.charge, test.evidence, got, test.want)
		}
	}
}
