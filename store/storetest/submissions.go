package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

var submissions = []test{
	{"submissions take effect in their order", submissionOrder},
	{"what is acknowledged is visible", acknowledgedIsVisible},
	{"a failing member loses nobody else's", failingMember},
	{"a member that breaks the transaction loses nobody else's", breakingMember},
	{"a cancelled submission that has not begun is dropped", cancelledBeforeBegin},
	{"a cancelled submission that has begun runs to its end", cancelledAfterBegin},
	{"a cancelled context refuses a call", cancelledCall},
}

// hold occupies the writer until the returned function is called, so that
// what is submitted meanwhile waits together.
func hold(t *testing.T, s store.Store) (release func()) {
	t.Helper()
	begun, end, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	s.Submit(t.Context(), func(store.Tx) error {
		close(begun)
		<-end
		return nil
	}, func(err error) { done <- err })
	<-begun
	return func() {
		t.Helper()
		close(end)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// outcomes collects what submitted calls are answered.
type outcomes chan outcome

type outcome struct {
	name string
	err  error
}

// submit submits the addition of a task under a name, which fn may refuse.
func (o outcomes) submit(ctx context.Context, s store.Store, name string, fn func() error) {
	s.Submit(ctx, func(tx store.Tx) error {
		if _, err := addTask(tx, "run", name); err != nil {
			return err
		}
		return fn()
	}, func(err error) { o <- outcome{name, err} })
}

// wait returns the answers by name; each must come once.
func (o outcomes) wait(t *testing.T, n int) map[string]error {
	t.Helper()
	got := map[string]error{}
	for range n {
		answer := <-o
		if _, twice := got[answer.name]; twice {
			t.Errorf("%s was answered twice", answer.name)
		}
		got[answer.name] = answer.err
	}
	return got
}

func succeed() error { return nil }

func submissionOrder(t *testing.T, s store.Store) {
	const n = 300 // more than one batch
	release := hold(t, s)
	answers := make(outcomes, n)
	var want []string
	for i := range n {
		name := fmt.Sprint(i)
		want = append(want, name)
		answers.submit(t.Context(), s, name, succeed)
	}
	release()
	for name, err := range answers.wait(t, n) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	equal(t, "tasks", read(t, s, titles("run")), want)
}

func acknowledgedIsVisible(t *testing.T, s store.Store) {
	for i := range 20 {
		write(t, s, func(tx store.Tx) error { _, err := addTask(tx, "run", "t"); return err })
		if got := len(read(t, s, titles("run"))); got != i+1 {
			t.Fatalf("%d tasks after %d writes", got, i+1)
		}
	}
}

func failingMember(t *testing.T, s store.Store) {
	release := hold(t, s)
	answers := make(outcomes, 6)
	answers.submit(t.Context(), s, "a", succeed)
	answers.submit(t.Context(), s, "refused", func() error { return errRefused })
	answers.submit(t.Context(), s, "b", succeed)
	answers.submit(t.Context(), s, "panics", func() error { panic("of the test") })
	answers.submit(t.Context(), s, "known", func() error { return schema.Errorf(schema.ErrStatus, "of the test") })
	answers.submit(t.Context(), s, "c", succeed)
	release()
	got := answers.wait(t, 6)
	for _, name := range []string{"a", "b", "c"} {
		if got[name] != nil {
			t.Errorf("%s: %v", name, got[name])
		}
	}
	exactly(t, "refused", got["refused"], errRefused)
	fails(t, "panics", got["panics"], schema.ErrInternal)
	fails(t, "known", got["known"], schema.ErrStatus)
	equal(t, "tasks", read(t, s, titles("run")), []string{"a", "b", "c"})
}

// breakingMember adds a reservation twice, which no engine can keep.
func breakingMember(t *testing.T, s store.Store) {
	release := hold(t, s)
	answers := make(outcomes, 3)
	answers.submit(t.Context(), s, "a", succeed)
	s.Submit(t.Context(), func(tx store.Tx) error {
		_ = admit(tx, reservation("r", "run", 1, 1, schema.Read), 0, 0)
		_ = admit(tx, reservation("r", "run", 1, 1, schema.Read), 0, 0) // whoever ignores the error is not spared
		_, err := addTask(tx, "run", "after the failure")
		return err
	}, func(err error) { answers <- outcome{"breaks", err} })
	answers.submit(t.Context(), s, "b", succeed)
	release()
	got := answers.wait(t, 3)
	if got["a"] != nil || got["b"] != nil || got["breaks"] == nil {
		t.Errorf("got %v", got)
	}
	equal(t, "tasks", read(t, s, titles("run")), []string{"a", "b"})
	equal(t, "reservation", stored(t, s, "r"), (*store.Reservation)(nil))
	write(t, s, func(tx store.Tx) error { return admit(tx, reservation("r", "run", 1, 1, schema.Read), 0, 0) })
}

func cancelledBeforeBegin(t *testing.T, s store.Store) {
	release := hold(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(outcomes, 3)
	answers.submit(t.Context(), s, "first", succeed)
	answers.submit(ctx, s, "cancelled", func() error { t.Error("it ran"); return nil })
	answers.submit(t.Context(), s, "last", succeed)
	cancel()
	release()
	got := answers.wait(t, 3)
	if got["first"] != nil || got["last"] != nil || !errors.Is(got["cancelled"], context.Canceled) {
		t.Errorf("got %v", got)
	}
	equal(t, "tasks", read(t, s, titles("run")), []string{"first", "last"})
}

func cancelledAfterBegin(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answers := make(outcomes, 2)
	answers.submit(ctx, s, "kept", func() error { cancel(); return nil })
	if err := answers.wait(t, 1)["kept"]; err != nil {
		t.Errorf("its real outcome is hidden by %v", err)
	}
	equal(t, "tasks", read(t, s, titles("run")), []string{"kept"})

	ctx, cancel = context.WithCancel(t.Context())
	answers.submit(ctx, s, "refused", func() error { cancel(); return errRefused })
	exactly(t, "its real outcome", answers.wait(t, 1)["refused"], errRefused)

	ctx, cancel = context.WithCancel(t.Context())
	err := s.Read(ctx, func(tx store.Tx) error {
		cancel()
		_, err := titles("run")(tx)
		return err
	})
	if err != nil {
		t.Errorf("a read that has begun: %v", err)
	}
}

func cancelledCall(t *testing.T, s store.Store) {
	read(t, s, titles("run")) // so that an engine has a connection at hand
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ran := func(store.Tx) error { t.Error("it ran"); return nil }
	for range 20 {
		if err := s.Write(ctx, ran); !errors.Is(err, context.Canceled) {
			t.Fatalf("write: %v", err)
		}
		if err := s.Read(ctx, ran); !errors.Is(err, context.Canceled) {
			t.Fatalf("read: %v", err)
		}
	}
}
