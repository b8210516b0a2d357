package main

import (
	"fmt"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// Four hosts, each with a sidecar of its own, compete for the last of
// something, again and again. One wins each time, and the others learn what is
// used up and by whom.

const (
	rivals = 4
	rounds = 50
)

// contest is one store with the sidecars that compete for it.
type contest struct {
	t        *testing.T
	sidecars [rivals]*sidecar
	// Each rival has a run, a task in it, and a count of the task's admissions.
	runs     [rivals]string
	tasks    [rivals]int64
	admitted [rivals]int64
}

// newContest starts the rivals, all in one run or each in its own.
func newContest(t *testing.T, oneRun bool) *contest {
	c := &contest{t: t}
	root := t.TempDir()
	for i := range rivals {
		c.sidecars[i] = serve(t, root)
		c.runs[i] = "run"
		if !oneRun {
			c.runs[i] = fmt.Sprintf("run %d", i)
		}
		c.tasks[i] = c.sidecars[i].openTask(c.runs[i], "")
	}
	return c
}

// compete lets every rival reserve at once and returns the admission of the one
// that won, and the refusals of the others.
func (c *contest) compete(round int, mode schema.Mode, kind schema.Kind, resources ...string) (won *schema.Reservation, lost []*wireError) {
	c.t.Helper()
	for n := range rivals {
		i := (round + n) % rivals // nobody is always the first
		p := reserving(c.runs[i], c.tasks[i], c.admitted[i], mode, kind, resources...)
		p.Input.OperationKey = fmt.Sprintf("rival %d, round %d", i, round)
		c.sidecars[i].send(schema.Reserve.Name, p)
	}
	for i, s := range c.sidecars {
		r := s.receive()
		switch {
		case r.Error != nil:
			lost = append(lost, r.Error)
		case won != nil:
			c.t.Fatalf("round %d: two rivals have won: %s and %s", round, encode(c.t, won), r.Result)
		default:
			won = accepted[schema.Reservation](c.t, r)
			c.admitted[i]++
		}
	}
	if won == nil {
		c.t.Fatalf("round %d: nobody has won: %s", round, encode(c.t, lost[0]))
	}
	return won, lost
}

// occupy admits others' work that stays.
func (c *contest) occupy(n int, mode schema.Mode, kind schema.Kind) {
	c.t.Helper()
	for range n {
		s := c.sidecars[0]
		result(s, schema.Reserve, reserving("run", s.openTask("run", ""), 0, mode, kind))
	}
}

// settle frees what was won for the next round.
func (c *contest) settle(won *schema.Reservation) {
	c.t.Helper()
	result(c.sidecars[0], schema.Settle, settling(won))
}

// checkBudget checks that every loser learns the limit and that the winner is among its users.
func (c *contest) checkBudget(lost []*wireError, limit schema.LimitName, maximum int64, won *schema.Reservation, users int) {
	c.t.Helper()
	for _, e := range lost {
		b := e.Data.Budget
		switch {
		case e.Data.Code != schema.ErrBudgetExhausted || b == nil:
			c.t.Fatalf("a loser gets %s without the budget: %s", e.Data.Code, e.Message)
		case b.Limit != limit || b.Max != maximum || b.Used != maximum || b.Requested != 1 || len(b.Users) != users:
			c.t.Fatalf("a loser gets the budget %s, want %s used up, %d of %d, by %d executions", encode(c.t, b), limit, maximum, maximum, users)
		case users > 0 && !uses(b.Users, won):
			c.t.Fatalf("the winner %s is not among the users %s", won.ReservationID, encode(c.t, b.Users))
		}
	}
}

func uses(users []schema.Execution, won *schema.Reservation) bool {
	for _, e := range users {
		if e.ReservationID == won.ReservationID && e.TaskID == won.TaskID && e.State == schema.Reserved && e.Since != nil {
			return true
		}
	}
	return false
}

func TestCompeteForLastSlot(t *testing.T) {
	t.Parallel()
	c := newContest(t, true)
	c.occupy(5, schema.Read, schema.Reuse)
	for round := range rounds {
		won, lost := c.compete(round, schema.Read, schema.Reuse)
		c.checkBudget(lost, schema.LimitActive, 6, won, 6)
		c.settle(won)
	}
}

func TestCompeteForLastWriter(t *testing.T) {
	t.Parallel()
	c := newContest(t, true)
	c.occupy(1, schema.Write, schema.Reuse)
	for round := range rounds {
		won, lost := c.compete(round, schema.Write, schema.Reuse)
		c.checkBudget(lost, schema.LimitWriters, 2, won, 2)
		c.settle(won)
	}
}

// What is cumulative is never refunded, so every round needs an extension by one.
func TestCompeteForLastNew(t *testing.T) {
	t.Parallel()
	c := newContest(t, true)
	for round := range rounds {
		limit := int64(4 + round)
		result(c.sidecars[round%rivals], schema.ExtendBudget, schema.ExtendBudgetParams{RunID: "run", Authority: lead,
			Input: schema.ExtendBudgetInput{Reason: "one more", MaxCreated: &limit}})
		if round == 0 {
			for range limit - 1 {
				s := c.sidecars[0]
				c.settle(result(s, schema.Reserve, reserving("run", s.openTask("run", ""), 0, schema.Read, schema.New)))
			}
		}
		won, lost := c.compete(round, schema.Read, schema.New)
		c.checkBudget(lost, schema.LimitCreated, limit, won, 0)
		c.settle(won)
	}
}

// Holds count across all runs.
func TestCompeteForResource(t *testing.T) {
	t.Parallel()
	c := newContest(t, false)
	for round := range rounds {
		won, lost := c.compete(round, schema.Write, schema.Reuse, "free", "repo")
		for _, e := range lost {
			if e.Data.Code != schema.ErrResourceBusy || len(e.Data.Holders) != 2 {
				t.Fatalf("a loser gets %s with %d holders", e.Data.Code, len(e.Data.Holders))
			}
			for i, key := range []string{"free", "repo"} {
				h := e.Data.Holders[i]
				if h.ResourceKey != key || h.Mode != schema.Write || h.State != schema.Reserved ||
					h.Execution == nil || h.Execution.RunID != won.RunID || !uses([]schema.Execution{*h.Execution}, won) {
					t.Fatalf("the holder of %s is %s, want %s", key, encode(t, h), encode(t, won))
				}
			}
		}
		c.settle(won)
	}
}
