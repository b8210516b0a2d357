package postgres_test

import (
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
