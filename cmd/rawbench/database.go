package main

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"regexp"
	"strings"

	_ "modernc.org/sqlite" // the driver
)

//go:embed sql/schema.sql
var schemaSQL string

//go:embed sql/statements.sql
var statementsSQL string

// database is one connection with its prepared statements.
type database struct {
	db    *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

// openDatabase opens one connection and prepares nothing.
func openDatabase(ctx context.Context, file string) (*database, error) {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		db.Close()
		return nil, err
	}
	return &database{db: db, conn: conn, stmts: map[string]*sql.Stmt{}}, nil
}

// openBaseline opens a connection as durable as the sidecar's, makes the
// contract's tables and prepares every statement.
func openBaseline(ctx context.Context, file string) (*database, error) {
	d, err := openDatabase(ctx, file)
	if err != nil {
		return nil, err
	}
	if err := d.exec(ctx, "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", schemaSQL); err != nil {
		d.close()
		return nil, err
	}
	if err := d.prepare(ctx); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

var statementName = regexp.MustCompile(`(?m)^-- (\w+)\n`)

// prepare prepares statements.sql, which the driver in JavaScript reads too.
func (d *database) prepare(ctx context.Context) error {
	names := statementName.FindAllStringSubmatchIndex(statementsSQL, -1)
	for _, at := range names {
		text, _, _ := strings.Cut(statementsSQL[at[1]:], ";")
		stmt, err := d.conn.PrepareContext(ctx, text) //nolint:sqlclosecheck // it lives as long as the connection
		if err != nil {
			return err
		}
		d.stmts[statementsSQL[at[2]:at[3]]] = stmt
	}
	return nil
}

func (d *database) close() {
	for _, stmt := range d.stmts {
		stmt.Close()
	}
	d.conn.Close()
	d.db.Close()
}

// exec runs statements that are not worth preparing.
func (d *database) exec(ctx context.Context, queries ...string) error {
	for _, query := range queries {
		if _, err := d.conn.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// write runs a prepared statement and returns the row it inserted.
func (d *database) write(ctx context.Context, name string, args ...any) (int64, error) {
	result, err := d.stmts[name].ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.LastInsertId()
}

// read runs a prepared statement and scans its row, which may be absent.
func (d *database) read(ctx context.Context, name string, args []any, into ...any) error {
	err := d.stmts[name].QueryRowContext(ctx, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}
