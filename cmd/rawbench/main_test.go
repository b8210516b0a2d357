package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// TestStatements shows that the baselines write what the sidecar reads: their
// files are those of the contract.
func TestStatements(t *testing.T) {
	ctx, root := context.Background(), t.TempDir()
	db, err := openBaseline(ctx, filepath.Join(root, sqlite.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	if err := db.fill(ctx, "filled", 120); err != nil {
		t.Fatal(err)
	}
	for run, perCommit := range map[string]int{"single": 1, "batched": 64} {
		if _, err := db.reserves(ctx, run, 60, perCommit); err != nil {
			t.Fatal(err)
		}
	}
	s, err := sqlite.Open(ctx, root, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for run, want := range map[string]struct{ total, active, audit int }{
		"filled":    {120, 0, 360},
		"single-0":  {50, 50, 50},
		"batched-1": {10, 10, 10},
	} {
		err := s.Read(ctx, func(tx store.Tx) error {
			got, err := governor.Snapshot(tx, &schema.RunParams{RunID: run})
			if err != nil {
				return err
			}
			if len(got.Reservations) != want.total || got.ActiveTotal != int64(want.active) || len(got.Audit) != want.audit {
				t.Errorf("%s has %d reservations, %d active, %d audit entries; want %+v", run, len(got.Reservations), got.ActiveTotal, len(got.Audit), want)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestEcho(t *testing.T) {
	var out bytes.Buffer
	if err := echo(strings.NewReader("{\"id\":1}\n{\"id\":\"a\",\"method\":\"ping\"}\n"), &out, nothing); err != nil {
		t.Fatal(err)
	}
	want := "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}\n"
	if out.String() != want {
		t.Errorf("got %s, want %s", out.String(), want)
	}
}
