package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// build builds a program of the module as it is released, or with more flags,
// and returns its path. The test binary is a sidecar too, but not the one that
// is released, and slow under the race detector.
func build(t *testing.T, folder string, flags ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), filepath.Base(folder))
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	arguments := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", binary}, flags...)
	cmd := exec.Command("go", append(arguments, "github.com/dsh-taskforce/sidecar/"+folder)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(cmd.Args[1:], " "), err, output)
	}
	return binary
}
