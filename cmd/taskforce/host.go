package main

import (
	"context"
	"os"
	"os/signal"
	"time"
)

// parentInterval is how often the sidecar looks whether its parent still lives.
const parentInterval = 500 * time.Millisecond

// untilTold returns a context that ends when the sidecar is told to stop, or
// when its parent has died behind a pipe that another process keeps open.
// An interrupt is ignored: Ctrl-C reaches the whole process group, and the host
// still has to settle its work.
func untilTold(parent context.Context) (context.Context, context.CancelFunc) {
	signal.Ignore(os.Interrupt)
	ctx, stop := signal.NotifyContext(parent, stopSignals...)
	ctx, cancel := context.WithCancel(ctx)
	origin := os.Getppid()
	go func() {
		ticker := time.NewTicker(parentInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if os.Getppid() != origin {
					cancel()
				}
			}
		}
	}()
	return ctx, func() { cancel(); stop() }
}
