package governor_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/postgres"
	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"
)

// engine is where the machine's store is kept.
type engine interface {
	open() (store.Store, error)
	// exec runs a statement as another writer, with its arguments in place of ?.
	exec(statement string, args ...any) error
	// workflow are the statements that put a task into the other writer's workflow.
	workflow() []string
	// undone lets the numbers of later tasks follow those of the kept ones, after
	// a transaction was undone that had taken some.
	undone() error
	// gaps says that numbers of audit entries may be missing.
	gaps() bool
	close()
}

// fileEngine is the embedded engine.
type fileEngine struct {
	root string
	raw  *sql.DB
}

func newFileEngine(t rapid.TB, root string) engine {
	raw, err := sql.Open("sqlite", "file:"+filepath.Join(root, sqlite.FileName)+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	return &fileEngine{root, raw}
}

func (e *fileEngine) open() (store.Store, error) {
	return sqlite.Open(context.Background(), e.root, sqlite.Options{})
}

func (e *fileEngine) exec(statement string, args ...any) error {
	_, err := e.raw.Exec(statement, args[:strings.Count(statement, "?")]...)
	return err
}

func (e *fileEngine) workflow() []string {
	return []string{
		strings.Replace(reference.Workflow, "CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1),
		"INSERT OR IGNORE INTO workflow VALUES (?, '', '', '', 1, 1, '{}', NULL, 1, 0, '', '', '')",
	}
}

func (e *fileEngine) undone() error { return nil }

func (e *fileEngine) gaps() bool { return false }

func (e *fileEngine) close() { e.raw.Close() }

// serverEngine is a schema of a server.
type serverEngine struct {
	url, schema string
	raw         *pgx.Conn
}

func newServerEngine(t rapid.TB, server *pgtest.Server) engine {
	name := server.Schema()
	raw, err := pgx.Connect(context.Background(), server.URL("")+"?search_path="+name)
	if err != nil {
		t.Fatal(err)
	}
	return &serverEngine{server.URL(name), name, raw}
}

func (e *serverEngine) open() (store.Store, error) {
	return postgres.Open(context.Background(), e.url, postgres.Options{})
}

func (e *serverEngine) exec(statement string, args ...any) error {
	for i := range strings.Count(statement, "?") {
		statement = strings.Replace(statement, "?", fmt.Sprint("$", i+1), 1)
	}
	_, err := e.raw.Exec(context.Background(), statement, args...)
	return err
}

func (e *serverEngine) workflow() []string {
	return []string{"INSERT INTO workflow (task_id) VALUES (?) ON CONFLICT DO NOTHING"}
}

func (e *serverEngine) undone() error {
	return e.exec("SELECT setval(pg_get_serial_sequence('task', 'id'), max(id)) FROM task")
}

func (e *serverEngine) gaps() bool { return true }

func (e *serverEngine) close() {
	_, _ = e.raw.Exec(context.Background(), "DROP SCHEMA "+e.schema+" CASCADE")
	_ = e.raw.Close(context.Background())
}
