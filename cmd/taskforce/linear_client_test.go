package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"github.com/dsh-taskforce/sidecar/governor/model"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json"
)

// linearSlot is a place where a sidecar runs; another takes its place when it is killed.
type linearSlot struct {
	binary string
	// store are the flags that say where the store is.
	store       []string
	environment []string

	mu      sync.Mutex
	sidecar *linearSidecar
}

// linearSidecar is a `taskforce serve` that several clients use at once.
type linearSidecar struct {
	cmd *exec.Cmd
	in  io.WriteCloser

	mu      sync.Mutex
	last    int
	waiting map[string]chan *reply // nil after the end of its output
	ended   chan struct{}
}

// get returns the living sidecar of the slot.
func (s *linearSlot) get() (*linearSidecar, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sidecar != nil {
		select {
		case <-s.sidecar.ended:
		default:
			return s.sidecar, nil
		}
	}
	var err error
	s.sidecar, err = startLinearSidecar(s.binary, s.store, s.environment)
	return s.sidecar, err
}

// end closes the slot's sidecar in good order.
func (s *linearSlot) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sidecar != nil {
		s.sidecar.in.Close()
		<-s.sidecar.ended
	}
}

func startLinearSidecar(binary string, store, environment []string) (*linearSidecar, error) {
	s := &linearSidecar{cmd: exec.Command(binary, append([]string{"serve"}, store...)...), waiting: map[string]chan *reply{}, ended: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), environment...)
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go s.read(bufio.NewReader(out))
	return s, nil
}

// read hands replies to whoever waits for them, and nil to whoever still waits at the end.
func (s *linearSidecar) read(out *bufio.Reader) {
	defer close(s.ended)
	for {
		line, err := out.ReadBytes('\n')
		r := &reply{}
		if err != nil || json.Unmarshal(line, r) != nil {
			break
		}
		s.mu.Lock()
		s.waiting[string(r.ID)] <- r
		delete(s.waiting, string(r.ID))
		s.mu.Unlock()
	}
	_ = s.cmd.Wait() // it was killed, or told to end
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, waiting := range s.waiting {
		waiting <- nil
	}
	s.waiting = nil
}

// mustCall makes a call that must succeed.
func (s *linearSidecar) mustCall(c model.Call) (*reply, error) {
	r, err := s.call(c)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, fmt.Errorf("%s: the sidecar has ended", c.Method)
	case r.Error != nil:
		return nil, fmt.Errorf("%s: %s", c.Method, r.Error.Message)
	}
	return r, nil
}

// call returns the reply, nil if the sidecar died first.
func (s *linearSidecar) call(c model.Call) (*reply, error) {
	params, err := schema.Encode(c.Params)
	if err != nil {
		return nil, err
	}
	answer := make(chan *reply, 1)
	s.mu.Lock()
	if s.waiting == nil {
		s.mu.Unlock()
		return nil, nil
	}
	s.last++
	id := strconv.Itoa(s.last)
	s.waiting[id] = answer
	// An error means that the sidecar is dead, which the reader will notice.
	_, _ = fmt.Fprintf(s.in, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":%q,\"params\":%s}\n", id, c.Method, params)
	s.mu.Unlock()
	return <-answer, nil
}

// linearClient makes random calls, one after another, on the sidecar of its slot.
type linearClient struct {
	number  int
	random  *rand.Rand
	slot    *linearSlot
	history *linearHistory
	tasks   []linearTask
	keys    int
}

// linearTask is a task that the clients contend for.
type linearTask struct {
	id           int64
	run, session string
}

// run makes calls, and kills the sidecar now and then just after it has
// answered: other clients have calls in flight then, and what was answered must last.
func (c *linearClient) run(calls int) error {
	for range calls {
		s, err := c.slot.get()
		if err != nil {
			return err
		}
		sent := c.history.send(c.number, c.draw())
		r, err := s.call(sent.Call)
		if err != nil {
			return err
		}
		if r != nil && c.random.IntN(30) == 0 {
			_ = s.cmd.Process.Kill() // an error if another client was faster
			<-s.ended
		}
		if err := c.history.answer(sent, r); err != nil {
			return err
		}
	}
	return nil
}

func pickAny[V any](r *rand.Rand, values ...V) V { return values[r.IntN(len(values))] }

// draw draws a call. What the clients know of each other is always a little old.
func (c *linearClient) draw() model.Call {
	h, r := c.history, c.random
	h.mu.Lock()
	admitted, asked := latest(h.admitted), latest(h.asked)
	task := c.tasks[r.IntN(len(c.tasks))]
	generation := h.generations[task.id]
	h.mu.Unlock()
	switch n := r.IntN(20); {
	case n < 8:
		return model.Call{Method: schema.Reserve.Name, Params: c.reserve(task, generation)}
	case n < 9 && len(asked) > 0: // as a client does that was not answered
		return model.Call{Method: schema.Reserve.Name, Params: pickAny(r, asked...)}
	case n < 15 && len(admitted) > 0:
		return c.transition(pickAny(r, admitted...))
	case n < 16:
		limit := int64(3 + r.IntN(6))
		return model.Call{Method: schema.ExtendBudget.Name, Params: schema.ExtendBudgetParams{RunID: task.run, Authority: lead,
			Input: schema.ExtendBudgetInput{Reason: "more", MaxCreated: &limit}}}
	case n < 18:
		return c.rework(task)
	}
	return model.Call{Method: schema.GetSnapshot.Name, Params: schema.RunParams{RunID: task.run}}
}

func (c *linearClient) by(session string) schema.Authority {
	if c.random.IntN(3) > 0 {
		return lead
	}
	return schema.Authority{Role: schema.Worker, SessionID: session}
}

func (c *linearClient) reserve(task linearTask, generation int64) schema.ReserveParams {
	c.keys++
	r := c.random
	resources := []string{}
	for _, key := range []string{"a", "b"} {
		if r.IntN(3) == 0 {
			resources = append(resources, key)
		}
	}
	return schema.ReserveParams{RunID: task.run, Authority: c.by(task.session), Input: schema.ReserveInput{
		OperationKey: fmt.Sprintf("%d of client %d", c.keys, c.number), TaskID: task.id, Generation: generation,
		Mode: pickAny(r, schema.Read, schema.Write), Kind: pickAny(r, schema.Reuse, schema.Reuse, schema.New, schema.Retry), Resources: resources,
	}}
}

func (c *linearClient) transition(of schema.Reservation) model.Call {
	session := ""
	for _, task := range c.tasks {
		if task.id == of.TaskID {
			session = task.session
		}
	}
	by := c.by(session)
	switch c.random.IntN(6) {
	case 0:
		return model.Call{Method: schema.Bind.Name, Params: schema.BindParams{RunID: of.RunID, Authority: by,
			Input: schema.BindInput{ReservationID: of.ReservationID, Generation: of.Generation, SessionID: session}}}
	case 1:
		return model.Call{Method: schema.MarkUnknown.Name, Params: schema.MarkUnknownParams{RunID: of.RunID, Authority: by,
			Input: schema.MarkUnknownInput{ReservationID: of.ReservationID, Generation: of.Generation, Reason: "lost"}}}
	}
	proof := pickAny(c.random, schema.Proof{Kind: schema.NeverStarted},
		schema.Proof{Kind: schema.Terminal, Outcome: schema.Succeeded, Quiescent: true, Evidence: "log"})
	return model.Call{Method: schema.Settle.Name, Params: schema.SettleParams{RunID: of.RunID, Authority: by,
		Input: schema.SettleInput{ReservationID: of.ReservationID, Generation: of.Generation, Proof: proof}}}
}

// rework is a step of handing a task in, sending it back and taking it up again.
func (c *linearClient) rework(task linearTask) model.Call {
	switch c.random.IntN(3) {
	case 0:
		return model.Call{Method: schema.SubmitTask.Name, Params: schema.TaskNoteParams{RunID: task.run, Authority: c.by(task.session),
			Input: schema.TaskNoteInput{TaskID: task.id}}}
	case 1:
		return model.Call{Method: schema.RejectTask.Name, Params: schema.RejectParams{RunID: task.run, Authority: lead,
			Input: schema.RejectInput{TaskID: task.id, Reason: "not good enough"}}}
	}
	return model.Call{Method: schema.ClaimTask.Name, Params: schema.ClaimParams{RunID: task.run, Authority: c.by(task.session),
		Input: schema.ClaimInput{TaskID: task.id, Owner: task.session, OwnerSession: task.session}}}
}
