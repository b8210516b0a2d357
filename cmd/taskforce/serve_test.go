package main

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// bystander is a host that hands its own pipe to a sidecar and then only waits.
func bystander() {
	cmd := exec.Command("taskforce", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	_ = cmd.Run() // its status is what counts
	os.Exit(cmd.ProcessState.ExitCode())
}

// flood sends many calls at once, without reading replies: they all want the
// first admission of the task.
func (s *sidecar) flood(task int64) {
	s.t.Helper()
	for n := range flooding {
		p := reserving("run", task, 0, schema.Read, schema.Reuse)
		p.Input.OperationKey = fmt.Sprintf("task %d, call %d", task, n)
		s.send(schema.Reserve.Name, p)
	}
}

const flooding = 100

// drained reads and checks the replies to a flood, and returns the admission
// that the first call got.
func (s *sidecar) drained() *schema.Reservation {
	s.t.Helper()
	won := accepted[schema.Reservation](s.t, s.receive())
	for range flooding - 1 {
		s.receive().refused(s.t, schema.ErrGovernorFence)
	}
	return won
}

func TestEndOfInputDrains(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	s.flood(s.openTask("run", ""))
	if err := s.in.Close(); err != nil {
		t.Fatal(err)
	}
	s.drained()
	if status := s.wait(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		requests string
		status   int
	}{
		{"after shutdown", `{"jsonrpc":"2.0","id":1,"method":"shutdown"}` + "\n", 0},
		{"without shutdown", "", 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, t.TempDir())
			s.write(test.requests + `{"jsonrpc":"2.0","method":"exit"}` + "\n")
			if status := s.wait(); status != test.status {
				t.Errorf("exit status %d, want %d", status, test.status)
			}
		})
	}
}

func TestInitialize(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	first, second := serve(t, root), serve(t, root)
	a := result(first, schema.Initialize, schema.InitializeParams{Protocol: schema.Protocol})
	b := result(second, schema.Initialize, schema.InitializeParams{})
	if a.Server.Version != version || a.Store.ID == "" || a.Store != b.Store {
		t.Errorf("two sidecars of one store answer %+v and %+v", a, b)
	}
}
