//go:build failpoints

package sqlite

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// A binary that is built with the tag failpoints fails on purpose, where and
// how the environment says: TASKFORCE_FAILPOINT=point=action@n does the action
// when the point is reached for the n-th time, and delay each time from then on.
//
//	point   begin, savepoint, write, commit: before that statement;
//	        committed: after the commit; reply: before a call is answered
//	action  crash, error, panic, delay
//
// What is released is built without the tag, and has none of this.

// failing is what the environment asks for.
var failing = parseFailpoint(os.Getenv("TASKFORCE_FAILPOINT"))

// errFailpoint is the failure that the action error makes.
var errFailpoint = errors.New("a failure on purpose")

const failpointDelay = 20 * time.Millisecond

type failpointPlan struct {
	point, action string
	at            int64
	reached       atomic.Int64
}

func parseFailpoint(text string) *failpointPlan {
	p := &failpointPlan{}
	point, rest, _ := strings.Cut(text, "=")
	action, at, _ := strings.Cut(rest, "@")
	n, err := strconv.ParseInt(at, 10, 64)
	if text == "" {
		return p
	}
	if err != nil {
		panic(fmt.Sprintf("TASKFORCE_FAILPOINT=%s is not point=action@n", text))
	}
	p.point, p.action, p.at = point, action, n
	return p
}

// failpoint fails if the plan says so. It is given a name, or the statement
// that is about to run.
func failpoint(at string) error {
	if failing.point == "" || pointOf(at) != failing.point {
		return nil
	}
	n := failing.reached.Add(1)
	if n != failing.at && (failing.action != "delay" || n < failing.at) {
		return nil
	}
	switch failing.action {
	case "crash":
		crash()
	case "panic":
		panic(errFailpoint)
	case "delay":
		time.Sleep(failpointDelay)
		return nil
	}
	return errFailpoint
}

// pointOf is the point before a statement, or the name itself.
func pointOf(at string) string {
	if at == "BEGIN IMMEDIATE" {
		return "begin"
	}
	switch verb, _, _ := strings.Cut(at, " "); verb {
	case "SAVEPOINT":
		return "savepoint"
	case "INSERT", "UPDATE", "DELETE":
		return "write"
	case "COMMIT":
		return "commit"
	}
	return at
}

// crash ends the process at once, as the death of its machine would.
func crash() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(syscall.SIGKILL)
	}
	if err != nil {
		os.Exit(137)
	}
	select {} // until the signal arrives
}
