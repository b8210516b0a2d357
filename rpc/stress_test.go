package rpc_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-taskforce/sidecar/rpc"
	"github.com/go-json-experiment/json"
)

// Several sessions on one store, with random requests, batches, cancellations,
// faults and slow readers, that end in every way: each request has one reply,
// or, where the end cuts it off, at most one.
func TestStress(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	for _, end := range []string{"end of input", "shutdown and exit", "end of context", "broken output"} {
		for n := range 2 {
			seed := rand.Uint64()
			t.Run(fmt.Sprintf("%s %d", end, n), func(t *testing.T) {
				t.Parallel()
				defer func() {
					if t.Failed() {
						t.Logf("the seed was %d", seed)
					}
				}()
				stress(t, connect(t, s, rpc.Options{MaxInFlight: 16, MaxFrame: 4096}), rand.New(rand.NewPCG(seed, seed)), end)
			})
		}
	}
}

// traffic is what one session has sent and received.
type traffic struct {
	random *rand.Rand
	lastID int
	// replies counts the replies to each id, nameless those to the id null.
	mu       sync.Mutex
	replies  map[int]int
	nameless int
	// wanted counts the faults that are answered under the id null.
	wanted int
}

const stressFrames = 120

func stress(t *testing.T, h *host, random *rand.Rand, end string) {
	tr := &traffic{random: random, replies: map[int]int{}}
	slow := rand.New(rand.NewPCG(random.Uint64(), 0))
	var reader sync.WaitGroup
	cut := -1
	if end == "broken output" {
		cut = slow.IntN(stressFrames / 4) // of the replies, which are fewer than the frames
	}
	reader.Go(func() { tr.read(t, h, slow, cut) })
	for range stressFrames {
		if _, err := io.WriteString(h.in, tr.frame()+"\n"); err != nil {
			break // the sidecar has ended
		}
	}
	orderly := true
	switch end {
	case "shutdown and exit":
		tr.lastID++
		h.write(request(tr.lastID, "shutdown", "{}"), notification("exit", "{}"))
	case "end of context":
		h.cancel(nil)
		orderly = false
	case "broken output":
		orderly = false
	default:
		h.in.Close()
	}
	err := <-h.served
	reader.Wait()
	switch {
	case end == "broken output" && !errors.Is(err, io.ErrClosedPipe), end != "broken output" && err != nil:
		t.Errorf("the session ends with %v", err)
	case orderly && tr.nameless != tr.wanted:
		t.Errorf("%d replies under the id null, want %d", tr.nameless, tr.wanted)
	}
	for id := 1; id <= tr.lastID; id++ {
		if n := tr.replies[id]; n > 1 || orderly && n != 1 {
			t.Errorf("request %d has %d replies", id, n)
		}
	}
}

// frame is the next thing to send.
func (tr *traffic) frame() string {
	switch tr.random.IntN(12) {
	case 0:
		tr.wanted++
		return []string{"garbage", "{", `{"id":true}`, "[]", strings.Repeat("x", 5000), "\"\xff\""}[tr.random.IntN(6)]
	case 1:
		return cancelling(tr.random.IntN(tr.lastID + 1))
	case 2:
		return notification("task.open", "{}")
	case 3, 4:
		var members []string
		for range 1 + tr.random.IntN(8) {
			members = append(members, tr.member())
		}
		return "[" + strings.Join(members, ",") + "]"
	}
	return tr.request()
}

// member is a member of a batch.
func (tr *traffic) member() string {
	switch tr.random.IntN(6) {
	case 0:
		return notification("nothing", "[]")
	case 1:
		return cancelling(tr.lastID)
	case 2:
		tr.wanted++
		return "1"
	}
	return tr.request()
}

func (tr *traffic) request() string {
	tr.lastID++
	switch id := tr.lastID; tr.random.IntN(7) {
	case 0, 1:
		return request(id, "ping", "{}")
	case 2:
		return opening(id, "a task")
	case 3:
		return listing(id)
	case 4:
		return request(id, "nothing", "{}")
	case 5:
		return request(id, "governor.snapshot", `["run"]`)
	default:
		return request(id, "store.transaction", `[[{"method":"task.open","params":[{"title":"b"},`+caller+`]},{"method":"governor.runs","params":{}}]]`)
	}
}

// read reads every reply, now and then slowly, and closes the output after cut of them.
func (tr *traffic) read(t *testing.T, h *host, slow *rand.Rand, cut int) {
	for n := 0; ; n++ {
		if n == cut {
			h.unread.Close()
			return
		}
		for range slow.IntN(50) {
			runtime.Gosched()
		}
		line, err := h.out.ReadBytes('\n')
		if err != nil {
			return
		}
		replies := make([]reply, 1)
		if line[0] == '[' {
			err = json.Unmarshal(line, &replies)
		} else {
			err = json.Unmarshal(line, &replies[0])
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		for _, r := range replies {
			tr.count(t, r)
		}
	}
}

func (tr *traffic) count(t *testing.T, r reply) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if string(r.ID) == "null" {
		tr.nameless++
		return
	}
	var id int
	if err := json.Unmarshal(r.ID, &id); err != nil {
		t.Errorf("a reply to %s: %v", r.ID, err)
	}
	tr.replies[id]++
}
