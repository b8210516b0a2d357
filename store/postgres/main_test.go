package postgres_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	status := m.Run()
	pgtest.Stop()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}
