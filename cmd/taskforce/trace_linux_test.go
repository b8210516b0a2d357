package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// trace is a program under strace.
type trace struct {
	t    *testing.T
	file string
}

// syscall is one call of the program to the operating system. begun and ended
// are positions in the order of all that happened.
type systemCall struct {
	name, args, result string
	begun, ended       int
}

// traced returns a command that runs a program under strace. Without the right
// to trace the test is skipped.
func traced(t *testing.T, options []string, program *exec.Cmd) (*exec.Cmd, trace) {
	t.Helper()
	tr := trace{t, filepath.Join(t.TempDir(), "trace")}
	probe := exec.CommandContext(t.Context(), "strace", "-qq", "-o", os.DevNull, "true")
	if out, err := probe.CombinedOutput(); err != nil {
		t.Skipf("strace cannot attach: %v: %s", err, out)
	}
	command := append([]string{"-f", "-y", "-qq", "-s", "300", "-o", tr.file}, options...)
	cmd := exec.CommandContext(t.Context(), "strace", append(append(command, program.Path), program.Args[1:]...)...)
	cmd.Env = program.Env
	return cmd, tr
}

var (
	wholeCall   = regexp.MustCompile(`^(\d+) +(\w+)\((.*)\) += (.*)$`)
	begunCall   = regexp.MustCompile(`^(\d+) +(\w+)\((.*) <unfinished \.\.\.>$`)
	resumedCall = regexp.MustCompile(`^(\d+) +<\.\.\. (\w+) resumed>(.*)\) += (.*)$`)
)

// calls returns what was traced, after the end of the program.
func (tr trace) calls() []systemCall {
	tr.t.Helper()
	text, err := os.ReadFile(tr.file)
	if err != nil {
		tr.t.Fatal(err)
	}
	var calls []systemCall
	begun := map[string]int{} // the position in calls, by thread
	for n, line := range strings.Split(string(text), "\n") {
		if m := wholeCall.FindStringSubmatch(line); m != nil {
			calls = append(calls, systemCall{m[2], m[3], m[4], n, n})
		} else if m := begunCall.FindStringSubmatch(line); m != nil {
			begun[m[1]] = len(calls)
			calls = append(calls, systemCall{m[2], m[3], "", n, -1})
		} else if m := resumedCall.FindStringSubmatch(line); m != nil {
			c := &calls[begun[m[1]]]
			c.args, c.result, c.ended = c.args+m[3], m[4], n
		}
	}
	return calls
}

// on says that a call is about the file.
func (c systemCall) on(path string) bool {
	return strings.Contains(c.args, "<"+path+">") || strings.Contains(c.args, "<"+path+">(deleted)") || strings.Contains(c.args, `"`+path+`"`)
}

// opens says that a call opens a file.
func (c systemCall) opens() bool { return c.name == "open" || strings.HasPrefix(c.name, "openat") }
