package rpc

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// Changed is the method of the notification that a watched run has changed.
const Changed = "governor.changed"

// lookAgain is how long a watcher waits after the store could not be read.
const lookAgain = 100 * time.Millisecond

// watches are the runs that a connection watches. One goroutine follows the
// store while there are any. A run's notifications are coalesced: while one is
// on its way to a host that does not read, later changes wait for it.
type watches struct {
	session *session
	// looking serialises looks, so that an older state never replaces a newer one.
	looking sync.Mutex
	mu      sync.Mutex
	runs    map[string]*watch
	end     context.CancelFunc // nil while no goroutine follows the store
	done    sync.WaitGroup
}

// watch is one watched run.
type watch struct {
	seen store.Version
	// sending says that a notification must not be sent now: one is not written
	// yet, or the host has not been told that it watches. again says that the
	// run has changed in the meantime.
	sending, again bool
	// silent says that the reply to governor.watch is still to come.
	silent bool
}

func (s *session) watch(ctx context.Context, p *schema.RunParams) (*schema.WatchResult, error) {
	s.pending.Wait() // what the host has changed before is no news to it
	var version store.Version
	err := s.store.Read(ctx, func(tx store.Tx) (err error) {
		version, err = tx.Version(p.RunID)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.watches.add(p.RunID, version)
	// A change before the run was added was nobody's to notice.
	if err := s.watches.look(ctx, p.RunID); err != nil {
		s.watches.remove(p.RunID)
		return nil, err
	}
	return &schema.WatchResult{RunID: p.RunID, Watching: true}, nil
}

func (s *session) unwatch(_ context.Context, p *schema.RunParams) (*schema.WatchResult, error) {
	s.watches.remove(p.RunID)
	return &schema.WatchResult{RunID: p.RunID}, nil
}

// announceWatches lets notifications follow the reply to governor.watch.
func (s *session) announceWatches() { s.watches.announce() }

func (w *watches) add(run string, version store.Version) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		w.runs = map[string]*watch{}
	}
	if w.runs[run] == nil {
		w.runs[run] = &watch{seen: version, sending: true, silent: true}
	}
	if w.end != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.end = cancel
	w.done.Go(func() { w.follow(ctx) })
}

func (w *watches) announce() {
	w.mu.Lock()
	silent := map[string]*watch{}
	for run, watch := range w.runs {
		if watch.silent {
			watch.silent = false
			silent[run] = watch
		}
	}
	w.mu.Unlock()
	for run, watch := range silent {
		w.written(run, watch)
	}
}

func (w *watches) remove(run string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.runs, run); len(w.runs) == 0 {
		w.endFollowing()
	}
}

// endFollowing is called with the lock held.
func (w *watches) endFollowing() {
	if w.end != nil {
		w.end()
		w.end = nil
	}
}

// stop ends every watch and waits for the goroutine.
func (w *watches) stop() {
	w.mu.Lock()
	w.runs = nil
	w.endFollowing()
	w.mu.Unlock()
	w.done.Wait()
}

// follow looks whenever the store has changed. If the store can no longer tell,
// the runs are forgotten, so that the next governor.watch begins anew.
func (w *watches) follow(ctx context.Context) {
	looks, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	err := w.session.store.Watch(looks, func() {
		if err := w.look(looks); err != nil {
			giveUp(err)
		}
	})
	if cause := context.Cause(looks); err == nil {
		err = cause
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return // nobody watches, or another goroutine has taken over
	}
	w.session.log.Error("runs are no longer watched", "error", err)
	w.runs = nil
	w.endFollowing()
}

// look compares the given runs, or all that are watched, with what was last
// seen of them. While the store is busy it looks again, because a change is
// told once.
func (w *watches) look(ctx context.Context, runs ...string) error {
	w.looking.Lock()
	defer w.looking.Unlock()
	for {
		seen := w.snapshot(runs)
		now, err := w.versions(ctx, seen)
		if err == nil {
			maps.DeleteFunc(now, func(run string, version store.Version) bool { return seen[run] == version })
			w.notify(now)
			return nil
		}
		var known *schema.Error
		if !errors.As(err, &known) || !known.Data().Retryable {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

// snapshot returns what was last seen of the given runs, or of all.
func (w *watches) snapshot(runs []string) map[string]store.Version {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := make(map[string]store.Version, len(w.runs))
	for run, watch := range w.runs {
		if len(runs) == 0 || slices.Contains(runs, run) {
			seen[run] = watch.seen
		}
	}
	return seen
}

// versions reads the present version of each run, all in one transaction.
func (w *watches) versions(ctx context.Context, runs map[string]store.Version) (map[string]store.Version, error) {
	now := make(map[string]store.Version, len(runs))
	err := w.session.store.Read(ctx, func(tx store.Tx) error {
		for run := range runs {
			version, err := tx.Version(run)
			if err != nil {
				return err
			}
			now[run] = version
		}
		return nil
	})
	return now, err
}

// notify sends a notification for each run, or leaves it to the one that is
// still on its way to be followed by another.
func (w *watches) notify(changed map[string]store.Version) {
	send := map[string]*watch{}
	w.mu.Lock()
	for run, version := range changed {
		watch := w.runs[run]
		switch {
		case watch == nil:
		case watch.sending:
			watch.seen, watch.again = version, true
		default:
			watch.seen, watch.sending = version, true
			send[run] = watch
		}
	}
	w.mu.Unlock()
	for run, watch := range send {
		w.send(run, watch)
	}
}

func (w *watches) send(run string, watch *watch) {
	text, err := schema.Encode(struct {
		Version string               `json:"jsonrpc"`
		Method  string               `json:"method"`
		Params  schema.ChangedParams `json:"params"`
	}{"2.0", Changed, schema.ChangedParams{RunID: run}})
	if err != nil {
		w.session.log.Error("a notification cannot be encoded", "error", err)
		return
	}
	w.session.outbox.send(schema.Pieces{text}, func() { w.written(run, watch) })
}

// written is called when a notification is out, or can never be.
func (w *watches) written(run string, watch *watch) {
	w.mu.Lock()
	again := watch.again && w.runs[run] == watch
	watch.again = false
	watch.sending = again
	w.mu.Unlock()
	if again {
		w.send(run, watch)
	}
}
