package rpc_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/dsh-taskforce/sidecar/rpc"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json"
)

// A read sees every write received before it, and none received after it,
// however long the writes take.
func TestReadsSeeEarlierWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		h := connect(t, s, rpc.Options{})
		release := s.hold()
		const pairs = 50
		go func() {
			for i := range pairs {
				h.write(opening(i, fmt.Sprint("task ", i)), listing(fmt.Sprintf(`"list %d"`, i)))
			}
		}()
		synctest.Wait()
		release()
		lists := 0
		for range 2 * pairs {
			r := h.receive()
			if r.ID[0] != '"' {
				continue
			}
			var page schema.TasksPage
			if err := json.Unmarshal(r.Result, &page); err != nil {
				t.Fatal(err)
			}
			lists++
			if len(page.Items) != lists || page.Items[lists-1].Title != fmt.Sprint("task ", lists-1) {
				t.Fatalf("list %d shows %d tasks", lists, len(page.Items))
			}
		}
		h.orderly()
	})
}

// What the reader answers by itself waits while something is queued before it.
func TestSessionCallsKeepTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		h := connect(t, s, rpc.Options{})
		release := s.hold()
		go h.write(opening(1, "first"), request(2, "governor.runs", "{}"), request(3, "shutdown", "{}"),
			request(4, "ping", "{}"), opening(5, "late"))
		synctest.Wait()
		release()
		h.expect("1", "2", "3")
		h.code("4", schema.ErrShuttingDown)
		h.code("5", schema.ErrShuttingDown)
		h.orderly()
		if len(s.tasks) != 1 {
			t.Errorf("%d tasks, want the one from before the shutdown", len(s.tasks))
		}
	})
}

// A session that is told to end finishes what it has begun, in the reader too,
// and refuses what comes later.
func TestEndOfContextFinishesWhatHasBegun(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]string{"read": listing(1), "write": opening(1, "a")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newMemory(t)
				h := connect(t, s, rpc.Options{})
				release := s.hold()
				go h.write(begun)
				synctest.Wait()
				h.cancel(nil)
				release()
				if r := h.receive(); string(r.ID) != "1" || r.Error != nil {
					t.Errorf("got %s %+v", r.ID, r.Error)
				}
				h.orderly()
			})
		})
	}
}

// exit takes effect after the shutdown that is still queued before it.
func TestExitAfterQueuedShutdown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		h := connect(t, s, rpc.Options{})
		release := s.hold()
		go h.write(opening(1, "first"), listing(2), request(3, "shutdown", "{}"), notification("exit", "{}"))
		synctest.Wait()
		release()
		h.expect("1", "2", "3")
		h.orderly()
	})
}

// A request that is dropped before it began leaves nothing; one that has begun
// runs to its end and reports its outcome.
func TestCancellation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		h := connect(t, s, rpc.Options{})
		release := s.hold()
		go h.write(opening(1, "begun"), opening(2, "submitted"), listing(3), opening(4, "queued"), opening(5, "kept"))
		synctest.Wait()
		go h.write(cancelling(1), cancelling(2), cancelling(3), cancelling(4))
		synctest.Wait()
		release()
		h.expect("1")
		h.code("2", schema.ErrCancelled)
		h.code("3", schema.ErrCancelled)
		h.code("4", schema.ErrCancelled)
		h.expect("5")
		h.orderly()
		if len(s.tasks) != 2 || s.tasks[0].Title != "begun" || s.tasks[1].Title != "kept" {
			t.Errorf("the store has %v", s.tasks)
		}
	})
}

// A member of a batch can be cancelled; the batch is answered when all of it is.
func TestCancellationInABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		h := connect(t, s, rpc.Options{})
		release := s.hold()
		go h.write(opening(0, "first"), "["+opening(1, "kept")+","+opening(2, "dropped")+","+cancelling(2)+"]", opening(3, "last"))
		synctest.Wait()
		release()
		h.expect("0")
		line, err := h.out.ReadString('\n')
		var batch []reply
		if err == nil {
			err = json.Unmarshal([]byte(line), &batch)
		}
		if err != nil || len(batch) != 2 || batch[0].Error != nil || batch[1].Error == nil || batch[1].Error.Data.Code != schema.ErrCancelled {
			t.Errorf("the batch is answered %s (%v)", line, err)
		}
		h.expect("3")
		h.orderly()
	})
}

// A panic costs the call and not the session.
func TestPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := connect(t, newMemory(t), rpc.Options{})
		go h.write(request(1, "task.get", `[{"task_id":1},`+caller+`]`), request(2, "ping", "{}"))
		h.code("1", schema.ErrInternal)
		h.expect("2")
		h.orderly()
	})
}
