package postgres_test

import (
	"os"
	"testing"

	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		pgtest.Stop()
		os.Exit(status)
	}))
}
