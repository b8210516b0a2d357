package rpc_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// A frame of half a gigabyte costs one error and no memory, in both framings,
// and the next request is served.
func TestHugeFrame(t *testing.T) {
	t.Parallel()
	const size = 512 << 20
	framings := map[string]struct{ before, after, ping string }{
		"lines":   {"", "\n", request(1, "ping", "{}") + "\n"},
		"headers": {fmt.Sprintf("Content-Length: %d\r\n\r\n", size), "", framed(request(1, "ping", "{}"))},
	}
	for name, framing := range framings {
		t.Run(name, func(t *testing.T) {
			r := &transcript{t: t, root: t.TempDir()}
			r.start(nil)
			go func() {
				zeros := make([]byte, 1<<20)
				_, _ = io.WriteString(r.in, framing.before)
				for range size / len(zeros) {
					if _, err := r.in.Write(zeros); err != nil {
						return // the test has failed
					}
				}
				_, _ = io.WriteString(r.in, framing.after+framing.ping)
			}()
			for _, want := range []string{`"id":null,"error":{"code":-32600`, `"id":1,"result":{}`} {
				if line, err := r.receive(); err != nil || !strings.Contains(line, want) {
					t.Fatalf("got %q (%v), want %s", line, err, want)
				}
			}
			if peak := peakMemory(t, r.cmd.Process.Pid); peak > 64<<20 {
				t.Errorf("the sidecar has used %d MiB", peak>>20)
			}
			if rest := r.end(); rest != "" {
				t.Errorf("it also answers %s", rest)
			}
		})
	}
}

// A batch of millions of members is counted, not kept.
func TestHugeBatch(t *testing.T) {
	t.Parallel()
	r := &transcript{t: t, root: t.TempDir()}
	r.start(nil)
	members := (4<<20 - 4) / 2
	go func() { _, _ = io.WriteString(r.in, "["+strings.Repeat("1,", members)+"1]\n") }()
	want := fmt.Sprintf("a batch of %d is over the bound", members+1)
	if line, err := r.receive(); err != nil || !strings.Contains(line, want) {
		t.Fatalf("got %q (%v), want %s", line, err, want)
	}
	if peak := peakMemory(t, r.cmd.Process.Pid); peak > 64<<20 {
		t.Errorf("the sidecar has used %d MiB", peak>>20)
	}
	r.end()
}

// peakMemory is the most memory that a process has had, in bytes.
func peakMemory(t *testing.T, pid int) (bytes int) {
	t.Helper()
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var kilobytes int
		if n, _ := fmt.Sscanf(lines.Text(), "VmHWM: %d kB", &kilobytes); n == 1 {
			return kilobytes << 10
		}
	}
	t.Fatal("there is no VmHWM")
	return 0
}
