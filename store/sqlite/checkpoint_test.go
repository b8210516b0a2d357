package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// TestLogIsBounded while reads overlap: SQLite by itself would let it grow for as
// long as there is always one.
func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, sqlite.Options{})
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	overlap(ctx, t, s, &readers)
	title := strings.Repeat("x", 256<<10)
	const written = 128 << 20
	for range written / len(title) {
		if err := add(s, "run", title); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	readers.Wait()
	log, err := os.Stat(filepath.Join(root, sqlite.FileName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	if log.Size() > written/2 {
		t.Errorf("after writing %d MiB the log has %d", written>>20, log.Size()>>20)
	}
}

// overlap makes two readers take turns, each of which ends its read only when the
// other's has begun, until ctx ends.
func overlap(ctx context.Context, t *testing.T, s store.Store, readers *sync.WaitGroup) {
	t.Helper()
	begun := [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	first := make(chan struct{})
	for i := range begun {
		readers.Go(func() {
			for ctx.Err() == nil {
				err := s.Read(context.Background(), func(store.Tx) error {
					if i == 0 && first != nil {
						close(first)
						first = nil
					} else {
						select {
						case begun[i] <- struct{}{}: // the other may end
						case <-ctx.Done():
						}
					}
					select {
					case <-begun[1-i]:
					case <-ctx.Done():
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
		if i == 0 {
			<-first
		}
	}
}
