package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// What task calls change, beside the status.

// do runs a task call that must succeed.
func do[P, R any](l *ledger, method func(store.Tx, *P) (*R, error), p P) *R {
	l.t.Helper()
	var result *R
	err := l.Write(context.Background(), func(tx store.Tx) (err error) {
		result, err = method(tx, &p)
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return result
}

func as[I any](caller string, in I) schema.Call[I] {
	return schema.Call[I]{Input: in, RunID: "run", Authority: who[caller]}
}

func TestOpenedTaskIsUnowned(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	for i, caller := range []string{"lead", "stranger"} {
		task := do(l, store.Open, as(caller, schema.OpenInput{Title: " title ", Note: new("")}))
		if task.TaskID != int64(i+1) || task.Title != " title " || task.Note == nil || *task.Note != "" || task.Status != schema.TaskOpen ||
			task.Owner != nil || task.OwnerSession != nil || *task.RunID != "run" || task.EvidenceGeneration != 0 || task.CreatedAt != task.UpdatedAt {
			t.Errorf("got %+v", *task)
		}
		if got := do(l, store.Get, as(caller, schema.TaskInput{TaskID: task.TaskID})); *got.RunID != "run" || got.Title != " title " {
			t.Errorf("kept %+v", *got)
		}
	}
	if task := do(l, store.Open, as("lead", schema.OpenInput{Title: "t"})); task.Note != nil {
		t.Errorf("a note out of nowhere: %q", *task.Note)
	}
}

func TestClaimSetsTheOwner(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	do(l, store.Open, as("lead", schema.OpenInput{Title: "t"}))
	claim := func(caller, label, session string) *schema.ClaimResult {
		return do(l, store.Claim, as(caller, schema.ClaimInput{TaskID: 1, Owner: label, OwnerSession: session}))
	}
	got := claim("owner", "first", "owner")
	if got.Already || *got.Owner != "first" || *got.OwnerSession != "owner" || got.Status != schema.TaskClaimed {
		t.Errorf("got %+v", got.Task)
	}
	if again := claim("lead", "second", "owner"); !again.Already || *again.Owner != "first" || again.UpdatedAt != got.UpdatedAt {
		t.Errorf("claimed again: %t, %+v", again.Already, again.Task)
	}
	do(l, store.Submit, as("owner", schema.TaskNoteInput{TaskID: 1}))
	do(l, store.Reject, as("lead", schema.RejectInput{TaskID: 1, Reason: "r"}))
	if back := claim("owner", "third", "owner"); back.Already || *back.Owner != "first" || back.EvidenceGeneration != 1 {
		t.Errorf("reclaimed: %t, %+v", back.Already, back.Task)
	}
	do(l, store.Submit, as("owner", schema.TaskNoteInput{TaskID: 1}))
	do(l, store.Reject, as("lead", schema.RejectInput{TaskID: 1, Reason: "r"}))
	if other := claim("lead", "fourth", "stranger"); other.Already || *other.Owner != "fourth" || *other.OwnerSession != "stranger" || other.EvidenceGeneration != 2 {
		t.Errorf("reassigned: %t, %+v", other.Already, other.Task)
	}
}

// TestUnownedRejectedTaskIsClaimedByAWorker.
func TestUnownedRejectedTaskIsClaimedByAWorker(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	do(l, store.Open, as("lead", schema.OpenInput{Title: "t"}))
	do(l, store.Submit, as("lead", schema.TaskNoteInput{TaskID: 1}))
	do(l, store.Reject, as("lead", schema.RejectInput{TaskID: 1, Reason: "r"}))
	got := do(l, store.Claim, as("stranger", schema.ClaimInput{TaskID: 1, Owner: "label", OwnerSession: "stranger"}))
	if got.Already || *got.OwnerSession != "stranger" || got.Status != schema.TaskClaimed || got.EvidenceGeneration != 1 {
		t.Errorf("got %+v", got.Task)
	}
}

// TestOnlyRejectMovesTheEvidenceGeneration, from submitted and from every terminal status.
func TestOnlyRejectMovesTheEvidenceGeneration(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	do(l, store.Open, as("lead", schema.OpenInput{Title: "t"}))
	for _, status := range everyStatus {
		if status != schema.TaskSubmitted && !status.Terminal() {
			continue
		}
		if err := l.Write(t.Context(), func(tx store.Tx) error { return l.set(tx, status, "owner") }); err != nil {
			t.Fatal(err)
		}
		got := do(l, store.Reject, as("lead", schema.RejectInput{TaskID: 1, Reason: "r"}))
		if got.EvidenceGeneration != 6 || got.Reopened != status.Terminal() || got.Status != schema.TaskRejected || *got.OwnerSession != "owner" {
			t.Errorf("from %s: reopened %t, %+v", status, got.Reopened, got.Task)
		}
	}
	for name, call := range map[string]callOf{"submit": noteCall(store.Submit), "cancel": noteCall(store.Cancel), "claim": claimFor("owner")} {
		if task, err := l.try(schema.TaskOpen, "owner", call, who["lead"]); err != nil || task.EvidenceGeneration != 5 {
			t.Errorf("%s: %+v, %v", name, task, err)
		}
	}
}

// TestEveryChangeLeavesAnEvent: who, what, from, to, generation, note or reason.
// A claim that changes nothing, and a refusal, leave none.
func TestEveryChangeLeavesAnEvent(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	do(l, store.Open, as("stranger", schema.OpenInput{Title: "t", Note: new("opened with")}))
	claim := as("owner", schema.ClaimInput{TaskID: 1, Owner: "label", OwnerSession: "owner"})
	do(l, store.Claim, claim)
	do(l, store.Claim, claim)
	do(l, store.Submit, as("owner", schema.TaskNoteInput{TaskID: 1, Note: new("done?")}))
	do(l, store.Submit, as("owner", schema.TaskNoteInput{TaskID: 1}))
	do(l, store.Reject, as("lead", schema.RejectInput{TaskID: 1, Reason: "no"}))
	do(l, store.Claim, claim)
	do(l, store.Submit, as("lead", schema.TaskNoteInput{TaskID: 1}))
	do(l, store.Accept, as("lead", schema.TaskNoteInput{TaskID: 1, Note: new("yes")}))
	do(l, store.Reject, as("lead", schema.RejectInput{TaskID: 1, Reason: "after all not"}))
	do(l, store.Cancel, as("owner", schema.TaskNoteInput{TaskID: 1, Note: new("enough")}))
	refused := l.Write(t.Context(), func(tx store.Tx) error {
		_, err := store.Cancel(tx, new(as("lead", schema.TaskNoteInput{TaskID: 1})))
		return err
	})
	if refused == nil {
		t.Error("a cancelled task was cancelled")
	}

	page := do(l, store.History, as("stranger", schema.TaskHistoryInput{TaskID: 1}))
	var got []string
	for _, e := range page.Items {
		from, note := "-", "-"
		if e.From != nil {
			from = string(*e.From)
		}
		if e.Note != nil {
			note = *e.Note
		}
		got = append(got, fmt.Sprintf("%s %s/%s %s>%s %d %s", e.Action, e.Role, e.SessionID, from, e.To, e.EvidenceGeneration, note))
	}
	want := []string{
		"open worker/stranger ->open 0 -",
		"claim worker/owner open>claimed 0 -",
		"submit worker/owner claimed>submitted 0 done?",
		"submit worker/owner submitted>submitted 0 -",
		"reject lead/root submitted>rejected 1 no",
		"claim worker/owner rejected>claimed 1 -",
		"submit lead/root claimed>submitted 1 -",
		"accept lead/root submitted>accepted 1 yes",
		"reject lead/root accepted>rejected 2 after all not",
		"cancel worker/owner rejected>cancelled 2 enough",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	task := do(l, store.Get, as("lead", schema.TaskInput{TaskID: 1}))
	if *task.Note != "opened with" {
		t.Errorf("the task's note became %q", *task.Note)
	}
	if last := page.Items[len(page.Items)-1]; last.CreatedAt != task.UpdatedAt {
		t.Errorf("changed at %s, recorded at %s", task.UpdatedAt, last.CreatedAt)
	}
}

func TestPagesOfTasksAndEvents(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	for range 5 {
		do(l, store.Open, as("lead", schema.OpenInput{Title: "t"}))
	}
	for range 4 {
		do(l, store.Submit, as("lead", schema.TaskNoteInput{TaskID: 3}))
	}
	for limit, want := range map[int64]int{0: 1, 1: 5, 2: 3, 4: 2, 5: 1, 1000: 1} {
		after, ids, pages := int64(0), []int64{}, 0
		for next := new(int64); next != nil; pages++ {
			page := do(l, store.List, as("stranger", schema.ListInput{After: after, Limit: limit}))
			for _, task := range page.Items {
				ids = append(ids, task.TaskID)
			}
			if next = page.Next; next != nil {
				after = *next
			}
		}
		if !slices.Equal(ids, []int64{1, 2, 3, 4, 5}) || pages != want {
			t.Errorf("by %d: %d pages of %v, want %d", limit, pages, ids, want)
		}
	}
	submitted := do(l, store.List, as("lead", schema.ListInput{Status: schema.TaskSubmitted}))
	if len(submitted.Items) != 1 || submitted.Items[0].TaskID != 3 || submitted.Next != nil {
		t.Errorf("submitted: %+v", submitted)
	}
	events := do(l, store.History, as("lead", schema.TaskHistoryInput{TaskID: 3, Limit: 2}))
	rest := do(l, store.History, as("lead", schema.TaskHistoryInput{TaskID: 3, Limit: 3, After: *events.Next}))
	if len(events.Items) != 2 || events.Items[0].Action != "open" || len(rest.Items) != 3 || rest.Next != nil {
		t.Errorf("events: %+v, then %+v", events, rest)
	}
}
