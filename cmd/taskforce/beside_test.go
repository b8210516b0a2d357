package main

import (
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// run runs the program and returns what it prints on standard output.
func run(t *testing.T, args ...string) string {
	t.Helper()
	var stderr strings.Builder
	cmd := program(t, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("taskforce %s: %v: %s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// status and doctor see what live sidecars have acknowledged, while others of
// their calls are on the way, and are in nobody's way themselves.
func TestBesideLiveSidecars(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	first, second := serve(t, root), serve(t, root)
	r := first.reserve("run", "s", schema.Write, "repo")
	result(second, schema.Bind, binding(r, "s"))
	for range 5 {
		first.flood(second.openTask("run", ""))
		if out := run(t, "status", "--root", root, "run"); !strings.Contains(out, "running") || !strings.Contains(out, "repo") {
			t.Errorf("status shows:\n%s", out)
		}
		if out := run(t, "doctor", "--root", root); strings.Contains(out, "FAIL") {
			t.Errorf("doctor says:\n%s", out)
		}
		result(first, schema.Settle, settling(first.drained()))
	}
}

// They go on while somebody keeps the write lock.
func TestBesideWriteLock(t *testing.T) {
	t.Parallel()
	root := newStore(t)
	release := lockStore(t, root)
	defer release()
	if out := run(t, "status", "--root", root, "--busy-timeout", "1ms"); !strings.Contains(out, "run  0/6") {
		t.Errorf("status shows:\n%s", out)
	}
	run(t, "doctor", "--root", root, "--busy-timeout", "1ms")
}

// A sidecar that was killed leaves a write-ahead log. Its last calls are shown,
// and the log is left for the next sidecar.
func TestAfterKill(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := serve(t, root)
	s.reserve("run", "s", schema.Write, "repo")
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.wait()
	before, err := contents(root)
	if err != nil {
		t.Fatal(err)
	}
	if out := run(t, "status", "--root", root); !strings.Contains(out, "run  1/6") {
		t.Errorf("status shows:\n%s", out)
	}
	run(t, "doctor", "--root", root)
	after, err := contents(root)
	if err != nil {
		t.Fatal(err)
	}
	for path := range after {
		// The index of the log is shared memory, which every reader may rebuild.
		if !strings.HasSuffix(path, "-shm") && before[path] != after[path] {
			t.Errorf("%s has changed", path)
		}
	}
}
