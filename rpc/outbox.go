package rpc

import (
	"bufio"
	"fmt"
	"io"
	"sync"
	"time"
)

// outbox is the one writer of the output. A frame is written by its sender if
// nothing is waiting, else by a goroutine that takes all waiting frames at once.
type outbox struct {
	out io.Writer
	// headers asks for Content-Length framing.
	headers func() bool

	mu sync.Mutex
	// changed wakes whoever waits for room or for the end of writing.
	changed *sync.Cond
	waiting [][]byte
	size    int
	after   []func() // to call when the waiting frames are written
	writing bool
	closed  bool
	err     error
	exited  chan struct{}
	failed  chan struct{} // closed at the first error
}

func newOutbox(out io.Writer, headers func() bool) *outbox {
	o := &outbox{out: out, headers: headers, exited: make(chan struct{}), failed: make(chan struct{})}
	o.changed = sync.NewCond(&o.mu)
	go o.loop()
	return o
}

// send hands over a frame and never blocks. written is called once the frame is
// out, or will never be.
func (o *outbox) send(frame []byte, written func()) {
	o.mu.Lock()
	if o.err != nil || o.closed {
		o.mu.Unlock()
		written()
		return
	}
	o.push(frame)
	o.after = append(o.after, written)
	o.changed.Broadcast()
	o.mu.Unlock()
}

// sendNow is send, but writes the frame itself, and may block, if nothing is waiting.
func (o *outbox) sendNow(frame []byte, written func()) {
	o.mu.Lock()
	if o.err != nil || o.closed || o.writing || len(o.waiting) > 0 {
		o.mu.Unlock()
		o.send(frame, written)
		return
	}
	o.push(frame)
	o.after = append(o.after, written)
	o.flush()
	o.mu.Unlock()
}

func (o *outbox) push(frame []byte) {
	if o.headers() {
		header := fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", len(frame))
		o.waiting = append(o.waiting, header, frame)
		o.size += len(header) + len(frame)
		return
	}
	o.waiting = append(o.waiting, append(frame, '\n'))
	o.size += len(frame) + 1
}

func (o *outbox) loop() {
	defer close(o.exited)
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		switch {
		case len(o.waiting) > 0 && !o.writing:
			o.flush()
		case o.closed && !o.writing:
			return
		default:
			o.changed.Wait()
		}
	}
}

// flush writes what is waiting. It is called with the lock held and gives it up
// while it writes and calls back.
func (o *outbox) flush() {
	frames, size, after := o.waiting, o.size, o.after
	o.waiting, o.after, o.writing = nil, nil, true
	o.mu.Unlock()
	err := writeAll(o.out, frames)
	callAll(after)
	o.mu.Lock()
	o.writing = false
	o.size -= size
	if err != nil && o.err == nil {
		o.err = err
		close(o.failed)
		o.drop()
	}
	o.changed.Broadcast()
}

// drop gives up what can no longer be written.
func (o *outbox) drop() {
	after := o.after
	o.waiting, o.after, o.size = nil, nil, 0
	o.mu.Unlock()
	callAll(after)
	o.mu.Lock()
}

func callAll(after []func()) {
	for _, written := range after {
		written()
	}
}

// writeAll writes small frames together and large ones as they are.
func writeAll(out io.Writer, frames [][]byte) error {
	const small = 64 << 10
	if len(frames) == 1 {
		_, err := out.Write(frames[0])
		return err
	}
	buffered := bufio.NewWriterSize(out, small) // passes larger writes through
	for _, frame := range frames {
		if _, err := buffered.Write(frame); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// waitRoom blocks while more than limit bytes wait to be written.
func (o *outbox) waitRoom(limit int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.size > limit && o.err == nil && !o.closed {
		o.changed.Wait()
	}
}

// close writes what is waiting and returns the first error of the output. A
// reader that takes nothing for as long as grace counts as one.
func (o *outbox) close(grace time.Duration) error {
	o.mu.Lock()
	o.closed = true
	o.changed.Broadcast()
	o.mu.Unlock()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-o.exited:
		return o.err
	case <-timer.C:
		return ErrOutput
	}
}
