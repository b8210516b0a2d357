package sqlite

import (
	"context"
	"time"
)

// SQLite copies the log into the database after a commit that makes it a
// thousand pages long, and begins it anew with the next write that finds all of
// it copied and nobody reading in it. While reads overlap that never happens, and
// the log grows for as long as they come. So when it has become long, writes stop
// until the reads that are under way have ended; those that begin meanwhile need
// no log. The longer it is the longer they are waited for, and if that is in vain
// (a process may keep a read open for hours) the log may grow by a quarter before
// it is tried again. doctor names such a process.
const (
	// longLog is the length, in bytes, that is done something about.
	longLog = 16 << 20
	// restartWait is how long reads are waited for per MiB of the log, and
	// longestRestart how long at most. Both are shorter than a busy timeout.
	restartWait    = 16 * time.Millisecond
	longestRestart = time.Second
)

// restarter begins a long log anew, in a goroutine of its own.
type restarter struct {
	writer *writer
	// at is the length of the log from which on it is due.
	at     int64
	due    chan int64
	exited chan struct{}
}

func (r *restarter) start(w *writer) {
	r.writer, r.at = w, longLog
	r.due = make(chan int64, 1)
	r.exited = make(chan struct{})
	go r.loop()
}

// stop ends the goroutine.
func (r *restarter) stop() {
	close(r.due)
	<-r.exited
}

// grown is told by the writer how long the log is after a commit.
func (r *restarter) grown(length int64) {
	if length < r.at {
		return
	}
	r.at = length + length/4
	select {
	case r.due <- length:
	default: // it is at it
	}
}

func (r *restarter) loop() {
	defer close(r.exited)
	for length := range r.due {
		r.writer.restartLog(length)
	}
}

// restartLog waits for the reads in the log and lets the next write begin it
// anew, which cuts it to longLog. A failure is nobody's: what is acknowledged is
// in the log, and it is tried again.
func (w *writer) restartLog(length int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c, ctx := w.conn, context.Background()
	if c == nil || w.store.checkFiles(ctx, c) != nil {
		return
	}
	w.turn.take()
	defer w.turn.give()
	wait := min(time.Duration(length>>20)*restartWait, longestRestart, w.store.options.BusyTimeout)
	if c.setBusyTimeout(ctx, wait) != nil {
		return
	}
	var busy, frames, copied int64
	err := c.c.QueryRowContext(ctx, "PRAGMA wal_checkpoint(RESTART)").Scan(&busy, &frames, &copied)
	if err == nil && busy == 0 {
		w.restarts.at = longLog + longLog/4 // it is cut by the next commit
	}
}
