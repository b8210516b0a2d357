package main

import (
	"context"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
	"github.com/jackc/pgx/v5"
)

// serveURL starts a sidecar on a schema of a server.
func serveURL(t *testing.T, url string, flags ...string) *sidecar {
	t.Helper()
	return launch(t, program(t, append([]string{"serve", "--store", url}, flags...)...))
}

// administer runs statements one by one, as the administrator of the server.
func administer(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := conn.Exec(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// provokeStoreUnknown takes the connection away from a commit that waits for a
// standby which never comes. Repeating the call finds out what became of it.
func provokeStoreUnknown(t *testing.T) {
	server := pgtest.Start(t)
	url := server.URL("taskforce")
	s := serveURL(t, url)
	task := s.openTask("run", "")
	admin := server.Connect(t, "taskforce")
	administer(t, admin, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
	pgtest.Eventually(t, admin, "SELECT setting = 'nobody' FROM pg_settings WHERE name = 'synchronous_standby_names'")

	id := s.send(schema.Reserve.Name, reserving("run", task, 0, schema.Write, schema.New, "repo"))
	const waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
	pgtest.Eventually(t, admin, "SELECT EXISTS (SELECT 1 "+waiting+")")
	administer(t, admin, "SELECT pg_terminate_backend(pid) "+waiting)
	s.receiveUntil(id)[id].refused(t, schema.ErrStoreUnknown)

	administer(t, admin, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
	r := result(s, schema.Reserve, reserving("run", task, 0, schema.Write, schema.New, "repo"))
	if r.Generation != 1 {
		t.Errorf("the repeated call has made another admission: %+v", r)
	}
	if got := result(s, schema.GetSummary, schema.RunParams{RunID: "run"}); got.Used.Active != 1 {
		t.Errorf("got %+v", got.Used)
	}
}
