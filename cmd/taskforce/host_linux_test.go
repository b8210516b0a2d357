package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"golang.org/x/sys/unix"
)

// How a sidecar ends when its host dies, on Linux, where a test can adopt a
// process whose parent has died, and so learn when it ended and what it used.

func init() {
	programs["host"] = hostProgram
	programs["holder"] = func() { _, _ = io.Copy(io.Discard, os.Stdin) }
}

// hostProgram is a host that is killed in the middle of its work: it has a
// reservation, prints the process id of its sidecar and waits. Arguments after
// the root folder say what else it does, once it is told to.
func hostProgram() {
	sidecar := exec.Command("taskforce", "serve", "--root", os.Args[1])
	in, err := sidecar.StdinPipe()
	must(err)
	out, err := sidecar.StdoutPipe()
	must(err)
	must(sidecar.Start())
	replies := bufio.NewReader(out)
	ask := func(request string) {
		write(in, request)
		if line, err := replies.ReadString('\n'); err != nil || strings.Contains(line, `"error"`) {
			panic(line)
		}
	}
	const caller = `"run",{"role":"lead","sessionId":"s"}`
	opening := `{"jsonrpc":"2.0","id":1,"method":"task.open","params":[{"title":"a"},` + caller + `]}`
	ask(opening)
	ask(`{"jsonrpc":"2.0","id":2,"method":"governor.reserve","params":[{"operation_key":"k","task_id":1,"generation":0,` +
		`"mode":"write","kind":"new","resources":["r"]},` + caller + `]}`)
	fmt.Println(sidecar.Process.Pid)
	_, err = os.Stdin.Read(make([]byte, 1))
	must(err)

	holder := exec.Command("holder")
	holder.Stdin = os.NewFile(3, "lifetime")
	for _, what := range os.Args[2:] {
		switch what {
		case "hold-input":
			holder.ExtraFiles = append(holder.ExtraFiles, in.(*os.File))
		case "hold-output":
			holder.ExtraFiles = append(holder.ExtraFiles, out.(*os.File))
		case "write":
			write(in, opening)
		case "flood": // until the sidecar stops reading
			go func() {
				for {
					write(in, `{"jsonrpc":"2.0","id":null,"method":"governor.snapshot","params":["run"]}`)
				}
			}()
		}
	}
	must(holder.Start())
	fmt.Println("ready")
	select {}
}

// adopt makes the test the parent of processes whose own has died.
var adopt = sync.OnceValue(func() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) })

// orphan is a sidecar whose parent has died.
type orphan struct {
	t      *testing.T
	pid    int
	before time.Duration // of the processor, when its host died
	died   time.Time
}

// killed runs a host and kills it. Before the host does what else it does, meanwhile is called.
func killed(t *testing.T, root string, meanwhile func(), also ...string) *orphan {
	t.Helper()
	if err := adopt(); err != nil {
		t.Fatal(err)
	}
	lifetime, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end.Close(); lifetime.Close() })
	host := exec.CommandContext(t.Context(), "host", append([]string{root}, also...)...)
	host.Stderr = os.Stderr
	host.ExtraFiles = []*os.File{lifetime}
	in, err := host.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscanln(out, &pid); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	write(in, "")
	if _, err := fmt.Fscanln(out, new(string)); err != nil {
		t.Fatal(err)
	}
	o := &orphan{t: t, pid: pid, before: atRest(t, pid), died: time.Now()}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait() // it was killed
	return o
}

// processorTime is what a process has used of the processor.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	var ticks int64
	for _, field := range fields[11:13] { // user and system
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / 100
}

// atRest waits until a process no longer uses the processor, and returns what it has used.
func atRest(t *testing.T, pid int) time.Duration {
	t.Helper()
	used := processorTime(t, pid)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
		now := processorTime(t, pid)
		if now == used {
			return now
		}
		used = now
	}
	t.Fatal("the sidecar does not come to rest")
	return 0
}

// gone checks that the sidecar ends in time, by itself and without using the
// processor much.
func (o *orphan) gone(within time.Duration) {
	o.t.Helper()
	var status unix.WaitStatus
	var usage unix.Rusage
	waited := make(chan error, 1)
	go func() {
		_, err := unix.Wait4(o.pid, &status, 0, &usage)
		waited <- err
	}()
	select {
	case err := <-waited:
		if err != nil {
			o.t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		_ = unix.Kill(o.pid, unix.SIGKILL)
		<-waited
		o.t.Fatal("the sidecar is still there")
	}
	if took := time.Since(o.died); took > within {
		o.t.Errorf("the sidecar is gone after %v", took)
	}
	used := time.Duration(usage.Utime.Nano()+usage.Stime.Nano()) - o.before
	if o.t.Logf("the sidecar has used the processor for %v since", used); used > processorLimit {
		o.t.Errorf("which is more than %v", processorLimit)
	}
	if status.Signaled() {
		o.t.Errorf("the sidecar was ended by %v", status.Signal())
	}
}

// stillHeld checks that the reservation of hostProgram occupies what it did.
func stillHeld(t *testing.T, root string) {
	t.Helper()
	s := serve(t, root)
	summary := result(s, schema.GetSummary, schema.RunParams{RunID: "run"})
	if summary.Used.Active != 1 || len(summary.Holds) != 1 {
		t.Errorf("the run occupies %+v", summary)
	}
	if status := s.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// Whatever else keeps its pipes open, and whatever it is stuck in, a sidecar is
// gone soon after its host, and releases nothing.
func TestHostDies(t *testing.T) {
	tests := []struct {
		name   string
		also   []string
		within time.Duration
	}{
		{"idle", nil, time.Second},
		{"flooding without reading", []string{"flood"}, time.Second},
		{"its pipes are held by another", []string{"hold-input", "hold-output"}, 2 * time.Second},
		{"its input is held by another", []string{"hold-input"}, time.Second},
		{"its output is held by another", []string{"hold-output"}, time.Second},
		{"its full output is held by another", []string{"hold-output", "flood"}, 2 * time.Second},
		{"its pipes are held, and full", []string{"hold-input", "hold-output", "flood"}, 2 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			killed(t, root, func() {}, test.also...).gone(test.within)
			stillHeld(t, root)
		})
	}
}

// A transaction that waits for another process's does not outlive the host.
func TestHostDiesWhileTheStoreIsLocked(t *testing.T) {
	t.Parallel()
	tests := map[time.Duration][]string{
		time.Second:     {"write"},
		2 * time.Second: {"write", "hold-input", "hold-output"},
	}
	for within, also := range tests {
		root := t.TempDir()
		var release func()
		killed(t, root, func() { release = lockStore(t, root) }, also...).gone(within)
		release()
		stillHeld(t, root)
	}
}

// The same behind a shell, which is killed while the host lives.
func TestWrapperDies(t *testing.T) {
	t.Parallel()
	if err := adopt(); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	s := launch(t, exec.CommandContext(t.Context(), "sh", "-c", `taskforce serve --root "$0"; true`, root))
	result(s, schema.Ping, schema.NoParams{})
	child := childOf(t, s.cmd.Process.Pid)
	o := &orphan{t: t, pid: child, before: processorTime(t, child), died: time.Now()}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.cmd.Process.Wait(); err != nil { // and leave the pipes open
		t.Fatal(err)
	}
	o.gone(2 * time.Second)
}

// childOf finds the process that another has started.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if children, err := os.ReadFile(path); err == nil && len(children) > 0 {
			pid, err := strconv.Atoi(strings.Fields(string(children))[0])
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("there is no child")
	return 0
}

// Descriptors that are closed from the start belong to the null device, and
// never to the database.
func TestStartedWithClosedDescriptors(t *testing.T) {
	t.Parallel()
	for _, closed := range []string{"<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"} {
		t.Run(closed, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			s := launch(t, exec.CommandContext(t.Context(), "sh", "-c", `exec taskforce serve --root "$0" `+closed, root))
			if closed == "2>&-" {
				result(s, schema.Ping, schema.NoParams{})
			}
			if status := s.end(); status != 0 {
				t.Errorf("exit status %d", status)
			}
			after := serve(t, root) // the store is whole
			result(after, schema.Ping, schema.NoParams{})
			after.end()
		})
	}
}

// While it serves, the three descriptors are what they were, or the null device.
func TestClosedDescriptorsAreTheNullDevice(t *testing.T) {
	t.Parallel()
	s := launch(t, exec.CommandContext(t.Context(), "sh", "-c", `exec taskforce serve --root "$0" 2>&-`, t.TempDir()))
	result(s, schema.Ping, schema.NoParams{})
	target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/2", s.cmd.Process.Pid))
	if err != nil || target != os.DevNull {
		t.Errorf("descriptor 2 is %s (%v)", target, err)
	}
	s.end()
}
