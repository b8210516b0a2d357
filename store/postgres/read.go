package postgres

import (
	"context"

	"github.com/dsh-taskforce/sidecar/store"
)

// Read implements [store.Store].
func (s *Store) Read(ctx context.Context, fn func(store.Tx) error) error {
	leave, err := s.enter()
	if err != nil {
		return err
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return err
	}
	var refused error
	err = s.patiently(ctx, isLostRead, func(ctx context.Context) (err error) {
		refused, err = s.read(ctx, fn)
		return err
	})
	if err != nil {
		return classify(err, "the read failed")
	}
	return refused
}

// read runs fn on one snapshot. Its error is that of the database, refused that of fn.
func (s *Store) read(ctx context.Context, fn func(store.Tx) error) (refused, err error) {
	pooled, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, lostUnlessState(err)
	}
	defer pooled.Release()
	// A read that has begun runs to its end.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.options.BusyTimeout+grace)
	defer cancel()
	t := s.newTx(ctx, pooled.Conn())
	defer t.end()
	t.queue("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
	refused = store.Contain(func() error { return fn(t) })
	if t.broken != nil {
		return nil, t.broken
	}
	t.remember()
	return refused, nil
}
