package rpc_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-taskforce/sidecar/rpc"
	"github.com/dsh-taskforce/sidecar/schema"
)

// With as many requests in flight as may be, nothing more is read.
func TestNothingIsReadWithoutRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		const most, sent = 4, 20
		h := connect(t, s, rpc.Options{MaxInFlight: most})
		release := s.hold()
		padded := strings.TrimSuffix(opening("null", "a"), "}") + `,"x":"` + strings.Repeat("x", 100<<10) + `"}`
		var written atomic.Int64
		go func() {
			for range sent {
				h.write(padded)
				written.Add(1)
			}
		}()
		synctest.Wait()
		if n := s.get(&s.submitted); n != most {
			t.Errorf("%d requests in flight, want %d", n, most)
		}
		if n := written.Load(); n > most+1 {
			t.Errorf("%d requests were read", n)
		}
		release()
		for range sent {
			h.receive()
		}
		h.orderly()
	})
}

// large makes governor.runs answer more than is written at once.
func large(s *memory) {
	for i := range 600 {
		s.runs = append(s.runs, fmt.Sprintf("run %04d", i))
	}
}

// A host that asks for much and reads nothing blocks itself: no more is begun
// than what fills the bound on unread replies, and no transaction stays open.
func TestHostThatDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		large(s)
		h := connect(t, s, rpc.Options{})
		const asked = 100
		go func() {
			for i := range asked {
				h.write(request(i, "governor.runs", `{"limit":1000}`))
			}
			h.write(opening(asked, "last"))
		}()
		synctest.Wait()
		if n := s.get(&s.reads); n == 0 || n > 50 {
			t.Errorf("%d of %d reads were begun", n, asked)
		}
		if n := s.get(&s.open); n != 0 {
			t.Errorf("%d transactions are open", n)
		}
		for i := range asked + 1 {
			h.expect(fmt.Sprint(i))
		}
		h.orderly()
	})
}

// The replies to what is not even a request are bounded, too.
func TestFloodOfErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := connect(t, newMemory(t), rpc.Options{})
		const frames = 100
		invalid := fmt.Sprintf(`{"id":"%s"}`, strings.Repeat("x", 60<<10)) // which is echoed
		var written atomic.Int64
		go func() {
			for range frames {
				h.write(invalid)
				written.Add(1)
			}
			h.write(request(1, "ping", "{}"))
		}()
		synctest.Wait()
		if n := written.Load(); n > frames/2 {
			t.Errorf("%d of %d frames were read while no reply was", n, frames)
		}
		for range frames {
			if r := h.receive(); r.Error == nil || r.Error.Data.Code != schema.ErrInvalidRequest {
				t.Fatalf("got %+v", r)
			}
		}
		h.expect("1")
		h.orderly()
	})
}

// A host that has closed its side may take all the time it wants to read.
func TestSlowReaderAfterEndOfInput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		large(s)
		h := connect(t, s, rpc.Options{})
		const asked = 30
		go func() {
			for i := range asked {
				h.write(request(i, "governor.runs", `{"limit":1000}`))
			}
			h.in.Close()
		}()
		for i := range asked {
			time.Sleep(time.Hour) // of the bubble
			h.expect(fmt.Sprint(i))
		}
		h.orderly()
	})
}

// A session that is told to end waits for a host that reads, however slowly.
func TestSlowReaderAfterEndOfContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		large(s)
		h := connect(t, s, rpc.Options{})
		const asked = 10
		for i := range asked {
			h.write(request(i, "governor.runs", `{"limit":1000}`))
		}
		synctest.Wait()
		h.cancel(nil)
		synctest.Wait()
		piece := make([]byte, 64<<10)
		replies := 0
		for {
			time.Sleep(2 * time.Second) // of the bubble
			n, err := h.unread.Read(piece)
			replies += strings.Count(string(piece[:n]), "\n")
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := <-h.served; err != nil || replies != asked {
			t.Errorf("the session ends with %v after %d of %d replies", err, replies, asked)
		}
	})
}

// What a session may be stuck in while the host reads nothing.
var stuckIn = map[string][]string{
	"an answer of the reader":  {request(1, "ping", "{}"), request(2, "ping", "{}")},
	"refusals":                 {"x", "y", "z"},
	"answers of the outbox":    {request(1, "governor.runs", "{}"), opening(2, "a"), request(3, "governor.runs", "{}")},
	"a batch":                  {"[" + request(1, "governor.runs", "{}") + "," + opening(2, "a") + "]"},
	"the dispatcher":           append([]string{opening(1, "a")}, slices.Repeat([]string{request("null", "governor.runs", `{"limit":1000}`)}, 100)...),
	"the bound on bytes":       slices.Repeat([]string{request("null", "governor.runs", `{"limit":1000}`)}, 100),
	"the bound on requests":    slices.Repeat([]string{opening("null", "a")}, 600),
	"a watch":                  {request(1, "governor.watch", `["run"]`)},
	"a frame that is not read": {strings.Repeat("x", 10<<20)},
}

// A session that is told to end gives up a host that reads nothing.
func TestEndsBesideHostThatDoesNotRead(t *testing.T) {
	t.Parallel()
	causes := map[string]struct {
		cause  error
		within time.Duration
	}{
		"told to end":  {nil, 4 * time.Second},
		"host is gone": {rpc.ErrHostGone, 300 * time.Millisecond},
	}
	for why, end := range causes {
		for what, lines := range stuckIn {
			t.Run(why+", stuck in "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newMemory(t)
					large(s)
					h := connect(t, s, rpc.Options{MaxFrame: 1 << 20})
					release := s.hold() // so that what follows a write is queued
					go io.WriteString(h.in, strings.Join(lines, "\n")+"\n")
					synctest.Wait()
					release()
					synctest.Wait()
					s.change("run")
					told := time.Now()
					h.cancel(end.cause)
					if err := <-h.served; !errors.Is(err, rpc.ErrOutput) {
						t.Errorf("the session ends with %v", err)
					}
					if took := time.Since(told); took > end.within {
						t.Errorf("the session ends after %v", took)
					}
				})
			})
		}
	}
}

// So does one that was sent exit.
func TestExitBesideHostThatDoesNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		h := connect(t, s, rpc.Options{})
		h.write(opening(1, "a")) // the reply to a queued call does not keep the reader
		synctest.Wait()
		h.write(notification("exit", "{}"))
		if err := <-h.served; !errors.Is(err, rpc.ErrOutput) {
			t.Errorf("the session ends with %v", err)
		}
	})
}

// A broken output ends the session, and what is queued is not run.
func TestBrokenOutput(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		h := connect(t, s, rpc.Options{})
		release := s.hold()
		go h.write(opening(1, "begun"), opening(2, "submitted"), listing(3), opening(4, "queued"), "not JSON")
		synctest.Wait()
		h.unread.Close() // which the answer to the last line meets
		synctest.Wait()
		release()
		if err := <-h.served; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the session ends with %v", err)
		}
		if len(s.tasks) != 1 {
			t.Errorf("%d tasks, want the one that had begun", len(s.tasks))
		}
	})
}
