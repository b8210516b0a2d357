package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"time"
)

const (
	// lookInterval is how often the sidecar looks whether its host still lives,
	// which the pipe does not tell when another process keeps it open, or when
	// there is nothing to write.
	lookInterval = 500 * time.Millisecond
	// lastBreath is how long a sidecar may take to end when its host is gone. A
	// transaction that has not committed by then is undone, as by any crash.
	lastBreath = 300 * time.Millisecond
)

// hostInput is the standard input. It remembers its end, also when it is seen
// before everything was read.
type hostInput struct {
	io.Reader
	ended atomic.Bool
}

// Read implements io.Reader.
func (in *hostInput) Read(p []byte) (int, error) {
	n, err := in.Reader.Read(p)
	if err != nil {
		in.ended.Store(true)
	}
	return n, err
}

// untilTold returns a context that ends when the sidecar is told to stop, with
// the cause context.Canceled, or when its host is gone, with the cause that
// watchHost found. From then on the process lives no longer than lastBreath,
// whatever it is stuck in.
func untilTold(parent context.Context, in *hostInput) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	over := make(chan struct{})
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, append(stopSignals, os.Interrupt)...)
	go func() {
		for {
			select {
			case <-over:
				return
			case s := <-signals:
				if s != os.Interrupt || in.ended.Load() {
					cancel(context.Canceled)
				}
			}
		}
	}()
	go watchHost(over, in, func(cause error) {
		cancel(cause)
		time.AfterFunc(lastBreath, func() { os.Exit(1) })
	})
	return ctx, func() {
		close(over)
		signal.Stop(signals)
		cancel(context.Canceled)
	}
}
