package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/postgres"
	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
	"github.com/dsh-taskforce/sidecar/store/storetest"
)

// TestSuitePooled runs the suite through PgBouncer in transaction mode.
func TestSuitePooled(t *testing.T) {
	server := pgtest.Shared(t)
	port := server.Pooler(t, 20)
	storetest.Run(t, func(t *testing.T) store.Store {
		return open(t, pooledURL(port, server.Schema()), postgres.Options{})
	})
}

func pooledURL(port int, schema string) string {
	return fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres?schema=%s", pgtest.User, port, schema)
}

// More sidecars work through a pooler than it has connections, and none loses
// anything when one of its connections dies.
func TestLoadPooled(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	l := startLoad(t, 8, pooledURL(server.Pooler(t, 3), "taskforce"))
	l.more(30)
	admin := server.Connect(t, "taskforce")
	for range 5 {
		l.more(5)
		if _, err := admin.Exec(context.Background(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'taskforce%' LIMIT 1"); err != nil {
			t.Fatal(err)
		}
	}
	l.more(20)
	l.finish()
}

// A pooler is recognised; a watch then polls, unless it is told where the server is.
func TestPoolerIsRecognised(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	port := server.Pooler(t, 5)
	name := server.Schema()
	for _, test := range []struct {
		url, way string
		watching schema.Watching
	}{
		{server.URL(name), "directly", schema.WatchNotify},
		{pooledURL(port, name), "through a pooler", schema.WatchPoll},
		{pooledURL(port, name) + fmt.Sprintf("&listen=127.0.0.1:%d", server.Port), "through a pooler", schema.WatchNotify},
	} {
		s := open(t, test.url, postgres.Options{})
		findings, err := s.Examine(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(findings[0].Explanation, test.way) {
			t.Errorf("%s is not reached %s: %s", test.url, test.way, findings[0].Explanation)
		}
		if got := s.Identity().Watching; got != test.watching {
			t.Errorf("%s is watched by %q, want %q", test.url, got, test.watching)
		}
		ctx, cancel := context.WithCancel(context.Background())
		news, ended := make(chan struct{}, 100), make(chan error, 1)
		go func() { ended <- s.Watch(ctx, func() { news <- struct{}{} }) }()
		<-news
		if _, err := addTask(s, "run"); err != nil {
			t.Fatal(err)
		}
		<-news
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
