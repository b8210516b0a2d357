package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
)

// The size of the field: small enough that hosts are in each other's way all
// the time, and never so old that a task or run has much history.
const (
	runsAtOnce    = 5
	tasksPerRun   = 50
	resourceCount = 150
	runAdmissions = 2000
	taskAdmission = 40
	maxActive     = 32
	maxWriters    = 10
	// fewAgain is up to how many calls wait to be asked again although the field has gone on.
	fewAgain = 8
	// stall is how long there may be no admission before the swarm gives up.
	stall = time.Minute
)

// board is what the hosts know together. It is always a little old, and it does
// not know the outcome of calls that were never answered.
type board struct {
	goal int

	mu   sync.Mutex
	runs []*run
	// tasks are those that may still have active work, by their identity, and
	// retired those of them that get no new work.
	tasks   map[int64]*task
	retired []*task
	// again are calls whose outcome nobody knows, to be asked again.
	again []*call
	// recovered is work that no host knew of and that was to be settled.
	recovered map[string]bool
	// acknowledged are the admissions that some host was told of.
	acknowledged map[uuid.UUID]acknowledgement
	answers      map[string]int
	violations   []string
	opened, keys int
}

// acknowledgement is what a host was told of an admission.
type acknowledgement struct {
	name    uint64 // of the run and operation key
	settled bool
}

type run struct {
	id string
	// extended says that the budget is as wanted, opening counts tasks on their way.
	extended            bool
	opening, admissions int
	maxCreated          int64
	tasks               []*task
}

type task struct {
	run *run
	id  int64
	// session owns the task, once claimed.
	session string
	claimed bool
	// generation is the latest admission that is known of.
	generation int64
	// active is the work that is known of; busy counts calls in flight.
	active           *active
	busy, admissions int
}

type active struct {
	id         string
	generation int64
	bound      bool
	// stuck says that it could not be bound, so it can only be settled.
	stuck bool
}

func newBoard(goal int) *board {
	b := &board{goal: goal, tasks: map[int64]*task{}, recovered: map[string]bool{}, acknowledged: map[uuid.UUID]acknowledgement{}, answers: map[string]int{}}
	for range runsAtOnce {
		b.runs = append(b.runs, b.newRun())
	}
	return b
}

func (b *board) newRun() *run {
	b.opened++
	return &run{id: fmt.Sprintf("run %d", b.opened), maxCreated: 200}
}

// count is how many admissions were acknowledged.
func (b *board) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.acknowledged)
}

func (b *board) finished() bool { return b.count() >= b.goal }

// violate notes something that must not happen.
func (b *board) violate(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.violated(what)
}

func (b *board) violated(what string) {
	b.violations = append(b.violations, what)
}

// watch tells how it goes, and gives up when nothing is admitted any more.
func (b *board) watch(ctx context.Context, giveUp func(error)) {
	ticker := time.NewTicker(stall)
	defer ticker.Stop()
	start, before := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := b.count()
		fmt.Printf("%d admissions after %v\n", now, time.Since(start).Round(time.Second))
		if now == before {
			giveUp(errors.New("nothing is admitted any more"))
			return
		}
		before = now
	}
}

// report prints what the calls were answered.
func (b *board) report() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(b.answers)) {
		fmt.Printf("%8d %s\n", b.answers[k], k)
	}
}

// name is a short name of a run's operation key.
func name(run, key string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(run + "\x00" + key))
	return h.Sum64()
}

func oneOf[V any](random *rand.Rand, values ...V) V { return values[random.IntN(len(values))] }
