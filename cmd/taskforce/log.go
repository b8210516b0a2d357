package main

import (
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
)

// newLog returns a log that writes warnings and errors, or with verbose all, and
// never blocks. flush gives what was logged last a moment to be written.
func newLog(to io.Writer, verbose bool) (log *slog.Logger, flush func()) {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	w := newDropWriter(to)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), w.flush
}

// dropWriter passes log lines on without ever blocking: a host that does not
// read standard error, or has closed it, loses lines and nothing else.
type dropWriter struct {
	lines   chan logLine
	dropped atomic.Int64
}

// logLine is a line, or a question whether everything before it is written.
type logLine struct {
	text    []byte
	written chan struct{}
}

// newDropWriter starts the goroutine that writes. It ends with the process: a
// write to a full pipe cannot be interrupted.
func newDropWriter(to io.Writer) *dropWriter {
	w := &dropWriter{lines: make(chan logLine, 256)}
	go w.loop(to)
	return w
}

func (w *dropWriter) loop(to io.Writer) {
	for line := range w.lines {
		if n := w.dropped.Swap(0); n > 0 {
			_, _ = fmt.Fprintf(to, "level=WARN msg=\"log lines were dropped\" count=%d\n", n)
		}
		if line.written != nil {
			close(line.written)
			continue
		}
		_, _ = to.Write(line.text)
	}
}

// Write implements io.Writer. The caller may use p again, so it is copied.
func (w *dropWriter) Write(p []byte) (int, error) {
	select {
	case w.lines <- logLine{text: append([]byte(nil), p...)}:
	default:
		w.dropped.Add(1)
	}
	return len(p), nil
}

// flush waits for what was logged to be written, if somebody reads it.
func (w *dropWriter) flush() {
	const moment = 200 * time.Millisecond
	deadline := time.NewTimer(moment)
	defer deadline.Stop()
	written := make(chan struct{})
	select {
	case w.lines <- logLine{written: written}:
	case <-deadline.C:
		return
	}
	select {
	case <-written:
	case <-deadline.C:
	}
}

// complain writes why the command failed, but does not wait for a reader that never reads.
func complain(to io.Writer, why string) {
	w := newDropWriter(to)
	_, _ = io.WriteString(w, why+"\n")
	w.flush()
}
