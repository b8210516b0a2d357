package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

var (
	_ store.Exporter = (*Store)(nil)
	_ store.Importer = (*Store)(nil)
)

// columnsOf are the columns of a table here, where seq is the rowid.
func columnsOf(table *store.Table) string {
	return strings.ReplaceAll(strings.Join(table.Columns(), ", "), "seq", "rowid")
}

// Export implements [store.Exporter].
func (s *Store) Export(ctx context.Context, put store.Put) error {
	return s.Read(ctx, func(t store.Tx) error {
		c := t.(*tx).conn
		for _, table := range store.Ledger {
			if table.Name == "workflow" && !c.workflow {
				continue
			}
			if err := c.export(ctx, table, put); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *conn) export(ctx context.Context, table *store.Table, put store.Put) error {
	order := strings.ReplaceAll(strings.Join(table.Order, ", "), "seq", "rowid")
	rows, err := c.c.QueryContext(ctx, fmt.Sprintf("SELECT %s FROM %s ORDER BY %s", columnsOf(table), table.Name, order))
	if err != nil {
		return classify(err, "the table %s cannot be read", table.Name)
	}
	defer rows.Close()
	row := make([]any, len(table.Columns()))
	fields := make([]any, len(row))
	for i := range row {
		fields[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(fields...); err != nil {
			return classify(rowError{err}, "the table %s cannot be read", table.Name)
		}
		if err := checkRow(table, row); err != nil {
			return err
		}
		if err := put(table, row); err != nil {
			return err
		}
	}
	return classify(rows.Err(), "the table %s cannot be read", table.Name)
}

// checkRow refuses values that SQLite keeps and no other engine would.
func checkRow(table *store.Table, row []any) error {
	for i, column := range table.Columns() {
		known := row[i] == nil
		if i < len(table.Numbers) {
			_, known = row[i].(int64)
		} else if !known {
			_, known = row[i].(string)
		}
		if !known {
			return schema.Errorf(schema.ErrStoreCorrupt, "the database is damaged: column %s of table %s holds a %T", column, table.Name, row[i])
		}
	}
	return nil
}

// Import implements [store.Importer].
func (s *Store) Import(ctx context.Context, fill func(store.Put) error) error {
	return s.Write(ctx, func(t store.Tx) error {
		inside := t.(*tx)
		if err := inside.mustBeEmpty(); err != nil {
			return err
		}
		inside.conn.ledger.forget() // it counted an empty ledger
		if err := fill(inside.put); err != nil {
			return err
		}
		return inside.noteGaps()
	})
}

func (t *tx) mustBeEmpty() error {
	for _, table := range store.Ledger {
		var some bool
		if table.Name == "workflow" && !t.conn.workflow {
			continue
		}
		if _, err := t.one("SELECT EXISTS (SELECT 1 FROM "+table.Name+")", nil, &some); err != nil {
			return err
		}
		if some {
			return schema.Errorf(schema.ErrStoreConfig, "the database %s is not empty, and nothing is ever overwritten", t.conn.store.path)
		}
	}
	return nil
}

// put adds a row. The table of managed tasks is the other writer's; where it is
// needed and absent, this one has what the rules need of it.
func (t *tx) put(table *store.Table, row []any) error {
	if table.Name == "workflow" && !t.conn.workflow {
		if err := t.exec("CREATE TABLE IF NOT EXISTS workflow (task_id INTEGER PRIMARY KEY)"); err != nil {
			return err
		}
	}
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(row)), ", ")
	return t.exec(fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table.Name, columnsOf(table), marks), row...)
}

// noteGaps remembers how many numbers the histories lack. Another engine gives
// numbers to transactions that it then undoes; here none is ever missing, and
// what goes missing later is to be noticed.
func (t *tx) noteGaps() error {
	for _, table := range []string{"governor_audit", "task_event"} {
		query := fmt.Sprintf("INSERT INTO sidecar_meta (key, value) SELECT 'gaps_in_%[1]s', coalesce(max(id), 0) - count(*) FROM %[1]s WHERE true ON CONFLICT (key) DO UPDATE SET value = excluded.value", table)
		if err := t.exec(query); err != nil {
			return err
		}
	}
	return nil
}

// Accounts sums up every promise about the ledger, and leaves the file aside.
func (s *Store) Accounts(ctx context.Context) ([]store.Finding, error) {
	var findings []store.Finding
	err := s.Read(ctx, func(t store.Tx) error {
		v, err := verify(&examination{context.WithoutCancel(ctx), s, t.(*tx).conn})
		if err == nil {
			findings = v.findings()
		}
		return err
	})
	return findings, err
}

// Idle reports whether no other process has the store in a folder open, as far
// as that shows: a file with a rollback journal is only locked while it is used.
// It asks for the whole file, which SQLite gives nobody while others have it.
func Idle(ctx context.Context, root string) (bool, error) {
	path, err := filepath.Abs(filepath.Join(root, FileName))
	if err != nil {
		return false, configError(err, "the root folder %s has no absolute path", root)
	}
	s := &Store{path: path}
	db, err := sql.Open("sqlite", s.uri(url.Values{"mode": {"rw"}, "_pragma": {"busy_timeout(0)", "locking_mode(EXCLUSIVE)"}}))
	if err != nil {
		return false, configError(err, "the database cannot be opened")
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, step := range []string{"BEGIN IMMEDIATE", "ROLLBACK"} {
		if _, err := db.ExecContext(ctx, step); isBusy(err) {
			return false, nil
		} else if err != nil {
			return false, classify(err, "the database %s cannot be opened", path)
		}
	}
	return true, nil
}
