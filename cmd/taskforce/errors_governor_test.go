package main

import (
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

func worker(session string) schema.Authority {
	return schema.Authority{Role: schema.Worker, SessionID: session}
}

func binding(r *schema.Reservation, session string) schema.BindParams {
	return schema.BindParams{RunID: r.RunID, Authority: lead, Input: schema.BindInput{
		ReservationID: r.ReservationID, Generation: r.Generation, SessionID: session,
	}}
}

func marking(r *schema.Reservation) schema.MarkUnknownParams {
	return schema.MarkUnknownParams{RunID: r.RunID, Authority: lead, Input: schema.MarkUnknownInput{
		ReservationID: r.ReservationID, Generation: r.Generation, Reason: "lost sight of it",
	}}
}

// reserve admits new work on a new task.
func (s *sidecar) reserve(run, session string, mode schema.Mode, resources ...string) *schema.Reservation {
	s.t.Helper()
	return result(s, schema.Reserve, reserving(run, s.openTask(run, session), 0, mode, schema.Reuse, resources...))
}

// reject sends the task of a reservation back once it is handed in.
func (s *sidecar) reject(run string, task int64) {
	s.t.Helper()
	result(s, schema.SubmitTask, schema.TaskNoteParams{RunID: run, Authority: lead, Input: schema.TaskNoteInput{TaskID: task}})
	result(s, schema.RejectTask, schema.RejectParams{RunID: run, Authority: lead, Input: schema.RejectInput{TaskID: task, Reason: "again"}})
}

func provokeGovernorConflict(t *testing.T) {
	root := t.TempDir()
	s := serve(t, root)
	conflict := func(reason schema.Reason, method string, params any) *wireError {
		t.Helper()
		e := s.refused(schema.ErrGovernorConflict, method, params)
		e.checkReason(t, reason)
		return e
	}
	task := s.openTask("run", "s")
	reserve := reserving("run", task, 0, schema.Read, schema.Reuse)

	invalid := reserve
	invalid.Input.TaskID, invalid.Input.OperationKey = 0, " \ufeff"
	conflict(schema.ReasonParameters, "governor.reserve", invalid).checkViolations(t, "/input/operation_key", "/input/task_id")
	stranger := reserve
	stranger.Authority = worker("other")
	conflict(schema.ReasonOwner, "governor.reserve", stranger)
	conflict(schema.ReasonTaskNotFound, "governor.reserve", reserving("run", 999, 0, schema.Read, schema.Reuse))
	conflict(schema.ReasonCrossRun, "governor.reserve", reserving("other", task, 0, schema.Read, schema.Reuse))

	r := result(s, schema.Reserve, reserve)
	if e := conflict(schema.ReasonActiveAdmission, "governor.reserve", reserving("run", task, 1, schema.Read, schema.Reuse)); e.Data.Execution == nil || e.Data.Execution.ReservationID != r.ReservationID {
		t.Errorf("the execution in the way is %s", encode(t, e.Data.Execution))
	}
	changed := reserve
	changed.Input.Mode = schema.Write
	conflict(schema.ReasonOperationKey, "governor.reserve", changed)
	conflict(schema.ReasonReservationNotFound, "governor.bind", binding(&schema.Reservation{RunID: "run", ReservationID: "x", Generation: 1}, "s"))
	conflict(schema.ReasonSession, "governor.bind", binding(r, "other"))
	result(s, schema.Bind, binding(r, "s"))
	if e := conflict(schema.ReasonProof, "governor.settle", settling(r)); e.Data.State != schema.Running {
		t.Errorf("the state in the way is %q", e.Data.State)
	}
	result(s, schema.MarkUnknown, marking(r))
	if e := conflict(schema.ReasonState, "governor.bind", binding(r, "s")); e.Data.State != schema.Unknown {
		t.Errorf("the state in the way is %q", e.Data.State)
	}

	unowned := s.reserve("run", "", schema.Read)
	conflict(schema.ReasonUnowned, "governor.bind", binding(unowned, "s"))
	result(s, schema.ClaimTask, schema.ClaimParams{RunID: "run", Authority: lead,
		Input: schema.ClaimInput{TaskID: unowned.TaskID, Owner: "late", OwnerSession: "late"}})
	captured := marking(unowned)
	captured.Authority = worker("late")
	conflict(schema.ReasonCapturedOwner, "governor.markUnknown", captured)

	result(s, schema.CancelTask, schema.TaskNoteParams{RunID: "run", Authority: lead, Input: schema.TaskNoteInput{TaskID: unowned.TaskID}})
	if e := conflict(schema.ReasonTerminalTask, "governor.bind", binding(unowned, "late")); e.Data.Status != schema.TaskCancelled {
		t.Errorf("the status in the way is %q", e.Data.Status)
	}

	two := int64(2)
	extend := schema.ExtendBudgetParams{RunID: "run", Authority: lead, Input: schema.ExtendBudgetInput{Reason: "more", MaxWriters: &two}}
	conflict(schema.ReasonLimits, "governor.extendBudget", extend)
	extend.Authority = worker("s")
	conflict(schema.ReasonNotLead, "governor.extendBudget", extend)

	managed := s.openTask("run", "s")
	runSQL(t, root, "CREATE TABLE workflow (task_id INTEGER PRIMARY KEY); INSERT INTO workflow SELECT max(id) FROM task")
	conflict(schema.ReasonWorkflow, "governor.reserve", reserving("run", managed, 0, schema.Read, schema.Reuse))
	runSQL(t, root, "INSERT INTO governor_reservation SELECT 'old', run_id, 999, 'old', payload, 1, mode, kind, state, owner_session, session_id, settlement FROM governor_reservation LIMIT 1")
	conflict(schema.ReasonAccounting, "governor.reserve", reserving("run", s.openTask("run", ""), 0, schema.Read, schema.Reuse))
	conflict(schema.ReasonAccounting, "governor.snapshot", schema.RunParams{RunID: "run"})

	s = serve(t, root, "--run", "run", "--role", "worker", "--session", "s")
	conflict(schema.ReasonPinned, "governor.reserve", reserve)
	conflict(schema.ReasonPinned, "governor.summary", schema.RunParams{RunID: "other"})
}

func provokeGovernorFence(t *testing.T) {
	s := serve(t, t.TempDir())
	fenced := func(method string, params any, fence schema.Fence, expected *int64, current int64) {
		t.Helper()
		f := s.refused(schema.ErrGovernorFence, method, params).Data.Fence
		if f == nil || f.Fence != fence || f.Current != current || (f.Expected == nil) != (expected == nil) || expected != nil && *f.Expected != *expected {
			t.Errorf("the fence is %s, want %s, expected %v, current %d", encode(t, f), fence, encode(t, expected), current)
		}
	}
	zero, one, nine := int64(0), int64(1), int64(9)
	first := s.reserve("run", "s", schema.Read)

	stale := *first
	stale.Generation = nine
	fenced("governor.markUnknown", marking(&stale), schema.FenceReservation, &nine, 1)
	fenced("governor.reserve", reserving("run", first.TaskID, 9, schema.Read, schema.Reuse), schema.FenceAdmission, &nine, 1)

	s.reject("run", first.TaskID)
	fenced("governor.bind", binding(first, "s"), schema.FenceRework, &zero, 1)
	result(s, schema.Settle, settling(first))
	result(s, schema.Reserve, reserving("run", first.TaskID, 1, schema.Read, schema.Reuse))
	fenced("governor.markUnknown", marking(first), schema.FenceAdmission, &one, 2)
}

func provokeBudgetExhausted(t *testing.T) {
	s := serve(t, t.TempDir())
	exhausted := func(p schema.ReserveParams, want schema.BudgetDetail, users int) {
		t.Helper()
		e := s.refused(schema.ErrBudgetExhausted, "governor.reserve", p)
		if e.Data.Budget == nil || len(e.Data.Budget.Users) != users {
			t.Fatalf("the budget is %s, want %d users", encode(t, e.Data.Budget), users)
		}
		got := *e.Data.Budget
		got.Users = nil
		if string(encode(t, got)) != string(encode(t, want)) {
			t.Errorf("the budget is %s, want %s", encode(t, got), encode(t, want))
		}
	}
	for range 3 {
		p := reserving("new", s.openTask("new", ""), 0, schema.Read, schema.New)
		result(s, schema.Settle, settling(result(s, schema.Reserve, p)))
	}
	exhausted(reserving("new", s.openTask("new", ""), 0, schema.Read, schema.New),
		schema.BudgetDetail{Limit: schema.LimitCreated, Max: 3, Used: 3, Requested: 1}, 0)

	task := s.openTask("retries", "s")
	for range 3 {
		s.reject("retries", task)
		result(s, schema.ClaimTask, schema.ClaimParams{RunID: "retries", Authority: lead, Input: schema.ClaimInput{TaskID: task, Owner: "s", OwnerSession: "s"}})
	}
	exhausted(reserving("retries", task, 0, schema.Read, schema.Reuse),
		schema.BudgetDetail{Limit: schema.LimitRetries, Max: 2, Used: 0, Requested: 3}, 0)

	for range 2 {
		s.reserve("active", "", schema.Write)
	}
	exhausted(reserving("active", s.openTask("active", ""), 0, schema.Write, schema.Reuse),
		schema.BudgetDetail{Limit: schema.LimitWriters, Max: 2, Used: 2, Requested: 1}, 2)
	for range 4 {
		s.reserve("active", "", schema.Read)
	}
	exhausted(reserving("active", s.openTask("active", ""), 0, schema.Read, schema.Reuse),
		schema.BudgetDetail{Limit: schema.LimitActive, Max: 6, Used: 6, Requested: 1}, 6)
}

func provokeResourceBusy(t *testing.T) {
	root := t.TempDir()
	s := serve(t, root)
	held := s.reserve("run", "s", schema.Read, "repo", "docs")
	result(s, schema.Bind, binding(held, "s"))
	reserve := reserving("other", s.openTask("other", ""), 0, schema.Write, schema.Reuse, "repo")
	holders := s.refused(schema.ErrResourceBusy, "governor.reserve", reserve).Data.Holders
	if len(holders) != 1 || holders[0].ResourceKey != "repo" || holders[0].Mode != schema.Read || holders[0].State != schema.Running {
		t.Fatalf("the holders are %s", encode(t, holders))
	}
	e := holders[0].Execution
	if e == nil || e.ReservationID != held.ReservationID || e.RunID != "run" || e.TaskID != held.TaskID || e.Since == nil ||
		e.SessionID == nil || *e.SessionID != "s" {
		t.Errorf("the holder is %s", encode(t, e))
	}

	pinned := serve(t, root, "--run", "other")
	holders = pinned.refused(schema.ErrResourceBusy, "governor.reserve", reserve).Data.Holders
	if len(holders) != 1 || holders[0].ResourceKey != "repo" || holders[0].Execution != nil {
		t.Errorf("a pinned pipe sees the holders %s", encode(t, holders))
	}
}

func provokeSchedulerCapability(t *testing.T) {
	s := serve(t, t.TempDir())
	codes := ""
	for _, b := range s.refused(schema.ErrSchedulerCapability, "governor.nativeAdapter", map[string]bool{"force": true}).Data.Blockers {
		codes += b.Code + " "
		if b.Capability == "" {
			t.Errorf("%s does not say what is missing", b.Code)
		}
	}
	if codes != "H01 H02 H03 H04 H05 H06 " {
		t.Errorf("the blockers are %s", codes)
	}
}
