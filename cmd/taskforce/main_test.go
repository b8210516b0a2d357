package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// The test binary is also the program under test: what it runs by the name of a
// command below behaves as that command.
func TestMain(m *testing.M) {
	testscript.Main(leakTest{m}, map[string]func(){"taskforce": main, "bystander": bystander})
}

// leakTest fails the tests if they leave goroutines behind.
type leakTest struct{ *testing.M }

func (l leakTest) Run() int {
	// A program under the race detector sleeps for a second before it exits,
	// and these tests start hundreds.
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0")
	status := l.M.Run()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return status
}
