// Package pgtest starts PostgreSQL servers for tests: real ones, from the
// binaries that are installed, each with a cluster of its own on a free port.
// Where there are none a test is skipped, but fails in continuous integration.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// User is the superuser of every cluster, without a password.
const User = "taskforce"

// Server is one cluster and the process that serves it.
type Server struct {
	Dir  string
	Port int
	bin  string
	args []string
	cmd  *exec.Cmd
	// exited is closed when the process has ended.
	exited  chan struct{}
	schemas atomic.Int64
}

var shared = sync.OnceValues(func() (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgtest-")
	if err != nil {
		return nil, err
	}
	// Nothing here must survive the machine, so nobody waits for the disk.
	s, err := create(bin, dir, "-c", "fsync=off", "-c", "max_connections=300", "-c", "max_wal_size=256MB")
	if err == nil {
		started.Store(s)
	}
	return s, err
})

// started is the shared server, for Stop.
var started atomic.Pointer[Server]

// Shared is a server that all tests of a package share, each with a schema of its own.
func Shared(t testing.TB) *Server {
	t.Helper()
	s, err := shared()
	need(t, err)
	return s
}

// Start starts a server for one test, which may do with it what it likes.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	bin, err := binaries()
	need(t, err)
	s, err := create(bin, folder(t), args...)
	need(t, err)
	t.Cleanup(s.Kill)
	return s
}

// folder is one that the servers' user can reach, unlike those of the testing package.
func folder(t testing.TB) string {
	dir, err := os.MkdirTemp("", "pgtest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Stop ends the shared server. A package that uses it calls Stop after its tests.
func Stop() {
	if s := started.Load(); s != nil {
		s.Kill()
		_ = os.RemoveAll(s.Dir)
	}
}

// errAbsent says that there is no PostgreSQL on the machine.
var errAbsent = errors.New("PostgreSQL is not installed (initdb and postgres were looked for on PATH and in /usr/lib/postgresql/*/bin)")

// need skips a test for want of PostgreSQL, but in continuous integration fails it.
func need(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, errAbsent) && os.Getenv("CI") == "":
		t.Skip(err)
	default:
		t.Fatal(err)
	}
}

// binaries is the folder of the newest PostgreSQL.
func binaries() (string, error) {
	folders, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // fails only for a bad pattern
	slices.SortFunc(folders, func(a, b string) int { return len(b) - len(a) + bytes.Compare([]byte(b), []byte(a)) })
	if path, err := exec.LookPath("initdb"); err == nil {
		folders = append(folders, filepath.Dir(path))
	}
	for _, folder := range folders {
		if _, err := os.Stat(filepath.Join(folder, "postgres")); err == nil {
			return folder, nil
		}
	}
	return "", errAbsent
}

// create makes a cluster in a folder and starts its server.
func create(bin, dir string, args ...string) (*Server, error) {
	s := &Server{Dir: filepath.Join(dir, "data"), bin: bin, args: args}
	if err := giveAway(dir); err != nil {
		return nil, err
	}
	if err := s.Tool("initdb", "--pgdata", s.Dir, "--username", User, "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync"); err != nil {
		return nil, err
	}
	return s, s.Start()
}

// Tool runs one of PostgreSQL's programs as the user who owns the cluster.
func (s *Server) Tool(name string, args ...string) error {
	cmd := exec.CommandContext(context.Background(), filepath.Join(s.bin, name), args...)
	cmd.Dir = filepath.Dir(s.Dir)
	unprivileged(cmd)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, output)
	}
	return nil
}

// Start starts the server on its port, or at first on a free one. What is left
// of a server that was killed can be in the way for a moment.
func (s *Server) Start() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		if err := s.launch(); err != nil {
			return err
		}
		up, stop := context.WithCancel(ctx)
		exited := s.exited
		go func() {
			select {
			case <-exited:
				stop() // it will never be up
			case <-up.Done():
			}
		}()
		err := awaits(up, s.URL(""))
		stop()
		if err == nil || ctx.Err() != nil {
			return s.explain(err)
		}
		select {
		case <-ctx.Done():
			return s.explain(err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *Server) explain(err error) error {
	if err == nil {
		return nil
	}
	log, _ := os.ReadFile(s.Dir + ".log")
	return fmt.Errorf("the server does not start: %w\n%s", err, log)
}

// launch starts the process.
func (s *Server) launch() error {
	var err error
	if s.Port == 0 {
		if s.Port, err = FreePort(); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(s.Dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{"-D", s.Dir, "-p", fmt.Sprint(s.Port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="}, s.args...)
	s.cmd = exec.CommandContext(context.Background(), filepath.Join(s.bin, "postgres"), args...)
	s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = filepath.Dir(s.Dir), log, log
	unprivileged(s.cmd)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	cmd, exited := s.cmd, make(chan struct{})
	s.exited = exited
	go func() {
		defer close(exited)
		_ = cmd.Wait() // most are killed
	}()
	return nil
}

// Kill ends the server as a crash would, and waits for its end.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill() // an error if it has ended already
		<-s.exited
	}
}

// Disturb ends a process of the server that serves a sidecar, time and again
// until ctx ends, whatever else becomes of the server.
func (s *Server) Disturb(ctx context.Context, every time.Duration) {
	const victim = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'taskforce%' AND application_name NOT IN ('taskforce copy', 'taskforce status') ORDER BY random() LIMIT 1"
	var conn *pgx.Conn
	for {
		select {
		case <-ctx.Done():
			if conn != nil {
				_ = conn.Close(context.WithoutCancel(ctx))
			}
			return
		case <-time.After(every):
		}
		if conn == nil || conn.IsClosed() {
			// While the server is away there is nothing to disturb.
			conn, _ = pgx.Connect(ctx, s.URL(""))
			continue
		}
		_, _ = conn.Exec(ctx, victim) // an error if the server has gone again
	}
}

// KillBackend kills a process of the server that serves a client. The server
// then ends all others and starts again.
func (s *Server) KillBackend() error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, s.URL(""))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var pid int
	const query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() LIMIT 1"
	if err := conn.QueryRow(ctx, query).Scan(&pid); err != nil {
		return err
	}
	backend, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return backend.Kill()
}

// Shutdown ends the server and everything that its clients are at.
func (s *Server) Shutdown() error {
	err := s.Tool("pg_ctl", "stop", "--pgdata", s.Dir, "--mode", "fast", "--wait")
	if err == nil {
		<-s.exited
	}
	return err
}

// URL is how to reach a schema of the server; "" is none in particular.
func (s *Server) URL(schema string) string {
	url := fmt.Sprintf("postgres://%s@127.0.0.1:%d/postgres", User, s.Port)
	if schema != "" {
		url += "?schema=" + schema
	}
	return url
}

// Schema is the name of a schema that nobody has used.
func (s *Server) Schema() string { return fmt.Sprintf("s%d_%d", os.Getpid(), s.schemas.Add(1)) }

// Connect is a connection for what a test does behind the store's back.
func (s *Server) Connect(t testing.TB, schema string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), s.URL("")+"?search_path="+schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// FreePort is a port that nobody listens on.
func FreePort() (int, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
