package postgres

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// oldest is the oldest server with generated columns, which the tables use.
const oldest = 120000

// The pauses between tries grow from the first to the last.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// patiently runs fn until it succeeds, fails for good, or the busy timeout has
// passed: a server restarts, a standby is promoted, a deadlock is undone.
func (s *Store) patiently(ctx context.Context, again func(error) bool, fn func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, s.options.BusyTimeout)
	defer cancel()
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := fn(bounded)
		if err == nil || !again(err) {
			return err
		}
		if s.pool != nil && isLost(err) {
			s.pool.Reset() // the other idle connections led to the same server
		}
		select {
		case <-bounded.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
	}
}

// connect makes the pool, after a first connection has told what is behind the URL.
func (s *Store) connect(ctx context.Context) error {
	config := s.address.pool
	config.ConnConfig.OnNotice = noteWarning
	err := s.patiently(ctx, isTransient, func(ctx context.Context) error {
		conn, err := pgx.ConnectConfig(ctx, config.ConnConfig.Copy())
		if err != nil {
			return lost(err)
		}
		defer conn.Close(context.WithoutCancel(ctx))
		return s.recognize(ctx, conn)
	})
	if err != nil {
		return classify(err, "%s cannot be opened", s.address.location())
	}
	if s.pooled && !s.address.chosen {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return classify(err, "%s cannot be opened", s.address.location())
	}
	return nil
}

// recognize checks that the server can keep a store. A pooler shows itself by
// the process number that it gave the connection, which is not the server's.
func (s *Store) recognize(ctx context.Context, conn *pgx.Conn) error {
	var pid uint32
	var version int
	var encoding string
	const query = "SELECT pg_backend_pid()::bigint, current_setting('server_version_num')::bigint, current_setting('server_encoding')"
	if err := conn.QueryRow(ctx, query, pgx.QueryExecModeExec).Scan(&pid, &version, &encoding); err != nil {
		if conn.IsClosed() {
			return lost(err)
		}
		return err
	}
	s.pooled = pid != conn.PgConn().PID()
	s.identity.EngineVersion = conn.PgConn().ParameterStatus("server_version")
	switch {
	case version < oldest:
		return schema.Errorf(schema.ErrStoreConfig, "the server is PostgreSQL %s; the oldest that can keep a store is 12", s.identity.EngineVersion)
	case encoding != "UTF8":
		return schema.Errorf(schema.ErrStoreConfig, "the database has the encoding %s; a store needs UTF8", encoding)
	}
	return nil
}

// warned is where a connection remembers that the server has warned.
const warned = "taskforce: warned"

// noteWarning remembers a warning. During a commit it says that the commit is
// not on the standby that it should have waited for.
func noteWarning(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		c.CustomData()[warned] = true
	}
}

func tookWarning(c *pgx.Conn) bool {
	data := c.PgConn().CustomData()
	_, found := data[warned]
	delete(data, warned)
	return found
}
