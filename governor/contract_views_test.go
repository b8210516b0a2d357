package governor_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
)

// DESIGN.md, section 5: check, summary, history, runs.

func TestCheckForeseesTheAdmissionAndItsCharge(t *testing.T) {
	t.Parallel()
	lead := newLedger(t).lead()
	task := lead.task("s")
	lead.rework(task, "s")
	lead.settle(lead.reserve(ask("op-1", task)).ok(), neverStarted).ok()
	lead.rework(task, "s")

	result := lead.check(ask("op-2", task).after(1).as(schema.Retry)).unchanged()
	want := schema.Charge{ReworkGeneration: 2, RetryCharge: 1, RetryTotal: 1}
	if !result.Admissible || result.Replay != nil || result.Charge == nil || *result.Charge != want || len(result.Obstacles) != 0 {
		t.Errorf("got %+v", result)
	}
}

func TestCheckForeseesTheReplay(t *testing.T) {
	t.Parallel()
	lead := newLedger(t).lead()
	a := ask("op", lead.task("s"))
	r := lead.reserve(a).ok()
	result := lead.check(a).unchanged()
	if !result.Admissible || result.Replay == nil || result.Replay.ReservationID != r.ReservationID || len(result.Obstacles) != 0 {
		t.Errorf("got %+v", result)
	}
}

func TestCheckTellsAStrangerNothingMore(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	a := ask("op", lead.task("s"))
	lead.reserve(a).ok()
	tests := map[string]struct {
		who  caller
		what asking
		want schema.Reason
	}{
		"no task":    {lead, ask("op", 99), schema.ReasonTaskNotFound},
		"other run":  {lead.in("run-2"), a, schema.ReasonCrossRun},
		"other work": {l.worker("s-2"), a, schema.ReasonOwner},
		"used key":   {lead, a.writing("x"), schema.ReasonOperationKey},
	}
	for name, test := range tests {
		result := test.who.check(test.what).unchanged()
		if result.Admissible || result.Charge != nil || len(result.Obstacles) != 1 || result.Obstacles[0].Reason != test.want {
			t.Errorf("%s: got %+v", name, result)
		}
	}
}

// TestCheckExplainsLikeReserve: the same message and details.
func TestCheckExplainsLikeReserve(t *testing.T) {
	t.Parallel()
	lead := newLedger(t).lead()
	for i := range 2 {
		lead.reserve(ask(fmt.Sprint("op-", i), lead.task("s")).writing(fmt.Sprint("repo-", i))).ok()
	}
	for _, a := range []asking{
		ask("writer", lead.task("s")).writing(),
		ask("reader", lead.task("s")).reading("repo-1"),
		ask("stale", lead.task("s")).after(3),
	} {
		obstacle := lead.check(a).unchanged().Obstacles[0]
		refusal := refusalOf(t, lead.reserve(a))
		foreseen, err := schema.Encode(obstacle.ErrorData)
		if err != nil {
			t.Fatal(err)
		}
		answered, err := schema.Encode(refusal.Data())
		if err != nil {
			t.Fatal(err)
		}
		if obstacle.Message != refusal.Message || string(foreseen) != string(answered) {
			t.Errorf("check: %s %s\nreserve: %s %s", obstacle.Message, foreseen, refusal.Message, answered)
		}
	}
}

// TestSummary holds one of everything that is active; its shape is the golden file's.
func TestSummary(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s-1")
	lead.rework(task, "s-1")
	lead.settle(lead.reserve(ask("settled", task).as(schema.New).writing("repo")).ok(), neverStarted).ok()
	running := l.worker("s-1").reserve(ask("running", task).after(1).as(schema.New).writing("repo")).ok()
	lead.bind(running, "s-1").ok()
	lead.markUnknown(lead.reserve(ask("unknown", lead.task("")).reading("doc", "api")).ok()).ok()
	golden(t, "summary", lead.summary())
}

// TestSummaryNeverGoesBelowNothing: a migrated run can be past its limits.
func TestSummaryNeverGoesBelowNothing(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	for i := range 3 {
		a := ask(fmt.Sprint("op-", i), lead.task("s")).as(schema.New)
		if i < 2 {
			a = a.writing()
		}
		lead.reserve(a).ok()
	}
	l.exec("INSERT INTO governor_run VALUES ('run-1', 2, 1, 1, 1)", "UPDATE governor_retry_charge SET retry_charge = 5")
	l.reopen()
	s := lead.summary()
	if s.Remaining != (schema.Remaining{}) || s.Retries[0].Remaining != 0 || s.Retries[0].Charged != 5 {
		t.Errorf("got %+v", s)
	}
}

// pages reads a view page by page and returns a name for each item.
func pages(lead caller, view schema.HistoryView, limit int64) (names []string, count int) {
	lead.t.Helper()
	after := int64(0)
	for {
		page := call(lead.ledger, governor.History, schema.HistoryParams{RunID: lead.run, View: view, After: after, Limit: limit}).unchanged()
		count++
		switch items := page.Items.(type) {
		case []schema.Reservation:
			for _, r := range items {
				names = append(names, r.ReservationID)
			}
		case []schema.RetryCharge:
			for _, c := range items {
				names = append(names, c.ReservationID)
			}
		case []schema.AuditEntry:
			for _, e := range items {
				names = append(names, text(e.ReservationID))
			}
		}
		if page.View != view {
			lead.t.Fatalf("asked for %s, got %s", view, page.View)
		}
		if page.Next == nil {
			return names, count
		}
		after = *page.Next
	}
}

func TestHistoryPages(t *testing.T) {
	t.Parallel()
	lead := newLedger(t).lead()
	other := lead.in("run-2")
	var want []string
	for i := range 5 {
		r := lead.reserve(ask(fmt.Sprint("op-", i), lead.task("s"))).ok()
		other.settle(other.reserve(ask(fmt.Sprint("op-", i), other.task("s"))).ok(), neverStarted).ok()
		want = append(want, r.ReservationID)
	}
	for _, view := range []schema.HistoryView{schema.ViewReservations, schema.ViewRetryCharges, schema.ViewAudit} {
		for limit, wantPages := range map[int64]int{0: 1, 1: 5, 2: 3, 4: 2, 5: 1, 1000: 1} {
			got, count := pages(lead, view, limit)
			if !slices.Equal(got, want) || count != wantPages {
				t.Errorf("%s by %d: %d pages of %v, want %d of %v", view, limit, count, got, wantPages, want)
			}
		}
	}
}

func TestEmptyHistory(t *testing.T) {
	t.Parallel()
	lead := newLedger(t).lead()
	for _, view := range []schema.HistoryView{schema.ViewReservations, schema.ViewRetryCharges, schema.ViewAudit} {
		page := call(lead.ledger, governor.History, schema.HistoryParams{RunID: run, View: view}).unchanged()
		encoded, err := schema.Encode(page)
		if want := `{"view":"` + string(view) + `","items":[],"next":null}`; err != nil || string(encoded) != want {
			t.Errorf("got %s, %v, want %s", encoded, err, want)
		}
	}
}

func runsAfter(lead caller, after string, limit int64) (keys []string, next *string) {
	lead.t.Helper()
	page := call(lead.ledger, governor.Runs, schema.RunsParams{After: after, Limit: limit}).unchanged()
	for _, item := range page.Items {
		keys = append(keys, item.RunID)
	}
	return keys, page.Next
}

// TestRuns lists runs that have a task, a reservation or limits, in the order of their bytes.
func TestRuns(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	keys := []string{" a", "A", "a", "a ", "\u00e9", "\uffee", "\U0001f600"}
	for i, key := range keys {
		switch who := lead.in(key); i % 3 {
		case 0:
			who.task("")
		case 1:
			who.extendBudget(schema.ExtendBudgetInput{Reason: "r", MaxActive: new(int64(7))}).ok()
		default:
			who.reserve(ask("op", who.task("s")).as(schema.New).writing()).ok()
		}
	}
	for _, limit := range []int64{0, 7, 8} {
		if got, next := runsAfter(lead, "", limit); !slices.Equal(got, keys) || next != nil {
			t.Errorf("by %d: got %q, then %v", limit, got, next)
		}
	}
	var got []string
	for after := ""; ; {
		page, next := runsAfter(lead, after, 2)
		got = append(got, page...)
		if next == nil {
			break
		}
		after = *next
	}
	if !slices.Equal(got, keys) {
		t.Errorf("page by page %q", got)
	}

	page := call(l, governor.Runs, schema.RunsParams{After: "A", Limit: 1}).unchanged()
	want := schema.Run{RunID: "a", Limits: schema.DefaultLimits(), Used: schema.Usage{Active: 1, Writers: 1, Created: 1}}
	if len(page.Items) != 1 || page.Items[0] != want {
		t.Errorf("got %+v", page.Items)
	}
}

func TestRunsOfAnEmptyStore(t *testing.T) {
	t.Parallel()
	if got, next := runsAfter(newLedger(t).lead(), "", 0); got != nil || next != nil {
		t.Errorf("got %q, then %v", got, next)
	}
}

func refusalOf[R any](t *testing.T, o outcome[R]) *schema.Error {
	t.Helper()
	var refusal *schema.Error
	if !errors.As(o.err, &refusal) {
		t.Fatalf("not refused: %v", o.err)
	}
	return refusal
}
