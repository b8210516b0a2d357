package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
	readAllTheTime(ctx, t, s, &readers)
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

// readAllTheTime keeps reads open that overlap, each for much longer than a
// write takes, until ctx ends.
func readAllTheTime(ctx context.Context, t *testing.T, s store.Store, readers *sync.WaitGroup) {
	t.Helper()
	const long = 100 * time.Millisecond
	for range 3 {
		readers.Go(func() {
			for ctx.Err() == nil {
				err := s.Read(context.Background(), func(store.Tx) error {
					over, cancel := context.WithTimeout(ctx, long)
					defer cancel()
					<-over.Done()
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}
