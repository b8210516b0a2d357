package rpc

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
)

// piece is how much is written at once. Small frames are gathered up to it, and
// larger ones are written in parts of it, so that a host that reads slowly can
// be told from one that does not read at all.
const piece = 64 << 10

// outbox is the one writer of the output. Whoever sends hands a frame over and
// goes on; a goroutine writes all that waits. The reader writes small frames for
// itself, which saves waking that goroutine: it adds them, and flushes before it
// waits for more input.
type outbox struct {
	out io.Writer
	// headers asks for Content-Length framing.
	headers func() bool

	mu sync.Mutex
	// work wakes the goroutine that writes, room whoever waits for room. Waking
	// the former for nothing costs more than a whole round trip.
	work, room *sync.Cond
	waiting    [][]byte // what is to be written, in order
	tail       []byte   // what comes after it: small frames, gathered
	after      []func() // to call when all of that is written
	spare      []byte   // an old tail to use again
	size       int      // bytes that wait or are being written
	writes     int      // counts what was written, so that a stall shows
	added      bool     // some of what waits was added, so somebody has to flush it
	writing    bool
	closed     bool
	err        error

	exited chan struct{} // closed when everything is written after close
	failed chan struct{} // closed at the first error
}

func newOutbox(out io.Writer, headers func() bool) *outbox {
	o := &outbox{out: out, headers: headers, exited: make(chan struct{}), failed: make(chan struct{})}
	o.work, o.room = sync.NewCond(&o.mu), sync.NewCond(&o.mu)
	go o.loop()
	return o
}

// send hands over a frame and never blocks. written is called once the frame is
// out, or will never be.
func (o *outbox) send(frame schema.Pieces, written func()) {
	o.mu.Lock()
	if o.err != nil || o.closed {
		o.mu.Unlock()
		written()
		return
	}
	o.push(frame)
	o.after = append(o.after, written)
	o.work.Signal()
	o.mu.Unlock()
}

// add is send for a caller that will flush before it waits for anything.
func (o *outbox) add(frame schema.Pieces) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil || o.closed {
		return
	}
	o.added = true
	if o.push(frame); o.size >= piece {
		o.work.Signal()
	}
}

// flush writes what was added, unless somebody is at it already, who then goes
// on with it, or it is so much that a host may well not take it at once.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.added && !o.writing && o.size < piece {
		o.write()
	}
}

// push appends a frame to what waits. Large pieces are kept as they are.
func (o *outbox) push(frame schema.Pieces) {
	if o.headers() {
		length := 0
		for _, part := range frame {
			length += len(part)
		}
		o.gather(fmt.Appendf(nil, "Content-Length: %d\r\n\r\n", length))
	}
	for _, part := range frame {
		o.gather(part)
	}
	if !o.headers() {
		o.gather([]byte{'\n'})
	}
}

func (o *outbox) gather(part []byte) {
	o.size += len(part)
	if len(part) < piece {
		o.tail = append(o.tail, part...)
		return
	}
	o.waiting = append(o.waiting, o.tail, part)
	o.tail = nil
}

func (o *outbox) loop() {
	defer close(o.exited)
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		switch {
		case o.size > 0 && !o.writing && o.err == nil:
			o.write()
		case o.closed && !o.writing:
			return
		default:
			o.work.Wait()
		}
	}
}

// write writes what waits. It is called with the lock held and gives it up
// while it writes and calls back.
func (o *outbox) write() {
	frames, size, after := append(o.waiting, o.tail), o.size, o.after
	o.waiting, o.tail, o.after, o.spare = nil, o.spare, nil, nil
	o.added, o.writing = false, true
	o.mu.Unlock()
	err := o.writeAll(frames)
	callAll(after)
	o.mu.Lock()
	if last := frames[len(frames)-1]; cap(last) <= 4*piece {
		o.spare = last[:0]
	}
	o.writing = false
	o.size -= size
	o.fail(err)
	o.room.Broadcast()
	if o.size > 0 || o.closed {
		o.work.Signal()
	}
}

// writeAll writes the frames piece by piece.
func (o *outbox) writeAll(frames [][]byte) error {
	for _, frame := range frames {
		for len(frame) > 0 {
			n, err := o.out.Write(frame[:min(len(frame), piece)])
			if err != nil {
				return err
			}
			frame = frame[n:]
			o.mu.Lock()
			o.writes++
			failed := o.err
			o.mu.Unlock()
			if failed != nil {
				return failed
			}
		}
	}
	return nil
}

// fail gives up what can no longer be written. It is called with the lock held
// and gives it up while it calls back.
func (o *outbox) fail(err error) {
	if err == nil || o.err != nil {
		return
	}
	if o.err = err; !errors.Is(err, ErrOutput) {
		o.err = fmt.Errorf("%w: %w", ErrOutput, err)
	}
	close(o.failed)
	after := o.after
	o.waiting, o.tail, o.after = nil, nil, nil
	o.room.Broadcast()
	o.work.Signal()
	o.mu.Unlock()
	callAll(after)
	o.mu.Lock()
}

func callAll(after []func()) {
	for _, written := range after {
		written()
	}
}

// waitRoom blocks while more than limit bytes, which is more than a piece, wait
// to be written. It never writes, because a write may block for good. It reports
// false when nothing will be written any more.
func (o *outbox) waitRoom(limit int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.size > limit && o.err == nil && !o.closed {
		o.room.Wait()
	}
	return o.err == nil && !o.closed
}

// expectProgress fails the output if the host takes nothing of what waits for
// as long as grace. It returns when everything is written or nothing will be.
func (o *outbox) expectProgress(grace time.Duration) {
	const looks = 10
	ticker := time.NewTicker(grace / looks)
	defer ticker.Stop()
	for seen, stalled := -1, 0; stalled <= looks; stalled++ {
		o.mu.Lock()
		if o.size == 0 || o.writes != seen {
			seen, stalled = o.writes, 0
		}
		o.mu.Unlock()
		select {
		case <-ticker.C:
		case <-o.exited:
			return
		case <-o.failed:
			return
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fail(ErrOutput)
}

// close waits until everything is written, or can never be, and returns the
// first error of the output.
func (o *outbox) close() error {
	o.mu.Lock()
	o.closed = true
	o.room.Broadcast()
	o.work.Signal()
	o.mu.Unlock()
	select {
	case <-o.exited:
	case <-o.failed:
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
