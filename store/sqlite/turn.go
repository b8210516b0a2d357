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
// sleeping and trying again as SQLite does, which lets the busiest win. It is a
// queue of advisory locks on a file beside the database: whoever wants the turn
// draws a number, locks the byte of that number, and waits for the lock on the
// byte before, which its predecessor holds until it gives up the turn. So turns go
// round in order, each end of a turn wakes one process, and the operating system
// releases the locks of one that dies. Whoever has got the turn counts it in the
// file, so that those who wait can tell a long queue, which they stay in, from a
// turn that nobody gives back.
//
// The turn is a courtesy and no protection: BEGIN IMMEDIATE stays the
// authority, and a writer that does not queue, or has waited for too long, or
// whose predecessor has died while it waited, is as safe as any other.
type turn struct {
	file *os.File
	// longest bounds the wait for a turn, however many are taken meanwhile.
	longest time.Duration
	// asked wakes the goroutine that waits for the locks: a blocked lock call
	// can be neither timed nor woken, so the writer itself must not make it.
	asked   chan struct{}
	granted chan struct{}

	mu sync.Mutex
	// place is the byte that says that this process has the turn or waits for it.
	place int64
	// writing says that the writer is between take and give, wanted that it
	// waits, held that it has the turn, late that it went on without and the
	// locks are still to come.
	writing, wanted, held, late bool
}

// What is where in the file.
const (
	doorByte   = 0 // locked while a number is drawn
	turnsAt    = 8 // counts the turns
	numberAt   = 16
	firstPlace = 1 << 16 // the byte of number 0
	places     = 1 << 20 // after so many numbers the bytes are used again
)

func placeOf(number uint64) int64 { return firstPlace + int64(number%places) } //nolint:gosec // it is small

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
	if t.late || !t.tryTurn() {
		return false
	}
	t.writing, t.held = true, true
	t.countTurn()
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
	if t.held = t.tryTurn(); t.held {
		t.countTurn()
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
	began, quiet, count := time.Now(), time.Duration(0), t.read(turnsAt)
	for quiet+turnLook < turnWait && time.Since(began) < t.longest {
		select {
		case <-t.granted:
			return true
		case <-ticker.C:
		}
		if now := t.read(turnsAt); now != count {
			count, quiet = now, 0
		} else {
			quiet += turnLook
		}
	}
	return false
}

// countTurn says to the others that a turn was taken. If that cannot be written
// they wait for less time than they could.
func (t *turn) countTurn() { t.write(turnsAt, t.read(turnsAt)+1) }

func (t *turn) read(at int64) uint64 {
	var text [8]byte
	_, _ = t.file.ReadAt(text[:], at) // zero in a new file
	return binary.LittleEndian.Uint64(text[:])
}

func (t *turn) write(at int64, number uint64) bool {
	_, err := t.file.WriteAt(binary.LittleEndian.AppendUint64(nil, number), at)
	return err == nil
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
		unlockByte(t.file, t.place)
	}
}

// tryTurn takes the turn if nobody else has it or queues for it: the byte of the
// number that was drawn last is then free, and whoever comes next waits for it.
func (t *turn) tryTurn() bool {
	if !lockByte(t.file, doorByte, false) {
		return false
	}
	defer unlockByte(t.file, doorByte)
	t.place = placeOf(t.read(numberAt))
	return lockByte(t.file, t.place, false)
}

// draw draws a number and locks its byte. It returns the byte to wait for.
func (t *turn) draw() (before int64, drawn bool) {
	if !lockByte(t.file, doorByte, true) {
		return 0, false
	}
	defer unlockByte(t.file, doorByte)
	last := t.read(numberAt)
	t.place = placeOf(last + 1)
	if !lockByte(t.file, t.place, false) {
		return 0, false
	}
	if !t.write(numberAt, last+1) {
		unlockByte(t.file, t.place)
		return 0, false
	}
	return placeOf(last), true
}

// loop waits for the turn when it is asked to.
func (t *turn) loop() {
	defer t.file.Close()
	for range t.asked {
		before, drawn := t.draw()
		if !drawn {
			t.arrived(false)
			continue
		}
		came := lockByte(t.file, before, true)
		if unlockByte(t.file, before); !came { // nobody else waits for it
			unlockByte(t.file, t.place)
		}
		t.arrived(came)
	}
}

// arrived hands the turn to the writer, or back if it is done. One that went on
// without the turn and is still at it gets it too: while the others take turns,
// the lock that it polls for is hardly ever free, so they must wait for once.
// Where the file system supports no locks nobody waits.
func (t *turn) arrived(locked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if locked && (t.wanted || t.writing) {
		t.countTurn()
	}
	if t.wanted {
		t.wanted, t.held = false, locked
		t.granted <- struct{}{}
		return
	}
	t.late = false
	if t.held = locked && t.writing; !t.held && locked {
		unlockByte(t.file, t.place)
	}
}
