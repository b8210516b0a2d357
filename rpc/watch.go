package rpc

import (
	"context"
	"sync"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// Changed is the method of the notification that a watched run has changed.
const Changed = "governor.changed"

// watches are the runs that a connection watches. One goroutine follows the
// store while there are any. A run's notifications are coalesced: while one is
// on its way to a host that does not read, later changes wait for it.
type watches struct {
	session *session
	mu      sync.Mutex
	runs    map[string]*watch
	end     context.CancelFunc
	done    sync.WaitGroup
}

// watch is one watched run.
type watch struct {
	seen store.Version
	// sending says that a notification is not written yet, again that the run
	// has changed since it was handed over.
	sending, again bool
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
	return &schema.WatchResult{RunID: p.RunID, Watching: true}, nil
}

func (s *session) unwatch(_ context.Context, p *schema.RunParams) (*schema.WatchResult, error) {
	s.watches.remove(p.RunID)
	return &schema.WatchResult{RunID: p.RunID}, nil
}

func (w *watches) add(run string, version store.Version) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		w.runs = map[string]*watch{}
	}
	if w.runs[run] != nil {
		return
	}
	w.runs[run] = &watch{seen: version}
	if len(w.runs) > 1 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	w.end = cancel
	w.done.Go(func() { w.follow(ctx) })
}

func (w *watches) remove(run string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.runs, run); len(w.runs) == 0 && w.end != nil {
		w.end()
		w.end = nil
	}
}

// stop ends every watch and waits for the goroutine.
func (w *watches) stop() {
	w.mu.Lock()
	w.runs = nil
	if w.end != nil {
		w.end()
	}
	w.mu.Unlock()
	w.done.Wait()
}

func (w *watches) follow(ctx context.Context) {
	err := w.session.store.Watch(ctx, func() { w.look(ctx) })
	if err != nil {
		w.session.log.Error("runs can no longer be watched", "error", err)
	}
}

// look compares the watched runs with what was last seen of them.
func (w *watches) look(ctx context.Context) {
	for run, seen := range w.snapshot() {
		var now store.Version
		err := w.session.store.Read(ctx, func(tx store.Tx) (err error) {
			now, err = tx.Version(run)
			return err
		})
		if err == nil && now != seen {
			w.notify(run, now)
		}
	}
}

func (w *watches) snapshot() map[string]store.Version {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := make(map[string]store.Version, len(w.runs))
	for run, watch := range w.runs {
		seen[run] = watch.seen
	}
	return seen
}

// notify sends a notification, or leaves it to the one that is still on its way
// to be followed by another.
func (w *watches) notify(run string, now store.Version) {
	w.mu.Lock()
	watch := w.runs[run]
	send := false
	if watch != nil {
		watch.seen = now
		send = !watch.sending
		watch.again = watch.sending
		watch.sending = true
	}
	w.mu.Unlock()
	if send {
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
	w.session.outbox.send(text, func() { w.written(run, watch) })
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
