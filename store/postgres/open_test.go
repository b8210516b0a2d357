package postgres_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/postgres"
	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
)

// Sidecars that start at once on a database without a schema make one store.
func TestManyStartAtOnce(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for range 5 {
		url := server.URL(server.Schema())
		ids := make([]string, 16)
		var group sync.WaitGroup
		for i := range ids {
			group.Go(func() {
				s, err := postgres.Open(context.Background(), url, postgres.Options{BusyTimeout: time.Minute})
				if err != nil {
					t.Error(err)
					return
				}
				defer s.Close()
				ids[i] = s.Identity().ID
			})
		}
		group.Wait()
		for _, id := range ids {
			if id == "" || id != ids[0] {
				t.Fatalf("there are several stores: %v", ids)
			}
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	host := fmt.Sprintf("127.0.0.1:%d", server.Port)
	soon := postgres.Options{BusyTimeout: 50 * time.Millisecond}
	for _, test := range []struct {
		url  string
		code schema.Code
	}{
		{"postgres://u:secret@" + host + "/absent", schema.ErrStoreConfig},
		{"postgres://nobody:secret@" + host + "/postgres", schema.ErrStoreConfig},
		{"postgres://u:secret@127.0.0.1:1/postgres", schema.ErrStoreBusy},
		{"postgres://u:secret@" + host + ":x/postgres", schema.ErrStoreConfig},
		{"postgres://u:secret@" + host + "/postgres?sslmode=secret", schema.ErrStoreConfig},
		{"postgres://taskforce:secret@" + host + "/postgres?sslmode=require", schema.ErrStoreBusy},
		{"postgres://u:secret@" + host + "/postgres?schema=", schema.ErrStoreConfig},
		{"postgres://u:secret@" + host + "/postgres?schema=pg_secrets", schema.ErrStoreConfig},
		{"postgres://u:secret@" + host + "/postgres?schema=" + strings.Repeat("x", 64), schema.ErrStoreConfig},
		{"postgres://u:secret@" + host + "/postgres?listen=nowhere", schema.ErrStoreConfig},
		{"mysql://u:secret@" + host + "/postgres", schema.ErrStoreConfig},
	} {
		refuses(t, test.url, soon, test.code)
	}
	refuses(t, server.URL(server.Schema()), postgres.Options{ReadOnly: true}, schema.ErrStoreConfig)
}

// A schema may have any name.
func TestSchemaNamesAreQuoted(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	for _, name := range []string{"Upper", `a"b`, "a.b", "drop table; --", "täsk", "select", "$1", "'"} {
		s := open(t, server.URL(url.QueryEscape(name)), postgres.Options{})
		if _, err := addTask(s, "run"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var n int
		conn := server.Connect(t, "public")
		if err := conn.QueryRow(context.Background(), "SELECT count(*) FROM pg_tables WHERE schemaname = $1", name).Scan(&n); err != nil || n < 8 {
			t.Errorf("%s has %d tables (%v)", name, n, err)
		}
	}
}

// A schema that a newer sidecar has made is refused, by one that starts and by
// one that runs.
func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	name := server.Schema()
	s := open(t, server.URL(name), postgres.Options{})
	admin := server.Connect(t, name)
	if _, err := admin.Exec(context.Background(), "UPDATE sidecar_meta SET value = '99' WHERE key = 'schema_version'"); err != nil {
		t.Fatal(err)
	}
	_, err := addTask(s, "run")
	failed(t, err, schema.ErrStoreVersion)
	refuses(t, server.URL(name), postgres.Options{}, schema.ErrStoreVersion)
	refuses(t, server.URL(name), postgres.Options{ReadOnly: true}, schema.ErrStoreVersion)
}

// A store that takes the place of another is not mistaken for it.
func TestReplacedStoreIsNoticed(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	name := server.Schema()
	s := open(t, server.URL(name), postgres.Options{})
	admin := server.Connect(t, name)
	if _, err := admin.Exec(context.Background(), "UPDATE sidecar_meta SET value = 'another' WHERE key = 'store_id'"); err != nil {
		t.Fatal(err)
	}
	_, err := addTask(s, "run")
	failed(t, err, schema.ErrStoreReplaced)
}

// A role that may do no more than the documentation grants serves a store that
// another role has made.
func TestLeastPrivileges(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	name := server.Schema()
	open(t, server.URL(name), postgres.Options{}).Close()
	admin := server.Connect(t, name)
	host := name + "_host"
	for _, statement := range []string{ // as in POSTGRESQL.md
		"CREATE ROLE " + host + " LOGIN",
		"GRANT USAGE ON SCHEMA " + name + " TO " + host,
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA " + name + " TO " + host,
		"REVOKE INSERT, UPDATE, DELETE ON " + name + ".sidecar_meta, " + name + ".workflow FROM " + host,
		"REVOKE UPDATE, DELETE ON " + name + ".governor_audit, " + name + ".task_event, " + name + ".governor_retry_charge FROM " + host,
	} {
		if _, err := admin.Exec(context.Background(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	s := open(t, strings.Replace(server.URL(name), pgtest.User+"@", host+"@", 1), postgres.Options{})
	task, err := addTask(s, "run")
	if err != nil {
		t.Fatal(err)
	}
	r, err := reserve(s, "run", task.TaskID, 0, schema.New, "repo")
	if err != nil {
		t.Fatal(err)
	}
	if err := settle(s, r); err != nil {
		t.Fatal(err)
	}
	findings, err := s.Examine(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Name == "privileges" && f.Level != "ok" {
			t.Errorf("%s", f.Explanation)
		}
	}
}
