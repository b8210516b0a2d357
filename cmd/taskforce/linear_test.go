package main

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/dsh-taskforce/sidecar/governor/model"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
)

// Several sidecars serve several clients on one file, some are killed, and what
// the clients were answered must be what one sidecar could have answered that
// makes one call after another: the reference model.

var (
	linearRounds = flag.Int("linear.rounds", 4, "how many histories TestLinear records and checks")
	linearSeed   = flag.Uint64("linear.seed", 0, "the seed of TestLinear's calls; 0 draws one")
)

const (
	linearSidecars = 4
	linearClients  = 6
	linearCalls    = 35 // of each client in a round
	// linearTimeout bounds the search for an order of one history.
	linearTimeout = time.Minute
)

// errLinearUndecided reports a history that took too long to check.
var errLinearUndecided = errors.New("the history could not be checked in time")

// TestLinear records and checks a few histories; `make linear ROUNDS=200` does
// so for longer.
func TestLinear(t *testing.T) {
	t.Parallel()
	seed := *linearSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d: repeat with -linear.seed, but which call overtakes which is up to the machine", seed)
	binary := build(t, "cmd/taskforce")
	for i := range *linearRounds {
		if err := linearRound(binary, []string{"--root", t.TempDir()}, seed+uint64(i)); err != nil {
			t.Errorf("round %d: %v", i, err)
		}
	}
}

// TestLinearOnPostgres does the same with sidecars on a server, whose processes
// are killed too.
func TestLinearOnPostgres(t *testing.T) {
	t.Parallel()
	seed := *linearSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	binary, server := build(t, "cmd/taskforce"), pgtest.Start(t, "-c", "fsync=off")
	for i := range *linearRounds {
		ctx, end := context.WithCancel(t.Context())
		var disturbed sync.WaitGroup
		disturbed.Go(func() { server.Disturb(ctx, 100*time.Millisecond) })
		err := linearRound(binary, []string{"--store", server.URL(server.Schema())}, seed+uint64(i))
		end()
		disturbed.Wait()
		if err != nil {
			t.Errorf("round %d: %v", i, err)
		}
	}
}

// linearRound records one history on the empty store that the flags name, and
// checks it. The sidecars' environment is that of the test and more.
func linearRound(binary string, store []string, seed uint64, environment ...string) error {
	slots := make([]*linearSlot, linearSidecars)
	for i := range slots {
		slots[i] = &linearSlot{binary: binary, store: store, environment: environment}
		defer slots[i].end()
	}
	tasks := []linearTask{{1, "run 1", "s"}, {2, "run 1", "t"}, {3, "run 1", "s"}, {4, "run 1", "t"}, {5, "run 2", "s"}, {6, "run 2", "t"}}
	setup := linearSetup(tasks)
	first, err := slots[0].get()
	if err != nil {
		return err
	}
	for _, c := range setup {
		if _, err := first.mustCall(c); err != nil {
			return err
		}
	}
	history := &linearHistory{start: time.Now(), generations: map[int64]int64{}}
	var clients sync.WaitGroup
	failures := make([]error, linearClients)
	for i := range linearClients {
		c := &linearClient{number: i, random: rand.New(rand.NewPCG(seed, uint64(i))), slot: slots[i%len(slots)], history: history, tasks: tasks}
		clients.Go(func() { failures[i] = c.run(linearCalls) })
	}
	clients.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	snapshots, err := linearSnapshots(history, slots[0])
	if err != nil {
		return err
	}
	return history.check(setup, snapshots)
}

// linearSetup opens and claims the tasks.
func linearSetup(tasks []linearTask) (calls []model.Call) {
	for _, task := range tasks {
		calls = append(calls,
			model.Call{Method: schema.OpenTask.Name, Params: schema.OpenParams{RunID: task.run, Authority: lead, Input: schema.OpenInput{Title: "a task"}}},
			model.Call{Method: schema.ClaimTask.Name, Params: schema.ClaimParams{RunID: task.run, Authority: lead,
				Input: schema.ClaimInput{TaskID: task.id, Owner: task.session, OwnerSession: task.session}}})
	}
	return calls
}

// linearSnapshots are the last calls of the history.
func linearSnapshots(h *linearHistory, slot *linearSlot) (snapshots []*schema.Snapshot, err error) {
	s, err := slot.get()
	if err != nil {
		return nil, err
	}
	for _, run := range []string{"run 1", "run 2"} {
		sent := h.send(linearClients, model.Call{Method: schema.GetSnapshot.Name, Params: schema.RunParams{RunID: run}})
		r, err := s.mustCall(sent.Call)
		if err != nil {
			return nil, err
		}
		if err := h.answer(sent, r); err != nil {
			return nil, err
		}
		snapshot, err := linearDecode[schema.Snapshot](r.Result)
		if err != nil {
			return nil, err
		}
		snapshots = append(snapshots, snapshot)
	}
	return snapshots, nil
}

// linearPicture writes a picture of a history to a file that outlives the test.
func linearPicture(m porcupine.Model, info porcupine.LinearizationInfo) (name string, err error) {
	file, err := os.CreateTemp("", "linear-*.html")
	if err != nil {
		return "", err
	}
	defer file.Close()
	return file.Name(), porcupine.Visualize(m, info, file)
}
