package main

import (
	"fmt"
	"slices"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// answered learns from an answer.
func (b *board) answered(c *call, a *answer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.landed(c)
	if a.Error != nil {
		b.answers[c.method+" "+string(a.Error.Data.Code)]++
		b.refused(c, a)
		return
	}
	b.answers[c.method]++
	if err := b.accepted(c, a); err != nil {
		b.violated(fmt.Sprintf("%s is answered %s: %v", c.method, a.Result, err))
	}
}

// landed notes that a call is no longer in flight.
func (b *board) landed(c *call) {
	if c.task != nil {
		c.task.busy--
	}
	if c.method == schema.OpenTask.Name {
		c.run.opening--
	}
}

// lost notes a call that was never answered. Those that are idempotent by
// contract are asked again, as a host does that wants to know.
func (b *board) lost(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers[c.method+" was not answered"]++
	b.landed(c)
	b.askAgain(c)
}

func (b *board) askAgain(c *call) {
	switch c.method {
	case schema.Reserve.Name, schema.Settle.Name, schema.Bind.Name, schema.MarkUnknown.Name:
		if !b.outdated(c) || len(b.again) < fewAgain {
			b.again = append(b.again, c)
		}
	}
}

// outdated says that the task has gone on since, so that the call is asked
// again only to see that it changes nothing.
func (b *board) outdated(c *call) bool {
	p, ok := c.params.(schema.ReserveParams)
	return ok && c.task.generation > p.Input.Generation
}

func (b *board) accepted(c *call, a *answer) error {
	switch c.method {
	case schema.ExtendBudget.Name:
		c.run.extended = true
	case schema.OpenTask.Name:
		var opened schema.Task
		if err := json.Unmarshal(a.Result, &opened); err != nil {
			return err
		}
		t := &task{run: c.run, id: opened.TaskID, session: fmt.Sprint("session ", opened.TaskID)}
		b.tasks[t.id] = t
		c.run.tasks = append(c.run.tasks, t)
	case schema.ClaimTask.Name:
		c.task.claimed = true
	case schema.Reserve.Name, schema.Bind.Name, schema.MarkUnknown.Name, schema.Settle.Name:
		var r schema.Reservation
		if err := json.Unmarshal(a.Result, &r); err != nil {
			return err
		}
		return b.moved(c, &r)
	}
	return nil
}

// moved learns where a reservation stands, or stood a moment ago.
func (b *board) moved(c *call, r *schema.Reservation) error {
	id, err := uuid.Parse(r.ReservationID)
	if err != nil {
		return err
	}
	known, old := b.acknowledged[id]
	if c.method == schema.Reserve.Name {
		if n := name(r.RunID, c.key); !old {
			known.name = n
			b.admitted(c)
		} else if known.name != n {
			return fmt.Errorf("two operation keys have one reservation")
		}
	}
	known.settled = known.settled || r.State == schema.Settled
	if old || c.method == schema.Reserve.Name {
		b.acknowledged[id] = known
	}
	t := c.task
	if t == nil {
		return nil
	}
	t.generation = max(t.generation, r.Generation)
	switch {
	case known.settled && t.active != nil && t.active.id == r.ReservationID:
		t.active = nil
	case !known.settled && r.Generation == t.generation:
		t.active = &active{id: r.ReservationID, generation: r.Generation, bound: r.SessionID != nil}
	}
	return nil
}

// admitted counts an admission, and retires what has had its share.
func (b *board) admitted(c *call) {
	c.run.admissions++
	if c.task.admissions++; c.task.admissions >= taskAdmission {
		b.retire(c.task)
	}
	if i := slices.Index(b.runs, c.run); i >= 0 && c.run.admissions >= runAdmissions {
		b.runs[i] = b.newRun()
		b.retired = append(b.retired, c.run.tasks...)
		c.run.tasks = nil
	}
}

// retire takes a task out of its run; another will be opened.
func (b *board) retire(t *task) {
	if i := slices.Index(t.run.tasks, t); i >= 0 {
		t.run.tasks = slices.Delete(t.run.tasks, i, i+1)
		b.retired = append(b.retired, t)
	}
}

// refused learns from a refusal. Most say that another host was faster.
func (b *board) refused(c *call, a *answer) {
	data := a.Error.Data
	switch data.Code {
	case schema.ErrStoreBusy, schema.ErrShuttingDown, schema.ErrCancelled: // nothing was done
		b.askAgain(c)
	case schema.ErrStoreUnknown: // nobody knows whether it was
		b.askAgain(c)
	case schema.ErrBudgetExhausted:
		b.overBudget(c, data.Budget)
	case schema.ErrResourceBusy:
		for _, h := range data.Holders {
			b.recover(h.Execution)
		}
	case schema.ErrGovernorFence:
		if c.method == schema.Reserve.Name {
			c.task.generation = max(c.task.generation, data.Fence.Current)
		}
		b.cannot(c)
	case schema.ErrGovernorConflict:
		switch {
		case data.Reason == schema.ReasonOperationKey || data.Reason == schema.ReasonParameters:
			b.violated(fmt.Sprintf("%s of key %s is refused: %s", c.method, c.key, a.Error.Message))
		case c.method == schema.Reserve.Name && data.Execution != nil:
			c.task.active = &active{id: data.Execution.ReservationID, generation: data.Execution.Generation, bound: data.Execution.SessionID != nil}
		case c.method == schema.ExtendBudget.Name:
			c.run.extended = true // another host has done it
		}
		b.cannot(c)
	case schema.ErrStatus, schema.ErrTaskConflict:
	default:
		b.violated(fmt.Sprintf("%s is refused by %s: %s", c.method, data.Code, a.Error.Message))
	}
}

// cannot notes that a transition was refused: the work is not where the board thought.
func (b *board) cannot(c *call) {
	if c.task == nil || c.task.active == nil {
		return
	}
	switch c.method {
	case schema.Bind.Name:
		c.task.active.stuck = true
	case schema.Settle.Name:
		c.task.active = nil
	}
}

func (b *board) overBudget(c *call, d *schema.BudgetDetail) {
	switch d.Limit {
	case schema.LimitCreated:
		if c.run.maxCreated <= d.Max {
			c.run.maxCreated, c.run.extended = d.Max+200, false
		}
	case schema.LimitRetries:
		b.retire(c.task)
	}
}

// recover settles work that no host knows of any more: its admission was not
// answered, and its task has been given up since.
func (b *board) recover(e *schema.Execution) {
	if e == nil || b.tasks[e.TaskID] != nil || b.recovered[e.ReservationID] {
		return
	}
	b.recovered[e.ReservationID] = true
	b.again = append(b.again, &call{method: schema.Settle.Name, params: settling(e.RunID, e.ReservationID, e.Generation, lead, terminal)})
}
