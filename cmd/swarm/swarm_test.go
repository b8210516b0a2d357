package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"go.uber.org/goleak"
)

// The test binary is also the host that dies with its sidecar.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == launcher {
		launch(os.Args[2:])
		return
	}
	goleak.VerifyTestMain(m)
}

// TestSwarm is a short swarm; `make swarm N=1000000` is a long one. What it
// leaves is then tampered with, which its judges must find.
func TestSwarm(t *testing.T) {
	o := options{admissions: 2000, hosts: 8, binary: build(t), root: t.TempDir(), minLife: 50 * time.Millisecond, maxLife: 500 * time.Millisecond}
	violations, err := o.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Error(v)
	}
	content, err := os.ReadFile(filepath.Join(o.root, sqlite.FileName))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range tampered {
		t.Run(c.name, func(t *testing.T) { c.check(t, content) })
	}
}

// TestSwarmOnPostgres lets 16 sidecars loose on one server, whose own processes
// are killed all the time, and which is restarted once.
func TestSwarmOnPostgres(t *testing.T) {
	server := pgtest.Start(t, "-c", "fsync=off", "-c", "max_connections=300")
	o := options{admissions: 800, hosts: 16, binary: build(t), root: t.TempDir(), store: server.URL("swarm"), minLife: 200 * time.Millisecond, maxLife: time.Second}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var disturbed sync.WaitGroup
	disturbed.Go(func() {
		server.Disturb(ctx, 50*time.Millisecond)
	})
	disturbed.Go(func() {
		select {
		case <-ctx.Done():
			t.Error("the swarm ended before the server was restarted")
		case <-time.After(5 * time.Second):
			server.Kill()
			if err := server.Start(); err != nil {
				t.Error(err)
			}
		}
	})
	violations, err := o.run(t.Context())
	end()
	disturbed.Wait()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		t.Error(v)
	}
}

// build builds the sidecar as it is released.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "taskforce")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", binary, "github.com/dsh-taskforce/sidecar/cmd/taskforce")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return binary
}
