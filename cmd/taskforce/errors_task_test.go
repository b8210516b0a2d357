package main

import (
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

func noting(run string, task int64) schema.TaskNoteParams {
	return schema.TaskNoteParams{RunID: run, Authority: lead, Input: schema.TaskNoteInput{TaskID: task}}
}

func provokeNotFound(t *testing.T) {
	serve(t, t.TempDir()).refused(schema.ErrNotFound, "task.submit", noting("run", 1))
}

func provokeCrossRun(t *testing.T) {
	s := serve(t, t.TempDir())
	s.refused(schema.ErrCrossRun, "task.submit", noting("other", s.openTask("run", "")))
}

func provokeTerminal(t *testing.T) {
	s := serve(t, t.TempDir())
	task := s.openTask("run", "s")
	result(s, schema.CancelTask, noting("run", task))
	if e := s.refused(schema.ErrTerminal, "task.submit", noting("run", task)); e.Data.Status != schema.TaskCancelled {
		t.Errorf("the status is %q", e.Data.Status)
	}
}

func provokeStatus(t *testing.T) {
	root := t.TempDir()
	s := serve(t, root)
	task := s.openTask("run", "s")
	e := s.refused(schema.ErrStatus, "task.accept", noting("run", task))
	if e.checkReason(t, schema.ReasonState); e.Data.Status != schema.TaskClaimed {
		t.Errorf("the status is %q", e.Data.Status)
	}
	runSQL(t, root, "CREATE TABLE workflow (task_id INTEGER PRIMARY KEY); INSERT INTO workflow SELECT id FROM task")
	s.refused(schema.ErrStatus, "task.submit", noting("run", task)).checkReason(t, schema.ReasonWorkflow)
}

func provokeTaskConflict(t *testing.T) {
	s := serve(t, t.TempDir())
	p := noting("run", s.openTask("run", "s"))
	p.Authority = worker("other")
	s.refused(schema.ErrTaskConflict, "task.submit", p).checkReason(t, schema.ReasonOwner)
}

func provokeNotLead(t *testing.T) {
	s := serve(t, t.TempDir())
	p := noting("run", s.openTask("run", "s"))
	p.Authority = worker("s")
	s.refused(schema.ErrNotLead, "task.accept", p).checkReason(t, schema.ReasonNotLead)
}

func provokeInput(t *testing.T) {
	s := serve(t, t.TempDir())
	p := map[string]any{"input": map[string]any{"title": 1, "Note": "x"}, "runId": "run", "authority": lead}
	s.refused(schema.ErrInput, "task.open", p).checkViolations(t, "/input/Note", "/input/title")

	e := s.refused(schema.ErrInput, "store.transaction", schema.TransactionParams{Calls: []schema.TransactionCall{
		{Method: "task.open", Params: encode(t, schema.OpenParams{RunID: "run", Authority: lead, Input: schema.OpenInput{Title: "a task"}})},
		{Method: "task.open", Params: encode(t, p)},
	}})
	if want := (schema.FailedCall{Index: 1, Method: "task.open"}); e.Data.Call == nil || *e.Data.Call != want {
		t.Errorf("the failed call is %s, want %s", encode(t, e.Data.Call), encode(t, want))
	}

	e = s.refused(schema.ErrInput, "initialize", schema.InitializeParams{Protocol: 99})
	if e.checkReason(t, schema.ReasonProtocol); len(e.Data.Supported) != 1 || e.Data.Supported[0] != schema.Protocol {
		t.Errorf("the protocols are %v", e.Data.Supported)
	}
}
