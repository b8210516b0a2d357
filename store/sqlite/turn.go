package sqlite

import (
	"encoding/binary"
	"os"
	"sync"
	"time"
)

const (
	// turnWait is how long a writer waits while no turn is taken. A process that
	// was stopped while it holds the turn delays each other process once by this much.
	turnWait = 250 * time.Millisecond
	// turnLook is how often a writer that waits looks whether turns are taken.
	turnLook = turnWait / 5
)

// turn makes the processes that share a file take turns at writing, instead of
// sleeping and trying again as SQLite does, which lets the busiest win. It is
// two advisory locks on a file beside the database: *next* and *turn*. Whoever
// wants the turn takes next, then turn, then gives next back; so a writer that
// has just given up the turn queues behind the one that already has next. The
// operating system releases both when a process dies. Whoever has got the turn
// counts it in the file, so that those who wait can tell a long queue, which they
// stay in, from a turn that nobody gives back.
//
// The turn is a courtesy and no protection: BEGIN IMMEDIATE stays the
// authority, and a writer that does not queue, or has waited for too long, is
// as safe as any other.
type turn struct {
	file *os.File
	// longest bounds the wait for a turn, however many are taken meanwhile.
	longest time.Duration
	// asked wakes the goroutine that waits for the locks: a blocked lock call
	// can be neither timed nor woken, so the writer itself must not make it.
	asked   chan struct{}
	granted chan struct{}

	mu sync.Mutex
	// writing says that the writer is between take and give, wanted that it
	// waits, held that it has the turn, late that it went on without and the
	// locks are still to come.
	writing, wanted, held, late bool
}

// The two locks are bytes of the file, and so is the count of the turns.
const (
	nextByte = 0
	turnByte = 1
	countAt  = 8
)

// openTurn opens the lock file. Without one (a folder that cannot be written)
// writers do not queue.
func openTurn(path string, longest time.Duration) *turn {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil
	}
	t := &turn{file: file, longest: longest, asked: make(chan struct{}, 1), granted: make(chan struct{}, 1)}
	go t.loop()
	return t
}

// close ends the goroutine. If it is blocked, it ends when the locks come or
// with the process.
func (t *turn) close() {
	if t != nil {
		close(t.asked)
	}
}

// takeNow takes the turn if that needs no waiting. If it reports true, one give
// follows.
func (t *turn) takeNow() bool {
	if t == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.late || !t.tryBoth() {
		return false
	}
	t.writing, t.held = true, true
	t.count()
	return true
}

// take waits for the turn while turns are taken, and not at all while an earlier
// wait is still unanswered. Each take is followed by one give.
func (t *turn) take() {
	if t == nil {
		return
	}
	t.mu.Lock()
	t.writing = true
	if t.late {
		t.mu.Unlock()
		return
	}
	if t.held = t.tryBoth(); t.held {
		t.count()
		t.mu.Unlock()
		return
	}
	t.wanted = true
	t.mu.Unlock()
	t.asked <- struct{}{}
	if t.await() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wanted = false; t.held { // it came just now
		<-t.granted
		return
	}
	t.late = true
}

// await reports whether the turn came before turns have stopped to be taken.
func (t *turn) await() bool {
	ticker := time.NewTicker(turnLook)
	defer ticker.Stop()
	began, quiet, count := time.Now(), time.Duration(0), t.counted()
	for quiet+turnLook < turnWait && time.Since(began) < t.longest {
		select {
		case <-t.granted:
			return true
		case <-ticker.C:
		}
		if now := t.counted(); now != count {
			count, quiet = now, 0
		} else {
			quiet += turnLook
		}
	}
	return false
}

// count says to the others that a turn was taken. If it cannot be written they
// wait for less time than they could.
func (t *turn) count() {
	_, _ = t.file.WriteAt(binary.LittleEndian.AppendUint64(nil, t.counted()+1), countAt)
}

func (t *turn) counted() uint64 {
	var text [8]byte
	_, _ = t.file.ReadAt(text[:], countAt) // zero in a new file
	return binary.LittleEndian.Uint64(text[:])
}

// give gives the turn back, if take got it.
func (t *turn) give() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writing = false
	if t.held {
		t.held = false
		unlockByte(t.file, turnByte)
	}
}

// tryBoth takes the turn if nobody else has it or queues for it.
func (t *turn) tryBoth() bool {
	if !lockByte(t.file, nextByte, false) {
		return false
	}
	defer unlockByte(t.file, nextByte)
	return lockByte(t.file, turnByte, false)
}

// loop waits for the locks when it is asked to.
func (t *turn) loop() {
	defer t.file.Close()
	for range t.asked {
		if lockByte(t.file, nextByte, true) {
			t.arrived(lockByte(t.file, turnByte, true))
			unlockByte(t.file, nextByte)
		} else {
			t.arrived(false)
		}
	}
}

// arrived hands the turn to the writer, or back if it is done. One that went on
// without the turn and is still at it gets it too: while the others take turns,
// the lock that it polls for is hardly ever free, so they must wait for once.
// Locks that the file system does not support count as had.
func (t *turn) arrived(locked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if locked && (t.wanted || t.writing) {
		t.count()
	}
	if t.wanted {
		t.wanted, t.held = false, locked
		t.granted <- struct{}{}
		return
	}
	t.late = false
	switch {
	case locked && t.writing:
		t.held = true
	case locked:
		unlockByte(t.file, turnByte)
	}
}
