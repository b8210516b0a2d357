package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A sidecar that fails on purpose at each step of a write (the tag failpoints
// of store/sqlite): what it has acknowledged must be there afterwards, what it
// has not must be there wholly or not at all, and asking again by the same key
// must not add anything.

const failpointVariable = "TASKFORCE_FAILPOINT"

// failpoints are the points, each with the times it is reached at which to
// fail. An admission is four writes and one for each resource.
var failpoints = []struct {
	point string
	at    []int
}{
	{"begin", []int{1, 2}}, {"savepoint", []int{1, 4}}, {"write", []int{1, 2, 3, 4, 5, 6, 30}},
	{"commit", []int{1, 2}}, {"committed", []int{1, 2}}, {"reply", []int{1, 7}},
}

func TestFailpoints(t *testing.T) {
	t.Parallel()
	released, failing := build(t, "cmd/taskforce"), build(t, "cmd/taskforce", "-tags", "failpoints")
	t.Run("released", func(t *testing.T) { checkHasFailpoints(t, released, false) })
	t.Run("failing", func(t *testing.T) { checkHasFailpoints(t, failing, true) })
	template := newFailpointStore(t, released)
	for _, f := range failpoints {
		for i, n := range f.at {
			for _, action := range []string{"crash", "error", "panic", "delay"} {
				if i > 0 && (action == "panic" || action == "delay") {
					continue // once a point is enough
				}
				plan := fmt.Sprintf("%s=%s@%d", f.point, action, n)
				t.Run(plan, func(t *testing.T) { template.try(t, released, failing, plan, action) })
			}
		}
	}
}

// checkHasFailpoints looks for the variable's name in a binary.
func checkHasFailpoints(t *testing.T, binary string, want bool) {
	t.Helper()
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if got := bytes.Contains(content, []byte(failpointVariable)); got != want {
		t.Errorf("failpoints %v, want %v", got, want)
	}
}

// failpointStore is a store with something to do: a task for each call.
type failpointStore struct {
	content []byte
	calls   []failpointCall
}

// failpointCall is a call that adds or changes something of one task.
type failpointCall struct {
	kind   string
	task   int64
	params any
	// admitted is the reservation that a settle is about.
	admitted string
}

const (
	failReserve  = "governor.reserve"
	failSettle   = "governor.settle"
	failReject   = "task.reject"
	failCompound = "store.transaction"
)

// newFailpointStore makes the store with the released binary.
func newFailpointStore(t *testing.T, released string) *failpointStore {
	t.Helper()
	root := t.TempDir()
	s := launch(t, exec.CommandContext(t.Context(), released, "serve", "--root", root))
	many := int64(1000)
	result(s, schema.ExtendBudget, schema.ExtendBudgetParams{RunID: "run", Authority: lead, Input: schema.ExtendBudgetInput{
		Reason: "room for every call", MaxActive: &many, MaxWriters: &many, MaxCreated: &many, MaxRetries: &many}})
	f := &failpointStore{}
	for i := range 40 {
		c := failpointCall{task: s.openTask("run", "s"), kind: []string{failReserve, failSettle, failReject, failCompound}[i%4]}
		reserve := reserving("run", c.task, 0, schema.Read, schema.New, "shared", fmt.Sprint("of task ", c.task))
		submit := schema.TaskNoteParams{RunID: "run", Authority: lead, Input: schema.TaskNoteInput{TaskID: c.task}}
		switch c.kind {
		case failReserve:
			c.params = reserve
		case failSettle:
			r := result(s, schema.Reserve, reserve)
			c.admitted, c.params = r.ReservationID, settling(r)
		case failReject:
			result(s, schema.SubmitTask, submit)
			c.params = schema.RejectParams{RunID: "run", Authority: lead, Input: schema.RejectInput{TaskID: c.task, Reason: "not good enough"}}
		case failCompound:
			c.params = schema.TransactionParams{Calls: []schema.TransactionCall{
				{Method: schema.Reserve.Name, Params: encode(t, reserve)}, {Method: schema.SubmitTask.Name, Params: encode(t, submit)}}}
		}
		f.calls = append(f.calls, c)
	}
	if status := s.end(); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	var err error
	if f.content, err = os.ReadFile(filepath.Join(root, sqlite.FileName)); err != nil {
		t.Fatal(err)
	}
	return f
}

// try makes the calls on a copy of the store with a sidecar that fails, and
// looks at what is left with one that does not.
func (f *failpointStore) try(t *testing.T, released, failing, plan, action string) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, sqlite.FileName), f.content, 0o600); err != nil {
		t.Fatal(err)
	}
	replies, status := f.load(t, failing, root, plan)
	failed := status != 0
	for i := range f.calls {
		failed = failed || replies[i] == nil || replies[i].Error != nil
	}
	if failed == (action == "delay") {
		t.Errorf("failed %v (exit status %d) by the action %s", failed, status, action)
	}
	s := launch(t, exec.CommandContext(t.Context(), released, "serve", "--root", root))
	for i, c := range f.calls {
		f.inspect(t, s, c, replies[i])
	}
	if status := s.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if output, err := exec.CommandContext(t.Context(), released, "verify", "--root", root).CombinedOutput(); err != nil {
		t.Errorf("verify: %v\n%s", err, output)
	}
}

// load makes the calls: the first alone, so that a second transaction follows
// for certain, and the others at once. Whoever gets no reply gets nil.
func (f *failpointStore) load(t *testing.T, binary, root, plan string) (replies map[int]*reply, status int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "serve", "--root", root)
	cmd.Env = append(os.Environ(), failpointVariable+"="+plan)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	replies, lines := map[int]*reply{}, bufio.NewReader(out)
	send := func(i int) {
		c := f.calls[i]
		// An error means that the sidecar is dead, which the missing reply tells.
		_, _ = fmt.Fprintf(in, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":%q,\"params\":%s}\n", i, c.kind, encode(t, c.params))
	}
	receive := func() bool {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return false
		}
		r := &reply{}
		decode(t, line, r)
		id, err := strconv.Atoi(string(r.ID))
		if err != nil {
			t.Fatalf("a reply to %s", r.ID)
		}
		replies[id] = r
		return true
	}
	send(0)
	receive()
	for i := 1; i < len(f.calls); i++ {
		send(i)
	}
	in.Close()
	for receive() {
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait() // its status is what matters
	return replies, cmd.ProcessState.ExitCode()
}

// inspect looks at what a call has left, and repeats it if that is harmless.
func (f *failpointStore) inspect(t *testing.T, s *sidecar, c failpointCall, r *reply) {
	t.Helper()
	acknowledged := r != nil && r.Error == nil
	admitted := admissionOf(t, s, c.task)
	task := result(s, schema.GetTask, schema.TaskParams{RunID: "run", Authority: lead, Input: schema.TaskInput{TaskID: c.task}})
	var done bool
	switch c.kind {
	case failReserve:
		done = admitted != nil
	case failSettle:
		done = admitted.State == schema.Settled
	case failReject:
		done = task.EvidenceGeneration == 1
		if done != (task.Status == schema.TaskRejected) {
			t.Errorf("task %d is %s at generation %d", c.task, task.Status, task.EvidenceGeneration)
		}
	case failCompound:
		done = admitted != nil
		if done != (task.Status == schema.TaskSubmitted) {
			t.Errorf("a transaction has left task %d %s, admitted %v", c.task, task.Status, done)
		}
	}
	if acknowledged && !done {
		t.Errorf("%s of task %d was acknowledged and is not there", c.kind, c.task)
	}
	if c.kind == failReject {
		return
	}
	for range 2 {
		again := s.call(c.kind, c.params)
		if again.Error != nil {
			t.Fatalf("%s of task %d, repeated: %s", c.kind, c.task, again.Error.Message)
		}
		id := admissionIn(t, c.kind, again.Result)
		if acknowledged && id != admissionIn(t, c.kind, r.Result) || admitted != nil && id != admitted.ReservationID {
			t.Errorf("%s of task %d is another admission when it is repeated", c.kind, c.task)
		}
		admitted = admissionOf(t, s, c.task)
	}
}

// admissionOf is the one admission of the task, nil if there is none.
func admissionOf(t *testing.T, s *sidecar, task int64) (admitted *schema.Reservation) {
	t.Helper()
	page := result(s, schema.History, schema.HistoryParams{RunID: "run", View: schema.ViewReservations, Limit: 1000})
	text, err := json.Marshal(page.Items)
	if err != nil {
		t.Fatal(err)
	}
	var list []schema.Reservation
	decode(t, text, &list)
	for _, r := range list {
		if r.TaskID != task {
			continue
		}
		if admitted != nil {
			t.Errorf("task %d was admitted twice", task)
		}
		admitted = &r
	}
	return admitted
}

// admissionIn is the identity of the reservation in a call's result.
func admissionIn(t *testing.T, kind string, text jsontext.Value) string {
	t.Helper()
	if kind == failCompound {
		var results schema.TransactionResult
		decode(t, text, &results)
		text = results.Results[0]
	}
	var r schema.Reservation
	decode(t, text, &r)
	return r.ReservationID
}
