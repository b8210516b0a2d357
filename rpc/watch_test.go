package rpc_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/dsh-taskforce/sidecar/rpc"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json"
)

func watching(id any, run string) string {
	return request(id, "governor.watch", fmt.Sprintf("[%q]", run))
}

func unwatching(id any, run string) string {
	return request(id, "governor.unwatch", fmt.Sprintf("[%q]", run))
}

// changed receives a notification and returns its run.
func (h *host) changed() string {
	h.t.Helper()
	r := h.receive()
	var p schema.ChangedParams
	if r.Method != rpc.Changed || r.ID != nil {
		h.t.Fatalf("got %+v, want a notification", r)
	}
	if err := json.Unmarshal(r.Params, &p); err != nil {
		h.t.Fatal(err)
	}
	return p.RunID
}

// Changes of a watched run are told, those of others are not, and what changed
// before the watch is no news.
func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		h := connect(t, s, rpc.Options{})
		s.change("a")
		h.write(watching(1, "a"))
		h.expect("1")
		synctest.Wait()
		s.change("b")
		s.change("a", "b")
		if run := h.changed(); run != "a" {
			t.Errorf("%s has changed", run)
		}
		s.change("a")
		if run := h.changed(); run != "a" {
			t.Errorf("%s has changed", run)
		}
		h.write(request(2, "ping", "{}"))
		h.expect("2")
		h.orderly()
	})
}

// Nothing follows the store while nobody watches.
func TestNothingPollsUnwatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		h := connect(t, s, rpc.Options{})
		following := func(want int) {
			t.Helper()
			synctest.Wait()
			if n := s.watchers(); n != want {
				t.Errorf("%d goroutines follow the store, want %d", n, want)
			}
		}
		h.write(request(1, "ping", "{}"))
		h.expect("1")
		following(0)
		h.write(watching(2, "a"))
		h.expect("2")
		h.write(watching(3, "b"))
		h.expect("3")
		h.write(watching(4, "a"))
		h.expect("4")
		following(1)
		h.write(unwatching(5, "a"))
		h.expect("5")
		following(1)
		s.change("a", "b")
		if run := h.changed(); run != "b" {
			t.Errorf("%s has changed", run)
		}
		h.write(unwatching(6, "b"))
		h.expect("6")
		following(0)
		s.change("a", "b")
		h.write(unwatching(7, "b"))
		h.expect("7")
		h.write(watching(8, "b"))
		h.expect("8")
		following(1)
		h.orderly()
		following(0)
	})
}

// While a host does not read, a run's changes wait behind one notification, and
// the writers wait for nothing.
func TestWatchCoalesces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		h := connect(t, s, rpc.Options{})
		for i, run := range []string{"a", "b"} {
			h.write(watching(i, run))
			h.expect(fmt.Sprint(i))
		}
		synctest.Wait()
		for range 1000 {
			s.change("a")
		}
		s.change("b")
		var told []string
		for range 3 {
			told = append(told, h.changed())
		}
		slices.Sort(told)
		if want := []string{"a", "a", "b"}; !slices.Equal(told, want) {
			t.Errorf("told of %v, want %v", told, want)
		}
		h.orderly()
	})
}

// The first notification follows the reply to governor.watch, and a change that
// comes while the watch is set up is not lost.
func TestWatchIsAnnouncedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		h := connect(t, s, rpc.Options{})
		h.write(watching(0, "other"))
		h.expect("0")
		synctest.Wait()
		s.afterVersion = func() { s.change("a") } // between the look and the watch
		h.write(watching(1, "a"))
		h.expect("1")
		if run := h.changed(); run != "a" {
			t.Errorf("%s has changed", run)
		}
		h.orderly()
	})
}

// A busy store is looked at again; one that fails otherwise ends the watch, and
// the next begins anew.
func TestWatchSurvivesFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		h := connect(t, s, rpc.Options{})
		h.write(watching(1, "a"))
		h.expect("1")
		synctest.Wait()
		s.failing(schema.Errorf(schema.ErrStoreBusy, "busy"), schema.Errorf(schema.ErrStoreBusy, "busy"))
		go s.change("a")
		if run := h.changed(); run != "a" {
			t.Errorf("%s has changed", run)
		}
		s.failing(schema.Errorf(schema.ErrStoreReplaced, "replaced"))
		s.change("a")
		synctest.Wait()
		if n := s.watchers(); n != 0 {
			t.Errorf("%d goroutines follow a store that is gone", n)
		}
		h.write(watching(2, "a"))
		h.expect("2")
		synctest.Wait()
		s.change("a")
		if run := h.changed(); run != "a" {
			t.Errorf("%s has changed", run)
		}
		s.failing(schema.Errorf(schema.ErrStoreReplaced, "replaced"))
		h.write(watching(3, "c"))
		h.code("3", schema.ErrStoreReplaced)
		h.orderly()
	})
}

// Many runs are looked at in one transaction.
func TestWatchManyRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		h := connect(t, s, rpc.Options{})
		const runs = 500
		all := make([]string, runs)
		for i := range runs {
			all[i] = fmt.Sprint("run ", i)
			h.write(watching(i, all[i]))
			h.expect(fmt.Sprint(i))
		}
		synctest.Wait()
		before := s.get(&s.reads)
		s.change(all...)
		told := map[string]bool{}
		for range runs {
			told[h.changed()] = true
		}
		if len(told) != runs {
			t.Errorf("told of %d runs, want %d", len(told), runs)
		}
		if n := s.get(&s.reads) - before; n != 1 {
			t.Errorf("%d transactions to look at %d runs", n, runs)
		}
		h.orderly()
	})
}

// A session ends although its notifications are not read, and follows the store no longer.
func TestWatchEndsWithTheSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newMemory(t)
		h := connect(t, s, rpc.Options{})
		h.write(watching(1, "a"))
		h.expect("1")
		synctest.Wait()
		s.change("a")
		s.change("a")
		h.in.Close()
		synctest.Wait()
		if n := s.watchers(); n != 0 {
			t.Errorf("%d goroutines follow the store", n)
		}
		if replies, err := h.end(); err != nil || replies == 0 {
			t.Errorf("the session ends with %v after %d notifications", err, replies)
		}
	})
}
