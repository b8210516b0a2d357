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

// flood sends many calls at once, without reading replies.
const flood = 100

func (s *sidecar) flood(task int64) {
	for n := range flood {
		p := reserving("run", task, 0, schema.Read, schema.Reuse)
		p.Input.OperationKey = fmt.Sprint(n)
		s.send(schema.Reserve.Name, p)
	}
}

// drained checks the replies to a flood: one admission, the others find the
// task's generation moved on.
func drained(t *testing.T, replies []reply) {
	t.Helper()
	if len(replies) != flood {
		t.Fatalf("%d replies, want %d", len(replies), flood)
	}
	for n, r := range replies {
		if n == 0 {
			accepted[schema.Reservation](t, r)
		} else {
			r.refused(t, schema.ErrGovernorFence)
		}
	}
}

func TestEndOfInputDrains(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	s.flood(s.openTask("run", ""))
	if err := s.in.Close(); err != nil {
		t.Fatal(err)
	}
	var replies []reply
	for range flood {
		replies = append(replies, s.receive())
	}
	drained(t, replies)
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
