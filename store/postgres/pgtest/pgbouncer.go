package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// patience is how long a server may take to start.
const patience = time.Minute

// errNoPooler says that there is no PgBouncer on the machine.
var errNoPooler = fmt.Errorf("%w: PgBouncer", errAbsent)

// Pooler starts a PgBouncer in transaction mode before the server, with a few
// connections for many clients, and returns its port.
func (s *Server) Pooler(t testing.TB, connections int) (port int) {
	t.Helper()
	binary, err := exec.LookPath("pgbouncer")
	if err != nil {
		need(t, errNoPooler)
	}
	dir := folder(t)
	need(t, giveAway(dir))
	port, err = FreePort()
	need(t, err)
	config := fmt.Sprintf(`[databases]
postgres = host=127.0.0.1 port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = transaction
max_client_conn = 1000
default_pool_size = %d
logfile = %s
`, s.Port, port, filepath.Join(dir, "users"), connections, filepath.Join(dir, "log"))
	need(t, os.WriteFile(filepath.Join(dir, "users"), []byte(`"`+User+`" ""`+"\n"), 0o644))
	need(t, os.WriteFile(filepath.Join(dir, "ini"), []byte(config), 0o644))
	cmd := exec.CommandContext(context.Background(), binary, "-q", filepath.Join(dir, "ini"))
	unprivileged(cmd)
	need(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	need(t, awaits(ctx, fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres", User, port)))
	return port
}

// awaits waits until something takes connections at a URL.
func awaits(ctx context.Context, url string) error {
	for {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Standby starts a synchronous standby of the server, and makes commits wait for it.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	dir := folder(t)
	need(t, giveAway(dir))
	standby := &Server{Dir: filepath.Join(dir, "data"), bin: s.bin, args: s.args}
	primary := fmt.Sprintf("host=127.0.0.1 port=%d user=%s application_name=standby", s.Port, User)
	need(t, standby.Tool("pg_basebackup", "--pgdata", standby.Dir, "--dbname", primary, "--write-recovery-conf", "--checkpoint", "fast", "--no-sync"))
	need(t, standby.Start())
	t.Cleanup(standby.Kill)
	conn := s.Connect(t, "public")
	for _, step := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'standby'", "SELECT pg_reload_conf()"} {
		_, err := conn.Exec(context.Background(), step)
		need(t, err)
	}
	Eventually(t, conn, "SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync')")
	return standby
}

// Promote makes a primary of a standby.
func (s *Server) Promote() error {
	return s.Tool("pg_ctl", "promote", "--pgdata", s.Dir, "--wait")
}

// Eventually waits until a query says yes.
func Eventually(t testing.TB, conn *pgx.Conn, query string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for yes := false; !yes; {
		if err := conn.QueryRow(ctx, query).Scan(&yes); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
}
