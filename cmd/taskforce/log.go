package main

import (
	"fmt"
	"io"
	"sync/atomic"
)

// dropWriter passes log lines on without ever blocking: a host that does not
// read standard error, or has closed it, loses lines and nothing else.
type dropWriter struct {
	lines   chan []byte
	dropped atomic.Int64
}

// newDropWriter starts the goroutine that writes. It ends with the process: a
// write to a full pipe cannot be interrupted.
func newDropWriter(to io.Writer) *dropWriter {
	w := &dropWriter{lines: make(chan []byte, 256)}
	go func() {
		for line := range w.lines {
			if n := w.dropped.Swap(0); n > 0 {
				_, _ = fmt.Fprintf(to, "level=WARN msg=\"log lines were dropped\" count=%d\n", n)
			}
			_, _ = to.Write(line)
		}
	}()
	return w
}

// Write implements io.Writer. The caller may use p again, so it is copied.
func (w *dropWriter) Write(p []byte) (int, error) {
	select {
	case w.lines <- append([]byte(nil), p...):
	default:
		w.dropped.Add(1)
	}
	return len(p), nil
}
