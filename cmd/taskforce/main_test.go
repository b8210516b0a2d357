package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// programs are what the test binary is besides a test: what it runs by one of
// these names behaves as that program.
var programs = map[string]func(){"taskforce": main, "bystander": bystander}

func TestMain(m *testing.M) { testscript.Main(leakTest{m}, programs) }

// leakTest fails the tests if they leave goroutines behind.
type leakTest struct{ *testing.M }

func (l leakTest) Run() int {
	// A program under the race detector sleeps for a second before it exits,
	// and these tests start hundreds.
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	status := l.M.Run()
	pgtest.Stop()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}
