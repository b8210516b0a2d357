package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"
)

// swarm is all hosts and what they share.
type swarm struct {
	options
	board *board
	// stderr is the standard error of every sidecar. Its other end is read
	// until the last of them is gone, orphans included.
	stderr *os.File
	words  tail

	mu    sync.Mutex
	fates map[fate]int
}

func newSwarm(o options) *swarm {
	return &swarm{options: o, board: newBoard(o.admissions), fates: map[fate]int{}}
}

// rage runs the hosts until there are enough admissions, and returns when no
// sidecar is left.
func (s *swarm) rage(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	s.stderr = write
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(&s.words, read) // ends with the last sidecar
	}()
	var hosts sync.WaitGroup
	for i := range s.hosts {
		h := &host{swarm: s, number: i, random: rand.New(rand.NewPCG(s.seed, uint64(i)))}
		hosts.Go(func() {
			if err := h.live(ctx); err != nil {
				cancel(err)
			}
		})
	}
	go s.board.watch(ctx, cancel)
	hosts.Wait()
	write.Close()
	<-gone
	if s.board.finished() {
		return nil
	}
	return fmt.Errorf("after %d admissions: %w\n%s", s.board.count(), context.Cause(ctx), s.words.last())
}

func (s *swarm) count(f fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fates[f]++
}

// report prints what has happened.
func (s *swarm) report(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	processes := 0
	for _, f := range slices.Sorted(maps.Keys(s.fates)) {
		if f != paused {
			processes += s.fates[f]
		}
		fmt.Printf("%8d %s\n", s.fates[f], f)
	}
	s.board.report()
	fmt.Printf("%d processes, %d kills, %d admissions in %.1f s: %.0f a second\n", processes, s.fates[killed]+s.fates[stoppedAndKilled],
		s.board.count(), took.Seconds(), float64(s.board.count())/took.Seconds())
}

// tail keeps the last words of all sidecars.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(len(t.text)-tailSize, 0):]
	return len(p), nil
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ToValidUTF8(t.text, nil))
}
