package rpc_test

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// The price of a round trip: an empty call of the sidecar against a bare loop
// over the same pipe (rawbench echo), which only parses and answers. Rounds of
// both take turns, and what is reported are medians:
//
//	go test ./rpc -run XXX -bench RoundTrips -benchtime 1x
func BenchmarkRoundTrips(b *testing.B) {
	sidecar, err := binary()
	if err != nil {
		b.Fatal(err)
	}
	raw := filepath.Join(scratch, "rawbench")
	if out, err := exec.Command("go", "build", "-o", raw, "../cmd/rawbench").CombinedOutput(); err != nil {
		b.Fatalf("build rawbench: %v\n%s", err, out)
	}
	commands := [][]string{{sidecar, "serve", "--root", b.TempDir()}, {raw, "echo"}}
	for _, depth := range []int{1, 64} {
		b.Run(fmt.Sprintf("%d in flight", depth), func(b *testing.B) {
			rates := make([][]float64, len(commands))
			for range b.N {
				// Where the scheduler puts a process can matter tenfold, and it
				// stays there: so each gets several processes.
				const processes, rounds, each = 9, 7, 40 * time.Millisecond
				for range processes {
					for i, rate := range interleaved(b, commands, depth, rounds, each) {
						rates[i] = append(rates[i], rate...)
					}
				}
			}
			ours, bare := median(rates[0]), median(rates[1])
			b.ReportMetric(ours, "pings/s")
			b.ReportMetric(bare, "bare/s")
			b.ReportMetric(ours/bare, "ratio")
		})
	}
}

// interleaved starts the commands and measures them in turns.
func interleaved(b *testing.B, commands [][]string, depth, rounds int, each time.Duration) [][]float64 {
	b.Helper()
	var peers []*peer
	for _, command := range commands {
		peers = append(peers, newPeer(b, exec.CommandContext(b.Context(), command[0], command[1:]...)))
	}
	rates := make([][]float64, len(peers))
	for range rounds {
		for i, p := range peers {
			rates[i] = append(rates[i], p.rate(b, depth, each))
		}
	}
	for _, p := range peers {
		p.end()
	}
	return rates
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// peer is a process that answers one line for each.
type peer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
}

func (p *peer) end() {
	p.in.Close()
	_ = p.cmd.Wait() // it is not what is measured
}

func newPeer(b *testing.B, cmd *exec.Cmd) *peer {
	b.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return &peer{cmd, in, out}
}

// requests are lines with ids of their own, twice over, so that any few of them
// that follow each other can be written at once.
var requests, lineLength = func() ([]byte, int) {
	const ids = 4096
	var lines []byte
	for i := range 2 * ids {
		lines = fmt.Appendf(lines, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}\n", 100_000+i%ids)
	}
	return lines, len(lines) / (2 * ids)
}()

// rate keeps depth requests in flight for a while and returns how many are
// answered a second. For answers that come together it sends requests together.
func (p *peer) rate(b *testing.B, depth int, during time.Duration) float64 {
	b.Helper()
	answers := make([]byte, 64<<10)
	answered := func() int {
		n, err := p.out.Read(answers)
		if err != nil {
			b.Fatal(err)
		}
		return bytes.Count(answers[:n], []byte{'\n'})
	}
	begun := time.Now()
	next, count, inFlight := 0, 0, 0
	for time.Since(begun) < during {
		send := depth - inFlight
		if _, err := p.in.Write(requests[next : next+send*lineLength]); err != nil {
			b.Fatal(err)
		}
		next = (next + send*lineLength) % (len(requests) / 2)
		n := answered()
		count += n
		inFlight = depth - n
	}
	rate := float64(count) / time.Since(begun).Seconds()
	for inFlight > 0 {
		inFlight -= answered()
	}
	return rate
}
