package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// DESIGN.md, section 5, "Task rules". The task of each test has id 1 and run "run".

// everyStatus lists every status that a task can have.
var everyStatus = []schema.TaskStatus{
	schema.TaskOpen, schema.TaskClaimed, schema.TaskSubmitted, schema.TaskRejected,
	schema.TaskAccepted, schema.TaskCancelled, schema.TaskDone, schema.TaskPartial, schema.TaskFailed,
}

// who makes a call; the task is owned by "owner" or by nobody.
var who = map[string]schema.Authority{
	"lead":               {Role: schema.Lead, SessionID: "root"},
	"owner":              {Role: schema.Worker, SessionID: "owner"},
	"stranger":           {Role: schema.Worker, SessionID: "stranger"},
	"worker named lead":  {Role: schema.Worker, SessionID: "lead"},
	"owner with a space": {Role: schema.Worker, SessionID: "owner "},
}

// callOf makes a task call for somebody.
type callOf func(tx store.Tx, run string, a schema.Authority) (*schema.Task, error)

func noteCall(method func(store.Tx, *schema.TaskNoteParams) (*schema.Task, error)) callOf {
	return func(tx store.Tx, run string, a schema.Authority) (*schema.Task, error) {
		return method(tx, &schema.TaskNoteParams{Input: schema.TaskNoteInput{TaskID: 1, Note: new("a note")}, RunID: run, Authority: a})
	}
}

// claimFor claims the task for a session; for the caller's own if it is "".
func claimFor(session string) callOf {
	return func(tx store.Tx, run string, a schema.Authority) (*schema.Task, error) {
		owner := session
		if owner == "" {
			owner = a.SessionID
		}
		result, err := store.Claim(tx, &schema.ClaimParams{Input: schema.ClaimInput{TaskID: 1, Owner: "new label", OwnerSession: owner}, RunID: run, Authority: a})
		if err != nil {
			return nil, err
		}
		return &result.Task, nil
	}
}

func reject(tx store.Tx, run string, a schema.Authority) (*schema.Task, error) {
	result, err := store.Reject(tx, &schema.RejectParams{Input: schema.RejectInput{TaskID: 1, Reason: "why"}, RunID: run, Authority: a})
	if err != nil {
		return nil, err
	}
	return &result.Task, nil
}

// ledger is a store with one task.
type ledger struct {
	*sqlite.Store
	t    *testing.T
	root string
}

func newLedger(t *testing.T) *ledger {
	t.Helper()
	root := t.TempDir()
	s, err := sqlite.Open(context.Background(), root, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &ledger{s, t, root}
}

// set makes the task what a test needs; an empty owner is nobody.
func (l *ledger) set(tx store.Tx, status schema.TaskStatus, owner string) error {
	task, err := tx.Task(1)
	if err == nil && task == nil {
		task = &store.Task{Task: schema.Task{Title: "t", Note: new("opened with"), RunID: new("run"), Status: status, CreatedAt: "1", UpdatedAt: "1"}}
		err = tx.InsertTask(task)
	}
	if err != nil {
		return err
	}
	task.Status, task.Owner, task.OwnerSession, task.EvidenceGeneration = status, nil, nil, 5
	if owner != "" {
		task.Owner, task.OwnerSession = new("old label"), &owner
	}
	return tx.SaveTask(task)
}

var errUndo = errors.New("undone by the test")

// try runs a call on a task of that status and owner, and undoes it.
func (l *ledger) try(status schema.TaskStatus, owner string, call callOf, a schema.Authority) (task *schema.Task, refusal error) {
	l.t.Helper()
	err := l.Write(context.Background(), func(tx store.Tx) error {
		if err := l.set(tx, status, owner); err != nil {
			return err
		}
		task, refusal = call(tx, "run", a)
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		l.t.Fatal(err)
	}
	return task, refusal
}

// answer is the status that a call leads to, or its refusal as code and reason.
func answer(task *schema.Task, err error) string {
	var refusal *schema.Error
	switch {
	case err == nil:
		return string(task.Status)
	case errors.As(err, &refusal):
		return fmt.Sprint(refusal.Code, " ", refusal.Details.Reason)
	}
	return err.Error()
}

// The answers of the table below.
const (
	terminalTask = "E_TERMINAL "
	notOwner     = "E_TASK_CONFLICT owner"
	wrongStatus  = "E_STATUS state"
	leadOnly     = "E_NOT_LEAD not_lead"
)

// expected says what the rules answer for a task that is owned by "owner" or by
// nobody. It is the table of DESIGN.md, a call a case.
func expected(call, caller string, status schema.TaskStatus, owned bool) string {
	lead, mine := caller == "lead", caller == "owner" && owned
	among := func(list ...schema.TaskStatus) bool { return slices.Contains(list, status) }
	terminal := among(schema.TaskAccepted, schema.TaskCancelled, schema.TaskDone, schema.TaskPartial, schema.TaskFailed)
	switch call {
	case "submit":
		switch {
		case terminal:
			return terminalTask
		case !lead && !mine:
			return notOwner
		case !among(schema.TaskOpen, schema.TaskClaimed, schema.TaskSubmitted):
			return wrongStatus
		}
		return "submitted"
	case "accept":
		switch {
		case !lead:
			return leadOnly
		case terminal:
			return terminalTask
		case !among(schema.TaskSubmitted):
			return wrongStatus
		}
		return "accepted"
	case "reject":
		switch {
		case !lead:
			return leadOnly
		case !terminal && !among(schema.TaskSubmitted):
			return wrongStatus
		}
		return "rejected"
	case "cancel":
		switch {
		case terminal:
			return terminalTask
		case !lead && !mine:
			return notOwner
		}
		return "cancelled"
	case "claim for oneself":
		switch {
		case terminal:
			return terminalTask
		case lead && among(schema.TaskRejected):
			return "claimed" // whoever owned it
		case owned && caller != "owner":
			return notOwner
		case among(schema.TaskOpen, schema.TaskRejected), mine && among(schema.TaskClaimed):
			return "claimed"
		}
		return wrongStatus
	case "claim for the owner":
		switch {
		case terminal:
			return terminalTask
		case !lead && caller != "owner":
			return notOwner
		case among(schema.TaskOpen, schema.TaskRejected), owned && among(schema.TaskClaimed):
			return "claimed"
		}
		return wrongStatus
	}
	panic("no such call: " + call)
}

// TestTaskRules tries every call by every caller on every status, owned or not.
func TestTaskRules(t *testing.T) {
	t.Parallel()
	calls := map[string]callOf{
		"submit": noteCall(store.Submit), "accept": noteCall(store.Accept), "reject": reject, "cancel": noteCall(store.Cancel),
		"claim for oneself": claimFor(""), "claim for the owner": claimFor("owner"),
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			for caller, authority := range who {
				for _, status := range everyStatus {
					for _, owner := range []string{"", "owner"} {
						want := expected(name, caller, status, owner != "")
						if got := answer(l.try(status, owner, call, authority)); got != want {
							t.Errorf("%s by %s on %s owned by %q: got %q, want %q", name, caller, status, owner, got, want)
						}
					}
				}
			}
		})
	}
}

// TestScopeIsCheckedFirst: the task exists, then it belongs to the run.
func TestScopeIsCheckedFirst(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	calls := map[string]callOf{
		"submit": noteCall(store.Submit), "accept": noteCall(store.Accept), "reject": reject, "cancel": noteCall(store.Cancel), "claim": claimFor("owner"),
		"get": func(tx store.Tx, run string, a schema.Authority) (*schema.Task, error) {
			return store.Get(tx, &schema.TaskParams{Input: schema.TaskInput{TaskID: 1}, RunID: run, Authority: a})
		},
		"history": func(tx store.Tx, run string, a schema.Authority) (*schema.Task, error) {
			_, err := store.History(tx, &schema.TaskHistoryParams{Input: schema.TaskHistoryInput{TaskID: 1}, RunID: run, Authority: a})
			return nil, err
		},
	}
	check := func(run, want string) {
		t.Helper()
		for name, call := range calls {
			for caller, authority := range who {
				err := l.Read(t.Context(), func(tx store.Tx) error { _, err := call(tx, run, authority); return err })
				if got := answer(nil, err); got != want {
					t.Errorf("%s by %s: got %q, want %q", name, caller, got, want)
				}
			}
		}
	}
	check("run", "E_NOT_FOUND ")
	if err := l.Write(t.Context(), func(tx store.Tx) error { return l.set(tx, schema.TaskDone, "") }); err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"other", "run ", "Run"} {
		check(run, "E_CROSS_RUN ")
	}
	reference.Exec(t, reference.Open(t, l.root), "UPDATE task SET run_id = NULL")
	check("run", "E_CROSS_RUN ")
}
