package sqlite

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/google/uuid"
)

// SchemaVersion is the version of the tables, columns and indexes that this
// sidecar adds to the other writer's. A store with a larger one is refused.
const SchemaVersion = 1

// tables are the store's tables, by name: first those that the contract's own
// writer makes too, which must stay as they are, then ours.
var tables = []struct{ name, columns string }{
	{"task", `id INTEGER PRIMARY KEY, title TEXT NOT NULL, note TEXT, status TEXT NOT NULL DEFAULT 'open',
		owner TEXT, owner_session TEXT, run_id TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
		evidence_policy TEXT NOT NULL DEFAULT 'legacy', verification_files TEXT, verification_command TEXT,
		verification_cwd TEXT, evidence_generation INTEGER NOT NULL DEFAULT 0`},
	{"governor_run", `run_id TEXT PRIMARY KEY, max_active INTEGER NOT NULL, max_writers INTEGER NOT NULL,
		max_created INTEGER NOT NULL, max_retries INTEGER NOT NULL`},
	{"governor_reservation", `reservation_id TEXT PRIMARY KEY, run_id TEXT NOT NULL, task_id INTEGER NOT NULL,
		operation_key TEXT NOT NULL, payload TEXT NOT NULL, generation INTEGER NOT NULL,
		mode TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
		owner_session TEXT, session_id TEXT, settlement TEXT,
		UNIQUE(run_id, operation_key), UNIQUE(task_id, generation)`},
	{"governor_retry_charge", `reservation_id TEXT PRIMARY KEY, rework_generation INTEGER NOT NULL,
		retry_charge INTEGER NOT NULL, source TEXT NOT NULL`},
	{"governor_hold", `reservation_id TEXT NOT NULL, resource_key TEXT NOT NULL, mode TEXT NOT NULL,
		PRIMARY KEY(reservation_id, resource_key)`},
	{"governor_audit", `id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL, reservation_id TEXT,
		action TEXT NOT NULL, role TEXT NOT NULL, session_id TEXT NOT NULL, details TEXT NOT NULL, created_at TEXT NOT NULL`},

	{"task_event", `id INTEGER PRIMARY KEY AUTOINCREMENT, task_id INTEGER NOT NULL, run_id TEXT NOT NULL,
		action TEXT NOT NULL, role TEXT NOT NULL, session_id TEXT NOT NULL, from_status TEXT, to_status TEXT NOT NULL,
		evidence_generation INTEGER NOT NULL, note TEXT, created_at TEXT NOT NULL`},
	{"sidecar_meta", `key TEXT PRIMARY KEY, value TEXT NOT NULL`},
	{"sidecar_run_count", `run_id TEXT PRIMARY KEY, reservation_id TEXT NOT NULL, created INTEGER NOT NULL`},
	{"sidecar_task_count", `task_id INTEGER PRIMARY KEY, generation INTEGER NOT NULL, rework_generation INTEGER NOT NULL, charged INTEGER NOT NULL`},
}

// indexes are the store's indexes: the other writer's, then ours. Its index on
// run and state finds active work without the history; ours find one run's rows
// without another's. Each costs a page a write.
var indexes = []string{
	"CREATE INDEX IF NOT EXISTS idx_task_run_status ON task (run_id, status)",
	"CREATE INDEX IF NOT EXISTS idx_governor_run ON governor_reservation(run_id, state)",
	"CREATE UNIQUE INDEX IF NOT EXISTS idx_governor_active_task ON governor_reservation(task_id) WHERE state != 'settled'",
	"CREATE INDEX IF NOT EXISTS idx_governor_resource ON governor_hold(resource_key)",

	"CREATE INDEX IF NOT EXISTS sidecar_task_run ON task(run_id)",
	"CREATE INDEX IF NOT EXISTS sidecar_reservation_run ON governor_reservation(run_id)",
	"CREATE INDEX IF NOT EXISTS sidecar_audit_run ON governor_audit(run_id)",
	"CREATE INDEX IF NOT EXISTS sidecar_audit_reserved ON governor_audit(reservation_id) WHERE action = 'reserve'",
	"CREATE INDEX IF NOT EXISTS sidecar_event_task ON task_event(task_id)",
	"CREATE INDEX IF NOT EXISTS sidecar_event_run ON task_event(run_id)",
}

// laterColumns are the columns of task that older files lack.
var laterColumns = []struct{ name, definition, absent string }{
	{"note", "TEXT", "NULL"},
	{"status", "TEXT NOT NULL DEFAULT 'open'", "'open'"},
	{"owner", "TEXT", "NULL"},
	{"owner_session", "TEXT", "NULL"},
	{"run_id", "TEXT", "NULL"},
	{"created_at", "TEXT NOT NULL DEFAULT ''", "''"},
	{"updated_at", "TEXT NOT NULL DEFAULT ''", "''"},
	{"evidence_policy", "TEXT NOT NULL DEFAULT 'legacy'", "'legacy'"},
	{"verification_files", "TEXT", "NULL"},
	{"verification_command", "TEXT", "NULL"},
	{"verification_cwd", "TEXT", "NULL"},
	{"evidence_generation", "INTEGER NOT NULL DEFAULT 0", "0"},
}

// upgrade brings the schema of the file up to date. A read-only connection
// leaves the file alone and shadows what is missing by temporary tables.
func (s *Store) upgrade(ctx context.Context, c *conn) error {
	version, err := c.schemaVersion(ctx)
	if err != nil {
		return err
	}
	if version > SchemaVersion {
		return newerSchema(version)
	}
	if s.options.ReadOnly {
		return classify(c.shadow(ctx), "the schema of %s cannot be read", s.path)
	}
	if version == SchemaVersion {
		return nil
	}
	return s.upgradeIn(ctx, c)
}

func newerSchema(version int64) error {
	return schema.Errorf(schema.ErrStoreVersion,
		"the database has schema version %d; this sidecar knows versions up to %d, so upgrade it", version, SchemaVersion)
}

// schemaVersion returns the version that the file records, 0 if it records none.
func (c *conn) schemaVersion(ctx context.Context) (int64, error) {
	var text string
	known, err := c.hasTable(ctx, "sidecar_meta")
	if err != nil || !known {
		return 0, err
	}
	const query = "SELECT value FROM sidecar_meta WHERE key = 'schema_version'"
	if found, err := c.scan(ctx, query, nil, &text); err != nil || !found {
		return 0, classify(err, "the schema version cannot be read")
	}
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, schema.Errorf(schema.ErrStoreCorrupt, "the database records a schema version that is not a number")
	}
	return version, nil
}

func (c *conn) hasTable(ctx context.Context, name string) (found bool, err error) {
	_, err = c.scan(ctx, "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema WHERE type IN ('table', 'view') AND name = ?)", []any{name}, &found)
	return found, classify(err, "the schema cannot be read")
}

// upgradeIn makes the tables, columns and indexes in one transaction, so that
// a kill in the middle leaves the file as it was.
func (s *Store) upgradeIn(ctx context.Context, c *conn) error {
	if _, err := c.c.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return classify(err, "the schema cannot be upgraded")
	}
	err := s.upgradeSteps(ctx, c)
	if err == nil {
		_, err = c.c.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		_, _ = c.c.ExecContext(ctx, "ROLLBACK") // the caller closes the connection
	}
	return classify(err, "the schema of %s cannot be upgraded", s.path)
}

func (s *Store) upgradeSteps(ctx context.Context, c *conn) error {
	// Another process may have upgraded while this one waited for the lock.
	if version, err := c.schemaVersion(ctx); err != nil || version == SchemaVersion {
		return err
	}
	var steps []string
	for _, table := range tables {
		steps = append(steps, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (%s)", table.name, table.columns))
	}
	columns, err := c.columns(ctx, "task")
	if err != nil {
		return err
	}
	for _, column := range laterColumns {
		if len(columns) > 0 && !columns[column.name] {
			steps = append(steps, fmt.Sprintf("ALTER TABLE task ADD COLUMN %s %s", column.name, column.definition))
		}
	}
	steps = append(steps, indexes...)
	steps = append(steps, firstNotes...)
	for _, step := range steps {
		if _, err := c.c.ExecContext(ctx, step); err != nil {
			return err
		}
	}
	const remember = "INSERT INTO sidecar_meta (key, value) VALUES ('store_id', ?), ('schema_version', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE key = 'schema_version'"
	_, err = c.c.ExecContext(ctx, remember, uuid.NewString(), strconv.Itoa(SchemaVersion))
	return err
}

// columns returns the names of a table's columns, none if there is no such table.
func (c *conn) columns(ctx context.Context, table string) (map[string]bool, error) {
	rows, err := c.c.QueryContext(ctx, "SELECT name FROM pragma_table_info(?, 'main')", table)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names[name] = true
	}
	return names, rows.Err()
}

// shadow makes the connection see every table and column of this version,
// empty where the file lacks them, without touching the file.
func (c *conn) shadow(ctx context.Context) error {
	c.foreign = true
	for _, table := range tables {
		columns, err := c.columns(ctx, table.name)
		if err != nil {
			return err
		}
		step := ""
		switch {
		case len(columns) == 0:
			step = fmt.Sprintf("CREATE TEMP TABLE %s (%s)", table.name, table.columns)
		case table.name == "task":
			step = shadowTask(columns)
		}
		if step == "" {
			continue
		}
		if _, err := c.c.ExecContext(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// shadowTask is a view of an older task table with all later columns, "" if it lacks none.
func shadowTask(columns map[string]bool) string {
	list, missing := []string{"id", "title"}, false
	for _, column := range laterColumns {
		if columns[column.name] {
			list = append(list, column.name)
			continue
		}
		missing = true
		list = append(list, column.absent+" AS "+column.name)
	}
	if !missing {
		return ""
	}
	return "CREATE TEMP VIEW task AS SELECT " + strings.Join(list, ", ") + " FROM main.task"
}

// identify remembers which store this is.
func (s *Store) identify(ctx context.Context, c *conn) error {
	identity := store.Identity{Engine: "sqlite", Location: s.path, SchemaVersion: SchemaVersion, Watching: schema.WatchPoll}
	_, err := c.scan(ctx, "SELECT sqlite_version(), coalesce((SELECT value FROM sidecar_meta WHERE key = 'store_id'), '')", nil,
		&identity.EngineVersion, &identity.ID)
	s.identity = identity
	return classify(err, "the identity of %s cannot be read", s.path)
}
