package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"

	"modernc.org/sqlite" // the driver too
)

// SQLite syncs without the time of the last write, which nobody needs after a
// crash, as the builds of most Linux distributions do. Where it cannot, it
// syncs all of the file.
func init() { _, _ = sqlite.Fdatasync(true) }

// conn is one SQLite connection with its prepared statements. One goroutine
// uses it at a time.
type conn struct {
	store *Store
	db    *sql.DB
	c     *sql.Conn
	stmts map[string]*statement
	// wal says that the file has a write-ahead log.
	wal bool
	// busyTimeout is how long a statement waits for a lock now.
	busyTimeout time.Duration
	// version is PRAGMA data_version when the facts below were last learnt.
	version int64
	// workflow says that the other writer's table of managed tasks exists.
	workflow bool
	ledger   ledger
	// added is what the transaction has added to the histories.
	added mark
	// holds says that the connection has read (see [files]).
	holds bool
	// foreign says that the file may lack our indexes, so that none can be demanded.
	foreign bool
}

var indexedBy = regexp.MustCompile(` INDEXED BY \w+`)

// connect opens one connection. Each has a pool of its own, because a pool of
// several would hide which connection a pragma or transaction belongs to.
func (s *Store) connect(ctx context.Context, readOnly bool) (*conn, error) {
	db, err := sql.Open("sqlite", s.dsn(readOnly))
	if err != nil {
		return nil, configError(err, "the database cannot be opened")
	}
	db.SetMaxOpenConns(1)
	c, err := db.Conn(ctx)
	if err != nil {
		db.Close()
		return nil, classify(err, "the database %s cannot be opened", s.path)
	}
	return &conn{store: s, db: db, c: c, stmts: map[string]*statement{}, busyTimeout: s.options.BusyTimeout, version: -1}, nil
}

// setWaiting says whether the next statements are to wait for a lock.
func (c *conn) setWaiting(ctx context.Context, wait bool) error {
	if !wait {
		return c.setBusyTimeout(ctx, 0)
	}
	return c.setBusyTimeout(ctx, c.store.options.BusyTimeout)
}

func (c *conn) setBusyTimeout(ctx context.Context, timeout time.Duration) error {
	if timeout == c.busyTimeout {
		return nil
	}
	// Not prepared once: this pragma does its work while it is prepared.
	if _, err := c.c.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout(%d)", timeout.Milliseconds())); err != nil {
		return err
	}
	c.busyTimeout = timeout
	return nil
}

// dsn spells the options of every connection. The driver applies the pragmas
// before the connection is used.
func (s *Store) dsn(readOnly bool) string {
	query := url.Values{}
	query.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", s.options.BusyTimeout.Milliseconds()))
	query.Add("_pragma", "synchronous(FULL)")
	query.Add("_pragma", fmt.Sprintf("journal_size_limit(%d)", longLog))
	query.Add("_pragma", "temp_store(MEMORY)")
	query.Add("_pragma", "trusted_schema(OFF)")
	switch {
	case readOnly && s.logged:
		query.Set("mode", "ro") // the log is another's: not to be checkpointed or deleted here
	case readOnly:
		query.Set("mode", "rw") // makes an empty log if the mode is WAL, and deletes it on closing
	}
	return s.uri(query)
}

func (s *Store) uri(query url.Values) string {
	path := filepath.ToSlash(s.path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}).String()
}

// close closes the connection, if that can do no harm.
func (c *conn) close() {
	if c.store.releaseFiles(c) {
		c.closeNow()
	}
}

// hold makes sure that the files which the connection has read stay the same.
func (c *conn) hold() {
	if !c.holds {
		c.holds = true
		c.store.holdFiles()
	}
}

func (c *conn) closeNow() {
	for _, stmt := range c.stmts {
		stmt.close()
	}
	c.c.Close()
	c.db.Close()
}

// stmt returns the prepared form of a constant query.
func (c *conn) stmt(ctx context.Context, query string) (*statement, error) {
	if err := failpoint(query); err != nil {
		return nil, err
	}
	if stmt, ok := c.stmts[query]; ok {
		return stmt, nil
	}
	text := query
	if c.foreign {
		text = indexedBy.ReplaceAllString(query, "")
	}
	stmt, err := prepare(ctx, c.c, text)
	if err != nil {
		return nil, err
	}
	c.stmts[query] = stmt
	return stmt, nil
}

func (c *conn) exec(ctx context.Context, query string, args ...any) error {
	stmt, err := c.stmt(ctx, query)
	if err != nil {
		return err
	}
	_, err = stmt.exec(ctx, args)
	return err
}

// scan runs a query that returns one row. It reports false if there is none.
func (c *conn) scan(ctx context.Context, query string, args []any, into ...any) (bool, error) {
	stmt, err := c.stmt(ctx, query)
	if err != nil {
		return false, err
	}
	rows, err := stmt.query(ctx, args)
	if err != nil {
		return false, err
	}
	defer rows.close()
	if !rows.Next() {
		return false, rows.Err()
	}
	if err := rows.Scan(into...); err != nil {
		return false, rowError{err}
	}
	return true, nil
}

// refresh learns again, inside a transaction, what another process's commit
// may have changed.
func (c *conn) refresh(ctx context.Context) error {
	acknowledged := c.store.acknowledged.Load() // before there is a state to look for it in
	var version int64
	if _, err := c.scan(ctx, "PRAGMA data_version", nil, &version); err != nil {
		return err
	}
	c.hold()
	if version == c.version {
		return nil
	}
	if c.version < 0 { // an open connection keeps the mode of a file with a log
		var mode string
		if _, err := c.scan(ctx, "PRAGMA main.journal_mode", nil, &mode); err != nil {
			return err
		}
		c.wal = mode == "wal"
	}
	var schemaVersion int64
	var id string
	const query = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'workflow'), coalesce((SELECT CAST(value AS INTEGER) FROM sidecar_meta WHERE key = 'schema_version'), 0), coalesce((SELECT value FROM sidecar_meta WHERE key = 'store_id'), '')"
	if _, err := c.scan(ctx, query, nil, &c.workflow, &schemaVersion, &id); err != nil {
		return err
	}
	if schemaVersion > SchemaVersion {
		return newerSchema(schemaVersion)
	}
	if err := c.recognize(ctx, id, acknowledged); err != nil {
		return err
	}
	if c.ledger.known {
		if err := c.ledger.catchUp(ctx, c); err != nil {
			return err
		}
	}
	c.version = version
	return nil
}

// setJournal sets the journal mode of a file that has just been created. While
// other processes create it too, SQLite answers busy at once, so it is asked
// again until the busy timeout.
func (c *conn) setJournal(ctx context.Context, mode string, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		var got string
		err := c.c.QueryRowContext(ctx, "PRAGMA journal_mode = "+mode).Scan(&got)
		switch {
		case err == nil && got == mode:
			return nil
		case err == nil:
			return schema.Errorf(schema.ErrStoreConfig, "the database cannot use the journal mode %s", mode)
		case !isBusy(err) || time.Now().After(deadline):
			return classify(err, "the journal mode cannot be set")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
}
