package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// provocations hold for each code of the error table a test that provokes it in
// a real sidecar and checks what the host learns. Some need an operating system.
var provocations = map[schema.Code]func(*testing.T){
	schema.ErrGovernorConflict:    provokeGovernorConflict,
	schema.ErrGovernorFence:       provokeGovernorFence,
	schema.ErrBudgetExhausted:     provokeBudgetExhausted,
	schema.ErrResourceBusy:        provokeResourceBusy,
	schema.ErrSchedulerCapability: provokeSchedulerCapability,

	schema.ErrStoreBusy:    provokeStoreBusy,
	schema.ErrStoreCorrupt: provokeStoreCorrupt,
	schema.ErrStoreVersion: provokeStoreVersion,
	schema.ErrStoreConfig:  provokeStoreConfig,
	schema.ErrStoreUnknown: provokeStoreUnknown,

	schema.ErrNotFound:     provokeNotFound,
	schema.ErrCrossRun:     provokeCrossRun,
	schema.ErrTerminal:     provokeTerminal,
	schema.ErrStatus:       provokeStatus,
	schema.ErrTaskConflict: provokeTaskConflict,
	schema.ErrNotLead:      provokeNotLead,
	schema.ErrInput:        provokeInput,

	schema.ErrParse:          provokeParse,
	schema.ErrInvalidRequest: provokeInvalidRequest,
	schema.ErrMethodNotFound: provokeMethodNotFound,
	schema.ErrCancelled:      provokeCancelled,
	schema.ErrShuttingDown:   provokeShuttingDown,
}

// unprovoked says of the other codes why no host can provoke them.
var unprovoked = map[schema.Code]string{
	schema.ErrStoreClosed: "a sidecar closes its store after the last reply",
	schema.ErrInternal:    "it is the answer to a fault of the sidecar, and none is known",
}

func TestErrorTable(t *testing.T) {
	t.Parallel()
	for _, spec := range schema.Codes {
		provoke, reason := provocations[spec.Code], unprovoked[spec.Code]
		switch {
		case (provoke == nil) == (reason == ""):
			t.Errorf("%s must be provoked, or it must be said why it cannot be", spec.Code)
		case provoke != nil:
			t.Run(string(spec.Code), func(t *testing.T) {
				t.Parallel()
				provoke(t)
			})
		}
	}
}

func provokeParse(t *testing.T) {
	s := serve(t, t.TempDir())
	for _, frame := range []string{`{"jsonrpc":"2.0","id":1,`, `{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}`, `"\ud800"`} {
		s.write(frame + "\n")
		if r := s.receive(); string(r.ID) != "null" {
			t.Errorf("%s is answered under the id %s", frame, r.ID)
		} else {
			r.refused(t, schema.ErrParse)
		}
	}
	result(s, schema.Ping, schema.NoParams{})
}

func provokeInvalidRequest(t *testing.T) {
	root := t.TempDir()
	s := serve(t, root)
	s.write(`{"jsonrpc":"1.0","id":"a","method":"ping"}` + "\n")
	if r := s.receive(); string(r.ID) != `"a"` {
		t.Errorf("a wrong version is answered under the id %s", r.ID)
	} else {
		r.refused(t, schema.ErrInvalidRequest)
	}

	task := s.openTask("run", "")
	release := lockStore(t, root)
	id := s.send(schema.Reserve.Name, reserving("run", task, 0, schema.Read, schema.Reuse))
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d.0,"method":"ping"}`+"\n", id))
	if r := s.receive(); string(r.ID) != "null" {
		t.Errorf("an id in flight is answered under the id %s", r.ID)
	} else if e := r.refused(t, schema.ErrInvalidRequest); string(e.Data.ID) != fmt.Sprintf("%d.0", id) {
		t.Errorf("the data names the id %s", e.Data.ID)
	}
	release()
	accepted[schema.Reservation](t, s.receive())
}

func provokeMethodNotFound(t *testing.T) {
	s := serve(t, t.TempDir())
	s.refused(schema.ErrMethodNotFound, "governor.dispatch", schema.NoParams{})
	e := s.refused(schema.ErrMethodNotFound, schema.Transaction.Name, schema.TransactionParams{Calls: []schema.TransactionCall{
		{Method: schema.Ping.Name, Params: encode(t, schema.NoParams{})},
	}})
	if want := (schema.FailedCall{Index: 0, Method: "ping"}); e.Data.Call == nil || *e.Data.Call != want {
		t.Errorf("the failed call is %s, want %s", encode(t, e.Data.Call), encode(t, want))
	}
}

// A queued request is dropped; the one before it has begun and reports its outcome.
func provokeCancelled(t *testing.T) {
	root := t.TempDir()
	s := serve(t, root)
	task := s.openTask("run", "")
	release := lockStore(t, root)
	begun := s.send(schema.Reserve.Name, reserving("run", task, 0, schema.Read, schema.Reuse))
	dropped := s.send(schema.OpenTask.Name, schema.OpenParams{RunID: "run", Authority: lead, Input: schema.OpenInput{Title: "dropped"}})
	s.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%d}}`+"\n", dropped))
	replies := s.receiveUntil(s.send(schema.Ping.Name, schema.NoParams{})) // it is read after the cancellation
	release()
	for len(replies) < 3 {
		s.receiveInto(replies)
	}
	accepted[schema.Reservation](t, replies[begun])
	replies[dropped].refused(t, schema.ErrCancelled)
	if tasks := result(s, schema.ListTasks, schema.ListParams{RunID: "run", Authority: lead}); len(tasks.Items) != 1 {
		t.Errorf("%d tasks, want the one from before", len(tasks.Items))
	}
}

func provokeShuttingDown(t *testing.T) {
	s := serve(t, t.TempDir())
	if r := s.call(schema.Shutdown.Name, schema.NoParams{}); r.Error != nil || string(r.Result) != "null" {
		t.Fatalf("shutdown is answered %s", r.Result)
	}
	s.refused(schema.ErrShuttingDown, schema.Ping.Name, schema.NoParams{})
	s.refused(schema.ErrShuttingDown, schema.GetSummary.Name, schema.RunParams{RunID: "run"})
}

// checkReason checks the reason token of a refusal.
func (e *wireError) checkReason(t *testing.T, want schema.Reason) {
	t.Helper()
	if e.Data.Reason != want {
		t.Errorf("%s has the reason %q, want %q: %s", e.Data.Code, e.Data.Reason, want, e.Message)
	}
}

// checkViolations checks that exactly these members are complained of.
func (e *wireError) checkViolations(t *testing.T, pointers ...string) {
	t.Helper()
	e.checkReason(t, schema.ReasonParameters)
	var got []string
	for _, v := range e.Data.Violations {
		if v.Rule == "" || v.Message == "" {
			t.Errorf("the violation %s does not explain itself", encode(t, v))
		}
		got = append(got, v.Pointer)
	}
	if !slices.Equal(got, pointers) {
		t.Errorf("violations at %q, want %q", got, pointers)
	}
}
