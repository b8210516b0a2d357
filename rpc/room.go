package rpc

import "sync"

// maxFlightBytes bounds the frames of the requests in flight, so that a host
// that sends large ones faster than they are served cannot fill the memory.
const maxFlightBytes = 64 << 20

// room bounds the requests in flight: the reader takes room for each that is
// queued, and it is given back once the reply is written.
type room struct {
	maxCalls, maxBytes int

	mu           sync.Mutex
	given        sync.Cond
	calls, bytes int
	closed       bool
}

func newRoom(maxCalls, maxBytes int) *room {
	r := &room{maxCalls: maxCalls, maxBytes: maxBytes}
	r.given.L = &r.mu
	return r
}

// take waits for room. What is larger than the bounds gets it when nothing else
// is in flight. After close there is always room.
func (r *room) take(calls, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.calls > 0 && (r.calls+calls > r.maxCalls || r.bytes+bytes > r.maxBytes) && !r.closed {
		r.given.Wait()
	}
	r.calls += calls
	r.bytes += bytes
}

func (r *room) give(calls, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls -= calls
	r.bytes -= bytes
	r.given.Signal() // only the reader takes
}

// close lets the reader go when the session is over.
func (r *room) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.given.Broadcast()
}
