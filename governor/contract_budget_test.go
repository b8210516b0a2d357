package governor_test

import (
	"fmt"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// GOVERNOR.md, "Trusted identity and API": extendBudget.

func TestExtendBudgetSetsAbsoluteLimits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   schema.ExtendBudgetInput
		want schema.Limits
	}{
		{"active", schema.ExtendBudgetInput{MaxActive: new(int64(7))}, schema.Limits{MaxActive: 7, MaxWriters: 2, MaxCreated: 3, MaxRetries: 2}},
		{"writers", schema.ExtendBudgetInput{MaxWriters: new(int64(3))}, schema.Limits{MaxActive: 6, MaxWriters: 3, MaxCreated: 3, MaxRetries: 2}},
		{"created", schema.ExtendBudgetInput{MaxCreated: new(int64(4))}, schema.Limits{MaxActive: 6, MaxWriters: 2, MaxCreated: 4, MaxRetries: 2}},
		{"retries", schema.ExtendBudgetInput{MaxRetries: new(int64(3))}, schema.Limits{MaxActive: 6, MaxWriters: 2, MaxCreated: 3, MaxRetries: 3}},
		{"one more, the others equal", schema.ExtendBudgetInput{MaxActive: new(int64(6)), MaxWriters: new(int64(2)), MaxCreated: new(int64(3)), MaxRetries: new(int64(3))},
			schema.Limits{MaxActive: 6, MaxWriters: 2, MaxCreated: 3, MaxRetries: 3}},
		{"the largest integer", schema.ExtendBudgetInput{MaxActive: new(int64(schema.MaxInteger))}, schema.Limits{MaxActive: schema.MaxInteger, MaxWriters: 2, MaxCreated: 3, MaxRetries: 2}},
		{"writers past active", schema.ExtendBudgetInput{MaxWriters: new(int64(9))}, schema.Limits{MaxActive: 6, MaxWriters: 9, MaxCreated: 3, MaxRetries: 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			lead := newLedger(t).lead()
			test.in.Reason = "worth it"
			if got := lead.extendBudget(test.in).ok(); *got != test.want {
				t.Errorf("answered %+v, want %+v", *got, test.want)
			}
			lead.reopen()
			if got := lead.snapshot().Limits; got != test.want {
				t.Errorf("kept %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestExtendBudgetRefusals: at least one must increase and none may decrease.
func TestExtendBudgetRefusals(t *testing.T) {
	t.Parallel()
	tests := map[string]schema.ExtendBudgetInput{
		"nothing":                     {},
		"all equal":                   {MaxActive: new(int64(6)), MaxWriters: new(int64(2)), MaxCreated: new(int64(3)), MaxRetries: new(int64(2))},
		"one decreases":               {MaxActive: new(int64(5))},
		"one decreases, one grows":    {MaxActive: new(int64(9)), MaxRetries: new(int64(1))},
		"one decreases, others equal": {MaxActive: new(int64(6)), MaxWriters: new(int64(1))},
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in.Reason = "worth it"
			newLedger(t).lead().extendBudget(in).conflict(schema.ReasonLimits)
		})
	}
}

func TestExtendBudgetComparesWithThePresentLimits(t *testing.T) {
	t.Parallel()
	lead := newLedger(t).lead()
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "1", MaxActive: new(int64(9))}).ok()
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "2", MaxActive: new(int64(8))}).conflict(schema.ReasonLimits)
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "3", MaxActive: new(int64(9))}).conflict(schema.ReasonLimits)
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "4", MaxActive: new(int64(10))}).ok()
}

func TestOnlyALeadExtendsTheBudget(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.lead().task("s")
	for _, session := range []string{"s", "root", "lead"} {
		l.worker(session).extendBudget(schema.ExtendBudgetInput{Reason: "more", MaxActive: new(int64(7))}).conflict(schema.ReasonNotLead)
	}
}

func TestExtendBudgetIsOfOneRun(t *testing.T) {
	t.Parallel()
	lead := newLedger(t).lead()
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "more", MaxActive: new(int64(7))}).ok()
	if got := lead.in("run-2").snapshot().Limits; got != schema.DefaultLimits() {
		t.Errorf("another run has %+v", got)
	}
}

func TestExtendBudgetIsAudited(t *testing.T) {
	t.Parallel()
	lead := newLedger(t).lead()
	lead.extendBudget(schema.ExtendBudgetInput{Reason: " more <work> & \u2028 ", MaxActive: new(int64(7)), MaxRetries: new(int64(2))}).ok()
	audit := lead.snapshot().Audit
	want := `{"reason":" more <work> & ` + "\u2028" + ` ","before":{"max_active":6,"max_writers":2,"max_created":3,"max_retries":2},"after":{"max_active":7,"max_writers":2,"max_created":3,"max_retries":2}}`
	if len(audit) != 1 || audit[0].Action != "extendBudget" || audit[0].ReservationID != nil || string(audit[0].Details) != want ||
		audit[0].Role != schema.Lead || audit[0].SessionID != "root" || audit[0].RunID != run {
		t.Errorf("got %+v", audit)
	}
}

// TestExtendBudgetResetsNoCounter: what is used stays used.
func TestExtendBudgetResetsNoCounter(t *testing.T) {
	t.Parallel()
	lead := newLedger(t).lead()
	task := lead.task("s")
	for i := range int64(2) {
		lead.settle(lead.reserve(ask(fmt.Sprint("op-", i), task).after(i).as(schema.Retry)).ok(), neverStarted).ok()
	}
	for i := range 3 {
		lead.settle(lead.reserve(ask(fmt.Sprint("new-", i), lead.task("s")).as(schema.New)).ok(), neverStarted).ok()
	}
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "one of each", MaxCreated: new(int64(4)), MaxRetries: new(int64(3))}).ok()
	lead.settle(lead.reserve(ask("retry", task).after(2).as(schema.Retry)).ok(), neverStarted).ok()
	lead.reserve(ask("retry-2", task).after(3).as(schema.Retry)).exhausted(schema.LimitRetries, 3, 3, 1)
	lead.reserve(ask("new", lead.task("s")).as(schema.New)).ok()
	lead.reserve(ask("another new", lead.task("s")).as(schema.New)).exhausted(schema.LimitCreated, 4, 4, 1)
}

func TestLimitsOfTheOtherWriterAreObeyed(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	l.exec("INSERT INTO governor_run VALUES ('run-1', 1, 1, 1, 1)")
	lead.reserve(ask("op-1", lead.task("s"))).ok()
	lead.reserve(ask("op-2", lead.task("s"))).exhausted(schema.LimitActive, 1, 1, 1)
	l.exec("UPDATE governor_run SET max_active = 2")
	lead.reserve(ask("op-2", lead.task("s"))).ok()
}
