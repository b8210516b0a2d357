package sqlite

import (
	"context"
	"time"
)

// WatchInterval is how often a watcher asks SQLite whether anything was
// committed. Nothing asks while nobody watches.
const WatchInterval = 100 * time.Millisecond

// Watch implements [store.Store]. PRAGMA data_version on a connection of its
// own sees the commits of every other connection, this process's writer
// included; it reads a counter in shared memory and takes no lock that a writer
// waits for.
func (s *Store) Watch(ctx context.Context, changed func()) error {
	s.open.RLock()
	if s.closed {
		s.open.RUnlock()
		return errClosed()
	}
	s.watching.Add(1)
	s.open.RUnlock()
	defer s.watching.Done()

	var c *conn
	defer func() {
		if c != nil {
			c.close()
		}
	}()
	last := int64(-1)
	ticker := time.NewTicker(WatchInterval)
	defer ticker.Stop()
	for {
		var version int64
		err := s.checkFiles(context.WithoutCancel(ctx), c)
		if err == nil && c == nil {
			c, err = s.connectReader(ctx)
		}
		if err == nil {
			_, err = c.scan(context.WithoutCancel(ctx), "PRAGMA data_version", nil, &version)
		}
		if err == nil {
			c.hold()
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !isBusy(err):
			return classify(err, "the database cannot be watched")
		case err == nil && version != last:
			last = version
			changed()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.closing:
			return errClosed()
		case <-ticker.C:
		}
	}
}
