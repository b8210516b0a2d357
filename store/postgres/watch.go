package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// WatchInterval is how often a watcher looks where nobody can tell it.
	WatchInterval = 250 * time.Millisecond
	// lookAnyway is how often it looks where it is told: a sidecar that dies
	// between its commit and the news of it tells nobody.
	lookAnyway = 5 * time.Second
	// between is the least time between two news of one process.
	between = 20 * time.Millisecond
)

// news tells watchers of this process's commits. A NOTIFY inside of a
// transaction would make commits wait for each other, because PostgreSQL keeps
// the order of notifications; so it follows them, one for all that have come
// together, and does not wait for the disk.
type news struct {
	store *Store
	fresh chan struct{}
	ended chan struct{}
}

func (n *news) start(s *Store) {
	n.store, n.fresh, n.ended = s, make(chan struct{}, 1), make(chan struct{})
	go n.loop()
}

// stop waits until the last news are out.
func (n *news) stop() {
	close(n.fresh)
	<-n.ended
}

func (n *news) tell() {
	select {
	case n.fresh <- struct{}{}:
	default:
	}
}

func (n *news) loop() {
	defer close(n.ended)
	for range n.fresh {
		n.notify()
		pause(n.store.life, between)
	}
}

// notify sends the news. If that fails, watchers look anyway.
func (n *news) notify() {
	ctx, cancel := context.WithTimeout(context.Background(), n.store.options.BusyTimeout)
	defer cancel()
	pooled, err := n.store.pool.Acquire(ctx)
	if err != nil {
		return
	}
	defer pooled.Release()
	t := n.store.newTx(ctx, pooled.Conn())
	defer t.end()
	t.queue("BEGIN")
	t.queue("SELECT set_config('synchronous_commit', 'off', true)")
	t.queue("SELECT pg_notify($1, '')", n.store.channel())
	t.queue("COMMIT")
	_ = t.flush()
}

// channel is the name under which the sidecars of this schema tell of commits.
func (s *Store) channel() string {
	return fmt.Sprintf("taskforce_%016x", uint64(s.address.lockKey("news", "")))
}

// listens reports whether a watcher can be told.
func (s *Store) listens() bool { return !s.pooled || s.address.listen != "" }

// Watch implements [store.Store].
func (s *Store) Watch(ctx context.Context, changed func()) error {
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	for ctx.Err() == nil {
		changed()
		if !s.listens() {
			pause(ctx, WatchInterval)
			continue
		}
		if err := s.listen(ctx, changed); err != nil {
			pause(ctx, lastPause)
		}
	}
	if s.life.Err() != nil {
		return errClosed()
	}
	return nil
}

// listen calls changed on news, until its connection fails or ctx ends.
func (s *Store) listen(ctx context.Context, changed func()) error {
	conn, err := pgx.ConnectConfig(ctx, s.listener())
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.channel()}.Sanitize()); err != nil {
		return err
	}
	for ctx.Err() == nil {
		changed() // also of what came before it listened
		bounded, cancel := context.WithTimeout(ctx, lookAnyway)
		_, err := conn.WaitForNotification(bounded)
		told := bounded.Err() == nil
		cancel()
		if err != nil && told {
			return err
		}
	}
	return nil
}

// listener is how to reach a server that takes LISTEN.
func (s *Store) listener() *pgx.ConnConfig {
	config := s.address.pool.ConnConfig.Copy()
	if s.address.listen != "" {
		// Checked when the address was read.
		config.Host, config.Port, _ = splitPort(s.address.listen)
		config.Fallbacks = nil
	}
	return config
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
