package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/dsh-taskforce/sidecar/schema"
)

// call is a call of a host.
type call struct {
	method string
	params any
	run    *run
	task   *task // nil for a call about the run, and for recovery
	key    string
}

// lead is who calls most of the time.
var lead = schema.Authority{Role: schema.Lead, SessionID: "root"}

// next draws a host's next call. Calls that were never answered come first.
func (b *board) next(random *rand.Rand) *call {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.draw(random)
	if c.task != nil {
		c.task.busy++
	}
	return c
}

func (b *board) draw(random *rand.Rand) *call {
	for len(b.again) > 0 && random.IntN(4) > 0 {
		c := b.again[0]
		b.again = b.again[1:]
		if !b.outdated(c) || len(b.again) < fewAgain {
			return c
		}
	}
	if c := b.drawRetired(random); c != nil {
		return c
	}
	r := oneOf(random, b.runs...)
	switch {
	case !r.extended:
		return r.extend()
	case len(r.tasks) == 0 || len(r.tasks)+r.opening < tasksPerRun:
		r.opening++
		return &call{method: schema.OpenTask.Name, run: r, params: schema.OpenParams{RunID: r.id, Authority: lead, Input: schema.OpenInput{Title: "a task"}}}
	}
	t := oneOf(random, r.tasks...)
	for range 3 { // so that hosts are in each other's way, but not only
		if t.busy == 0 {
			break
		}
		t = oneOf(random, r.tasks...)
	}
	switch {
	case !t.claimed:
		return t.claim()
	case t.active != nil:
		return t.transition(random)
	case random.IntN(12) == 0:
		return t.rework()
	}
	return b.reserve(t, random)
}

// drawRetired ends work of tasks that get no new one.
func (b *board) drawRetired(random *rand.Rand) *call {
	for len(b.retired) > 0 && random.IntN(3) == 0 {
		i := random.IntN(len(b.retired))
		t := b.retired[i]
		if t.active != nil {
			return t.transition(random)
		}
		if t.busy > 0 {
			return nil
		}
		b.retired[i] = b.retired[len(b.retired)-1]
		b.retired = b.retired[:len(b.retired)-1]
		delete(b.tasks, t.id)
	}
	return nil
}

func (r *run) extend() *call {
	active, writers, retries, created := int64(maxActive), int64(maxWriters), int64(6), r.maxCreated
	return &call{method: schema.ExtendBudget.Name, run: r, params: schema.ExtendBudgetParams{RunID: r.id, Authority: lead,
		Input: schema.ExtendBudgetInput{Reason: "to go on", MaxActive: &active, MaxWriters: &writers, MaxCreated: &created, MaxRetries: &retries}}}
}

func (t *task) claim() *call {
	return &call{method: schema.ClaimTask.Name, run: t.run, task: t, params: schema.ClaimParams{RunID: t.run.id, Authority: lead,
		Input: schema.ClaimInput{TaskID: t.id, Owner: "a worker", OwnerSession: t.session}}}
}

// by is a lead, or sometimes the worker that owns the task.
func (t *task) by(random *rand.Rand) schema.Authority {
	if random.IntN(4) > 0 {
		return lead
	}
	return schema.Authority{Role: schema.Worker, SessionID: t.session}
}

func (b *board) reserve(t *task, random *rand.Rand) *call {
	b.keys++
	c := &call{method: schema.Reserve.Name, run: t.run, task: t, key: fmt.Sprint(b.keys)}
	resources := []string{}
	for range random.IntN(3) {
		resources = append(resources, fmt.Sprint("resource ", random.IntN(resourceCount)))
	}
	c.params = schema.ReserveParams{RunID: t.run.id, Authority: t.by(random), Input: schema.ReserveInput{
		OperationKey: c.key, TaskID: t.id, Generation: t.generation, Resources: resources,
		Mode: oneOf(random, schema.Read, schema.Read, schema.Write), Kind: oneOf(random, schema.Reuse, schema.Reuse, schema.Reuse, schema.Reuse, schema.New, schema.New, schema.Retry),
	}}
	return c
}

// transition moves the task's active work on, most of the time to its end.
func (t *task) transition(random *rand.Rand) *call {
	a := t.active
	c := &call{run: t.run, task: t}
	by := t.by(random)
	switch n := random.IntN(10); {
	case n < 2 && !a.bound && !a.stuck:
		c.method = schema.Bind.Name
		c.params = schema.BindParams{RunID: t.run.id, Authority: by, Input: schema.BindInput{ReservationID: a.id, Generation: a.generation, SessionID: t.session}}
	case n == 2:
		c.method = schema.MarkUnknown.Name
		c.params = schema.MarkUnknownParams{RunID: t.run.id, Authority: by, Input: schema.MarkUnknownInput{ReservationID: a.id, Generation: a.generation, Reason: "lost"}}
	default:
		proof := terminal
		if !a.bound && n > 7 {
			proof = schema.Proof{Kind: schema.NeverStarted}
		}
		c.method = schema.Settle.Name
		c.params = settling(t.run.id, a.id, a.generation, by, proof)
	}
	return c
}

var terminal = schema.Proof{Kind: schema.Terminal, Outcome: schema.Succeeded, Quiescent: true, Evidence: "log"}

func settling(run, id string, generation int64, by schema.Authority, proof schema.Proof) schema.SettleParams {
	return schema.SettleParams{RunID: run, Authority: by, Input: schema.SettleInput{ReservationID: id, Generation: generation, Proof: proof}}
}

// rework hands the task in, sends it back and takes it up again, in one transaction.
func (t *task) rework() *call {
	part := func(method string, params any) schema.TransactionCall {
		text, err := schema.Encode(params)
		if err != nil {
			panic(err)
		}
		return schema.TransactionCall{Method: method, Params: text}
	}
	return &call{method: schema.Transaction.Name, run: t.run, task: t, params: schema.TransactionParams{Calls: []schema.TransactionCall{
		part(schema.SubmitTask.Name, schema.TaskNoteParams{RunID: t.run.id, Authority: lead, Input: schema.TaskNoteInput{TaskID: t.id}}),
		part(schema.RejectTask.Name, schema.RejectParams{RunID: t.run.id, Authority: lead, Input: schema.RejectInput{TaskID: t.id, Reason: "not good enough"}}),
		part(schema.ClaimTask.Name, schema.ClaimParams{RunID: t.run.id, Authority: lead, Input: schema.ClaimInput{TaskID: t.id, Owner: "a worker", OwnerSession: t.session}}),
	}}}
}
