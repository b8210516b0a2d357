package rpc_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// scratch is where the program under test is built.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "rpc"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.RemoveAll(scratch)
	os.Exit(status)
}

// binary builds the sidecar once, as it is released: without the race detector,
// so that its use of memory and time is its own.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "taskforce")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	build := exec.Command("go", "build", "-o", path, "../cmd/taskforce")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the sidecar: %w\n%s", err, out)
	}
	return path, nil
})

// sidecarCommand is `taskforce serve` on the folder.
func sidecarCommand(t testing.TB, root string, flags ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), path, append([]string{"serve", "--root", root}, flags...)...)
}
