//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// What was received before the signal is done and answered, what comes later is refused.
func TestTerminationDrains(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			s := serve(t, root)
			task := s.openTask("run", "")
			release := lockStore(t, root)
			s.flood(task)
			result(s, schema.Ping, schema.NoParams{}) // everything before is received, and waits for the lock
			signalTo(t, s.cmd.Process, signal)
			r := s.call(schema.Ping.Name, schema.NoParams{})
			for r.Error == nil { // until the signal is noticed
				r = s.call(schema.Ping.Name, schema.NoParams{})
			}
			r.refused(t, schema.ErrShuttingDown)
			release()
			s.drained()
			if status := s.wait(); status != 0 {
				t.Errorf("exit status %d", status)
			}
		})
	}
}

// Ctrl-C reaches the whole process group, and the host still has to settle its work.
func TestInterruptIsIgnored(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	result(s, schema.Ping, schema.NoParams{})
	signalTo(t, s.cmd.Process, syscall.SIGINT)
	result(s, schema.Ping, schema.NoParams{})
	if status := s.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// The death of the host is noticed although somebody keeps its end of the pipe open.
func TestParentDies(t *testing.T) {
	t.Parallel()
	s := launch(t, exec.CommandContext(t.Context(), "bystander", "serve", "--root", t.TempDir()))
	result(s, schema.Ping, schema.NoParams{})
	signalTo(t, s.cmd.Process, syscall.SIGKILL)
	s.wait() // returns at the end of the sidecar's output; the status is the bystander's
}

// A blocked standard error costs log lines and nothing else.
func TestBlockedLog(t *testing.T) {
	t.Parallel()
	cmd := program(t, "serve", "--root", t.TempDir())
	cmd.Stderr = blockedPipe(t)
	s := launch(t, cmd)
	const notification = `{"jsonrpc":"2.0","method":"task.open","params":{}}` + "\n" // each logs a warning
	for range 2000 {
		s.write(notification)
	}
	result(s, schema.Ping, schema.NoParams{})
	if status := s.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// blockedPipe returns a pipe that nobody reads.
func blockedPipe(t *testing.T) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return w
}

func signalTo(t *testing.T, process *os.Process, signal syscall.Signal) {
	t.Helper()
	if err := process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}
