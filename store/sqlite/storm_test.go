package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// TestClosingInAStorm closes a store under writers, readers and watchers. Each
// call succeeds or is told that the store is closed, and what was acknowledged
// is there when it is opened again.
func TestClosingInAStorm(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, sqlite.Options{})
	const writers, each = 4, 8
	var acknowledged, begun atomic.Int64
	enough := make(chan struct{})
	untilClosed := func(name string, call func() error) {
		for {
			err := call()
			var known *schema.Error
			if errors.As(err, &known) && known.Code == schema.ErrStoreClosed {
				return
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
		}
	}
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			untilClosed("write", func() error {
				err := add(s, "run", fmt.Sprint("w", i))
				if err == nil {
					acknowledged.Add(1)
				}
				if begun.Add(1) == writers*each {
					close(enough)
				}
				return err
			})
		})
		group.Go(func() {
			untilClosed("read", func() error {
				return s.Read(context.Background(), func(tx store.Tx) error {
					_, err := tx.Tasks("run", "", store.Page{Limit: 10})
					return err
				})
			})
		})
	}
	group.Go(func() { untilClosed("watch", func() error { return s.Watch(context.Background(), func() {}) }) })
	<-enough
	for range 2 {
		group.Go(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := int64(len(strings.Fields(titles(t, open(t, root, sqlite.Options{}), "run")))); got != acknowledged.Load() {
		t.Errorf("%d tasks, but %d were acknowledged", got, acknowledged.Load())
	}
}

// TestSubmissionsBeyondTheQueue: more than may wait; the sender waits, and
// nothing is lost or overtaken.
func TestSubmissionsBeyondTheQueue(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), sqlite.Options{})
	const n = 3000
	var order []int
	var done sync.WaitGroup
	done.Add(n)
	for i := range n {
		s.Submit(t.Context(), func(store.Tx) error { return nil }, func(err error) {
			if err != nil {
				t.Error(err)
			}
			order = append(order, i) // answers come from one goroutine, one after another
			done.Done()
		})
	}
	done.Wait()
	for i, got := range order {
		if got != i {
			t.Fatalf("answer %d was for call %d", i, got)
		}
	}
}
