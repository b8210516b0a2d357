//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
)

// pipes are a sidecar and the host's ends of its three pipes, to be closed one by one.
type pipes struct {
	t           *testing.T
	cmd         *exec.Cmd
	in          *os.File
	out, stderr *os.File
	replies     *bufio.Reader
}

// pipe starts a sidecar in a process group of its own.
func pipe(t *testing.T, root string, flags ...string) *pipes {
	t.Helper()
	p := &pipes{t: t, cmd: exec.CommandContext(t.Context(), "taskforce", append([]string{"serve", "--root", root}, flags...)...)}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ends := make([]*os.File, 6)
	for i := range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ends[2*i], ends[2*i+1] = r, w
	}
	p.cmd.Stdin, p.in, p.out, p.cmd.Stdout, p.stderr, p.cmd.Stderr = ends[0], ends[1], ends[2], ends[3], ends[4], ends[5]
	p.replies = bufio.NewReader(p.out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, theirs := range []*os.File{ends[0], ends[3], ends[5]} {
		theirs.Close()
	}
	t.Cleanup(func() {
		for _, ours := range []*os.File{p.in, p.out, p.stderr} {
			ours.Close() // perhaps again
		}
		_ = p.cmd.Wait()
	})
	return p
}

// ask sends a request and reads its reply.
func (p *pipes) ask(request string) string {
	p.t.Helper()
	write(p.in, request)
	line, err := p.replies.ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	return line
}

// ends waits for the end of the process and returns its exit status.
func (p *pipes) ends(within time.Duration) int {
	p.t.Helper()
	begun := time.Now()
	ended := make(chan struct{})
	go func() {
		_ = p.cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(4 * within):
		_ = p.cmd.Process.Kill()
		<-ended
		p.t.Fatal("the sidecar is still there")
	}
	if took := time.Since(begun); took > within {
		p.t.Errorf("the sidecar has ended after %v", took)
	}
	return p.cmd.ProcessState.ExitCode()
}

const (
	ping        = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	logged      = `{"jsonrpc":"2.0","method":"task.open","params":{}}` // a warning
	snapshotRun = `{"jsonrpc":"2.0","id":1,"method":"governor.snapshot","params":["run"]}`
)

func write(to io.Writer, line string) {
	_, err := io.WriteString(to, line+"\n")
	must(err)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Everything that is received before the end of input is answered.
func TestTenThousandRequests(t *testing.T) {
	t.Parallel()
	p := pipe(t, t.TempDir())
	const requests = 10_000
	go func() {
		for i := range requests {
			switch i % 10 {
			case 0:
				write(p.in, `{"jsonrpc":"2.0","id":1,"method":"task.open","params":[{"title":"a"},"run",{"role":"lead","sessionId":"s"}]}`)
			case 1:
				write(p.in, `{"jsonrpc":"2.0","id":null,"method":"governor.summary","params":["run"]}`)
			default:
				write(p.in, fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d","method":"ping"}`, i))
			}
		}
		p.in.Close()
	}()
	replies := 0
	for ; ; replies++ {
		if _, err := p.replies.ReadString('\n'); err != nil {
			break
		}
	}
	if replies != requests {
		t.Errorf("%d replies to %d requests", replies, requests)
	}
	if status := p.ends(time.Second); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// A host that closes its end of the output is noticed, whether or not there is
// anything to write, and one that closes standard error alone is served on.
func TestClosedPipes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                  string
		out, stderr, withLine bool
		status                int
	}{
		{"output, nothing to write", true, false, false, 1},
		{"output, then a request", true, false, true, 1},
		{"both, nothing to write", true, true, false, 1},
		{"both, then a request", true, true, true, 1},
		{"standard error", false, true, true, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := pipe(t, t.TempDir())
			p.ask(ping)
			if test.out {
				p.out.Close()
			}
			if test.stderr {
				p.stderr.Close()
				write(p.in, logged)
			}
			if test.withLine {
				write(p.in, ping)
			}
			if !test.out {
				p.ask(ping)
				p.ask(ping)
				p.in.Close()
			}
			if status := p.ends(2 * time.Second); status != test.status {
				t.Errorf("exit status %d, want %d", status, test.status)
			}
		})
	}
}

func TestNullInput(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "taskforce", "serve", "--root", t.TempDir()) // exec gives it the null device
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("ends with %v and %q", err, out)
	}
}

// Ctrl-C reaches the whole process group. While the input is open the sidecar
// ignores it; when there is none it ends like any program.
func TestInterruptOfTheGroup(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	history(t, root)
	p := pipe(t, root)
	p.ask(ping)
	for range 3 {
		must(syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT))
	}
	p.ask(ping)
	for range 20 { // more than a pipe holds
		write(p.in, snapshotRun)
	}
	p.in.Close()
	_, err := p.replies.ReadByte() // it answers
	must(err)
	ended := make(chan struct{})
	defer close(ended)
	go func() { // until it has noticed the end of input
		for {
			_ = p.cmd.Process.Signal(syscall.SIGINT) // an error when it is gone
			select {
			case <-ended:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	if status := p.ends(8 * time.Second); status != 1 {
		t.Errorf("exit status %d, want the one for replies that are lost", status)
	}
}

// A sidecar that is told to end gives up a host that reads nothing, whichever
// pipe it is stuck in.
func TestTerminationBesideHostThatDoesNotRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	history(t, root)
	p := pipe(t, root)
	p.ask(ping)
	go func() {
		for range 2000 { // each is a line of the log, whose pipe fills up first
			if _, err := io.WriteString(p.in, logged+"\n"+snapshotRun+"\n"); err != nil {
				return
			}
		}
	}()
	_, err := p.replies.ReadByte()
	must(err)
	must(p.cmd.Process.Signal(syscall.SIGTERM))
	if status := p.ends(8 * time.Second); status != 1 {
		t.Errorf("exit status %d", status)
	}
}

// history leaves a run whose snapshot is larger than a pipe holds.
func history(t *testing.T, root string) {
	t.Helper()
	s := serve(t, root)
	task := s.openTask("run", "")
	resource := strings.Repeat("x", 100_000)
	for n := range int64(5) {
		r := result(s, schema.Reserve, reserving("run", task, n, schema.Read, schema.Reuse, resource))
		result(s, schema.Settle, settling(r))
	}
	s.end()
}

// A host that asks for 500 large snapshots and reads none blocks nobody else:
// another process writes, and no transaction keeps it from emptying the log.
func TestUnreadSnapshotsHoldNothing(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	history(t, root)
	p := pipe(t, root)
	go func() {
		for range 500 {
			if _, err := io.WriteString(p.in, snapshotRun+"\n"); err != nil {
				return
			}
		}
	}()
	_, err := p.replies.ReadByte()
	must(err)
	other := serve(t, root)
	c := openDatabase(t, root)
	for range 20 {
		other.openTask("other run", "")
		deadline := time.Now().Add(5 * time.Second)
		for blocked := 1; blocked != 0; { // by a snapshot that is being read right now
			var logFrames, checkpointed int
			row := c.QueryRowContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)")
			if err := row.Scan(&blocked, &logFrames, &checkpointed); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(deadline) {
				t.Fatal("a transaction is held")
			}
		}
	}
	other.end()
	p.out.Close()
	if status := p.ends(2 * time.Second); status != 1 {
		t.Errorf("exit status %d", status)
	}
}

// A process that has to say why it failed does not wait for a reader that never reads.
func TestBlockedComplaint(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "taskforce", "serve", "--root", t.TempDir())
	full := blockedPipe(t)
	fill(t, full)
	cmd.Stderr = full
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","method":"exit"}` + "\n")
	begun := time.Now()
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("ends with %v", err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("ends after %v", took)
	}
}

// fill writes to a pipe until it takes no more.
func fill(t *testing.T, pipe *os.File) {
	t.Helper()
	must(pipe.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)))
	if _, err := pipe.Write(make([]byte, 1<<20)); err == nil {
		t.Fatal("the pipe does not fill up")
	}
}
