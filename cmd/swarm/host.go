package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// window is how many calls a host keeps in flight.
const window = 16

// fate is a way in which a sidecar ends, or is paused.
type fate string

const (
	killed           fate = "killed"
	stoppedAndKilled fate = "stopped, then killed"
	terminated       fate = "terminated"
	closed           fate = "ended by the end of input"
	hostDied         fate = "lost their host with its pipes"
	hostVanished     fate = "lost their host but not its pipes"
	paused           fate = "pauses"
)

// fates are the ends in the proportion in which they are drawn.
var fates = []fate{killed, killed, killed, killed, stoppedAndKilled, terminated, closed, hostDied, hostVanished}

// host starts one sidecar after another.
type host struct {
	*swarm
	number int
	random *rand.Rand
}

// live goes on until there are enough admissions or something is out of order.
func (h *host) live(ctx context.Context) error {
	for ctx.Err() == nil && !h.board.finished() {
		if err := h.liveOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

// liveOnce is the life of one sidecar.
func (h *host) liveOnce(ctx context.Context) error {
	end := fates[h.random.IntN(len(fates))]
	s, err := h.start(end == hostDied || end == hostVanished)
	if err != nil {
		return err
	}
	var replies sync.WaitGroup
	replies.Go(s.receive)
	span := int64(h.maxLife-h.minLife) + 1
	alive := s.send(ctx, h.random, h.minLife+time.Duration(max(h.random.Int64N(span), h.random.Int64N(span))))
	if err := s.end(end, h.random); err != nil {
		return err
	}
	h.count(end)
	replies.Wait()
	s.abandon()
	_ = s.cmd.Wait() // most were killed
	if !alive {
		h.board.violate(fmt.Sprintf("a sidecar ended by itself (%v): %s", s.cmd.ProcessState, h.words.last()))
	}
	return nil
}

// sidecar is a `taskforce serve` process with the host's ends of its pipes.
type sidecar struct {
	*host
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.ReadCloser
	// room has a token for each call that may still be sent.
	room chan struct{}
	// ready is closed by the first answer, over by the end of the output.
	ready, over chan struct{}
	readied     sync.Once
	// apart says that the process that is known is only the sidecar's host.
	apart bool

	mu       sync.Mutex
	last     int
	inFlight map[int]*call
}

// start starts a sidecar; with a host of its own if that is to die.
func (h *host) start(apart bool) (*sidecar, error) {
	command := append([]string{h.binary, "serve"}, h.place()...)
	if apart {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		command = append([]string{self, launcher}, command...)
	}
	s := &sidecar{host: h, apart: apart, cmd: exec.CommandContext(context.Background(), command[0], command[1:]...), room: make(chan struct{}, window),
		ready: make(chan struct{}), over: make(chan struct{}), inFlight: map[int]*call{}}
	s.cmd.Stderr = h.stderr
	var err error
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	for range window {
		s.room <- struct{}{}
	}
	return s, s.cmd.Start()
}

// launcher is the command line word that makes this program the host of a
// sidecar, with its own pipes handed on.
const launcher = "host"

func launch(command []string) {
	cmd := exec.CommandContext(context.Background(), command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		os.Exit(1)
	}
}

// send keeps calls in flight for the sidecar's life, which begins with its
// first answer. It reports false if the sidecar ended before.
func (s *sidecar) send(ctx context.Context, random *rand.Rand, life time.Duration) (alive bool) {
	var lived, pause <-chan time.Time
	ready := s.ready
	for {
		select {
		case <-ctx.Done():
			return true
		case <-lived:
			return true
		case <-s.over:
			return false
		case <-ready:
			ready, lived = nil, time.After(life)
			if !s.apart && random.IntN(12) == 0 {
				pause = time.After(time.Duration(random.Int64N(int64(life))))
			}
		case <-pause:
			s.pause(random)
		case <-s.room:
			if !s.sendOne(random) {
				<-s.over
				return false
			}
		}
	}
}

// pause stops the sidecar for a while, whatever it holds just then.
func (s *sidecar) pause(random *rand.Rand) {
	if stopProcess(s.cmd.Process) != nil {
		return // it is dead
	}
	s.count(paused)
	time.Sleep(5*time.Millisecond + time.Duration(random.Int64N(int64(50*time.Millisecond))))
	_ = continueProcess(s.cmd.Process)
}

// sendOne sends a call. It reports false if the sidecar no longer reads.
func (s *sidecar) sendOne(random *rand.Rand) bool {
	c := s.board.next(random)
	params, err := schema.Encode(c.params)
	if err != nil {
		panic(err) // the board makes parameters of the schema's own types
	}
	s.mu.Lock()
	s.last++
	id := s.last
	s.inFlight[id] = c
	s.mu.Unlock()
	_, err = fmt.Fprintf(s.in, "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":%q,\"params\":%s}\n", id, c.method, params)
	return err == nil
}

// answer is a response.
type answer struct {
	ID     jsontext.Value `json:"id"`
	Result jsontext.Value `json:"result"`
	Error  *struct {
		Message string           `json:"message"`
		Data    schema.ErrorData `json:"data"`
	} `json:"error"`
}

// receive hands every answer to the board, until the output ends.
func (s *sidecar) receive() {
	defer close(s.over)
	lines := bufio.NewReaderSize(s.out, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return // the sidecar, or the pipe, is gone; a part of a line with it
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			s.board.violate(fmt.Sprintf("a sidecar said %q: %v", line, err))
			return
		}
		id, err := strconv.Atoi(string(a.ID))
		s.mu.Lock()
		c := s.inFlight[id]
		delete(s.inFlight, id)
		s.mu.Unlock()
		s.readied.Do(func() { close(s.ready) })
		if err != nil || c == nil {
			s.board.violate(fmt.Sprintf("an answer to nothing: %q", line))
			return
		}
		s.board.answered(c, &a)
		s.room <- struct{}{}
	}
}

// abandon gives up the calls that were never answered: their outcome is unknown.
func (s *sidecar) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.inFlight {
		s.board.lost(c)
	}
}
