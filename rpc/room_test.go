package rpc

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestRoom(t *testing.T) {
	t.Parallel()
	type request struct{ calls, bytes int }
	tests := []struct {
		name     string
		requests []request
		fit      int
	}{
		{"calls", []request{{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, 4},
		{"bytes", []request{{1, 40}, {1, 40}, {1, 20}, {1, 1}}, 3},
		{"batches", []request{{3, 1}, {2, 1}}, 1},
		{"larger than the bound", []request{{1, 1000}, {1, 1}}, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoom(4, 100)
				var taken atomic.Int64
				go func() {
					for _, q := range test.requests {
						r.take(q.calls, q.bytes)
						taken.Add(1)
					}
				}()
				synctest.Wait()
				if n := int(taken.Load()); n != test.fit {
					t.Errorf("room for %d, want %d", n, test.fit)
				}
				for _, q := range test.requests[:test.fit] {
					r.give(q.calls, q.bytes)
				}
				synctest.Wait()
				if n := int(taken.Load()); n != len(test.requests) {
					t.Errorf("room for %d after all was given back", n)
				}
			})
		})
	}
}

// When the session is over, the reader is let go.
func TestClosedRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(1, 1)
		r.take(1, 1)
		go r.close()
		r.take(1, 1)
		r.take(1, 1)
	})
}
