package postgres_test

import (
	"context"
	"testing"

	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/postgres"
	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
	"github.com/dsh-taskforce/sidecar/store/storetest"
)

// TestSuite runs the suite of all engines, each test in a schema of its own.
func TestSuite(t *testing.T) {
	server := pgtest.Shared(t)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, server.URL(server.Schema()), postgres.Options{}) })
}

// open opens a store and closes it after the test.
func open(t *testing.T, url string, options postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), url, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
