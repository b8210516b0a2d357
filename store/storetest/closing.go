package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/google/uuid"
)

var closing = []test{
	{"a store has an identity", identity},
	{"a closed store stays closed", closedStaysClosed},
	{"closing serves what was submitted", closingServes},
	{"closing waits for reads", closingWaits},
	{"closing ends a watch", closingEndsAWatch},
	{"a watch tells of commits", watchTells},
	{"a watch ends with its context", watchEnds},
}

func identity(t *testing.T, s store.Store) {
	id := s.Identity()
	if _, err := uuid.Parse(id.ID); err != nil || id.Engine == "" || id.EngineVersion == "" || id.Location == "" || id.SchemaVersion < 1 {
		t.Errorf("got %+v", id)
	}
}

func closedStaysClosed(t *testing.T, s store.Store) {
	write(t, s, func(tx store.Tx) error { _, err := addTask(tx, "run", "t"); return err })
	read(t, s, titles("run"))
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		ran := func(store.Tx) error { t.Error("it ran"); return nil }
		fails(t, "write", s.Write(t.Context(), ran), schema.ErrStoreClosed)
		fails(t, "read", s.Read(t.Context(), ran), schema.ErrStoreClosed)
		fails(t, "watch", s.Watch(t.Context(), func() { t.Error("it told") }), schema.ErrStoreClosed)
		answered := make(chan error, 1)
		s.Submit(t.Context(), ran, func(err error) { answered <- err })
		fails(t, "submit", <-answered, schema.ErrStoreClosed)
	}
	if s.Identity().ID == "" {
		t.Error("a closed store forgot its identity")
	}
}

func closingServes(t *testing.T, s store.Store) {
	release := hold(t, s)
	answers := make(outcomes, 5)
	for i := range 5 {
		answers.submit(t.Context(), s, fmt.Sprint(i), succeed)
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	release()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if len(answers) != 5 {
		t.Errorf("%d of 5 were answered when the store had closed", len(answers))
	}
	for name, err := range answers.wait(t, 5) {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func closingWaits(t *testing.T, s store.Store) {
	begun, end := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		err := s.Read(t.Context(), func(tx store.Tx) error {
			close(begun)
			<-end
			_, err := titles("run")(tx)
			return err
		})
		if err != nil {
			t.Errorf("a read that had begun: %v", err)
		}
	})
	<-begun
	group.Go(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	close(end)
	group.Wait()
}

// watched starts a watch and returns its news and its end. It returns when the
// watch has told of the present state.
func watched(ctx context.Context, s store.Store) (news chan struct{}, ended chan error) {
	news, ended = make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- s.Watch(ctx, func() {
			select {
			case news <- struct{}{}:
			default:
			}
		})
	}()
	<-news
	return news, ended
}

func closingEndsAWatch(t *testing.T, s store.Store) {
	_, ended := watched(t.Context(), s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fails(t, "watch", <-ended, schema.ErrStoreClosed)
}

func watchTells(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	news, ended := watched(ctx, s)
	for range 3 {
		write(t, s, func(tx store.Tx) error { _, err := addTask(tx, "run", "t"); return err })
		<-news
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func watchEnds(t *testing.T, s store.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Watch(ctx, func() {}); err != nil {
		t.Error(err)
	}
}
