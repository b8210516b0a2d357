//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dsh-taskforce/sidecar/rpc"
	"golang.org/x/sys/unix"
)

// stopSignals are the signals that ask for an orderly end. An interrupt is none
// while the input is open: Ctrl-C reaches the whole process group, and the host
// still has to settle its work.
var stopSignals = []os.Signal{syscall.SIGTERM, syscall.SIGHUP}

// keepFilesPrivate makes every file that SQLite creates readable by the user only.
func keepFilesPrivate() { syscall.Umask(0o077) }

// surviveBrokenPipes turns the signal that a write to a closed pipe raises into
// an error of that write: a host may close standard error and go on.
//
// Standard descriptors that are closed from the start need no care: the Go
// runtime opens them on the null device before anything else can have them.
func surviveBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }

// watchHost looks for a host that is gone: it no longer reads, or the parent has
// changed, which happens when it dies. It also looks for the end of an input
// that is not read, because nothing more may be in flight.
func watchHost(over <-chan struct{}, in *hostInput, gone func(cause error)) {
	parent := os.Getppid()
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return
		case <-ticker.C:
		}
		if hungUp(syscall.Stdin, unix.POLLIN) {
			in.ended.Store(true)
		}
		switch {
		case hungUp(syscall.Stdout, unix.POLLOUT):
			gone(rpc.ErrOutput)
			return
		case os.Getppid() != parent:
			gone(rpc.ErrHostGone)
			return
		}
	}
}

// hungUp reports whether the other end of a pipe is closed. Some systems tell it
// only to whoever asks for what the descriptor is for.
func hungUp(descriptor int, purpose int16) bool {
	fds := []unix.PollFd{{Fd: int32(descriptor), Events: purpose}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
