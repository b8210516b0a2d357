package postgres

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DefaultSchema is the schema of a URL that names none.
const DefaultSchema = "taskforce"

// connections is how many connections a sidecar opens at most, unless the URL
// says pool_max_conns. They are opened when they are needed.
const connections = 10

// application is what the connections of a sidecar call themselves, unless the
// URL says application_name. It is spelt so that PostgreSQL keeps it as it is.
func (a *address) application() string {
	name := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, "taskforce "+a.schema)
	return name[:min(len(name), longestName)]
}

// name gives the connections a name for whoever looks at the server.
func (a *address) name(text string) {
	if _, named := a.pool.ConnConfig.RuntimeParams["application_name"]; !named {
		a.pool.ConnConfig.RuntimeParams["application_name"] = text
	}
}

// address is where a store is.
type address struct {
	pool *pgxpool.Config
	// schema is the name of the schema, and quoted its spelling in SQL.
	schema, quoted string
	// listen is the host and port for LISTEN, "" for those of the pool.
	listen string
	// chosen says that the URL chooses how statements are sent.
	chosen bool
}

// Speaks reports whether a location names a store of this engine.
func Speaks(location string) bool {
	return strings.HasPrefix(location, "postgres://") || strings.HasPrefix(location, "postgresql://")
}

// parseAddress reads a URL. Its errors do not repeat it, for it may hold a password.
func parseAddress(text string) (*address, error) {
	base, parameters, _ := strings.Cut(text, "?") // several hosts are no URL to net/url
	query, err := url.ParseQuery(parameters)
	if err != nil || !Speaks(text) {
		return nil, schema.Errorf(schema.ErrStoreConfig, "the store's URL is not postgres://user@host:port/database")
	}
	a := &address{schema: DefaultSchema, listen: query.Get("listen"), chosen: query.Has("default_query_exec_mode")}
	if query.Has("schema") {
		a.schema = query.Get("schema")
	}
	if err := checkSchema(a.schema); err != nil {
		return nil, err
	}
	if a.listen != "" {
		if _, _, err := splitPort(a.listen); err != nil {
			return nil, err
		}
	}
	a.quoted = pgx.Identifier{a.schema}.Sanitize()
	sized := query.Has("pool_max_conns")
	query.Del("schema")
	query.Del("listen")
	if a.pool, err = pgxpool.ParseConfig(base + "?" + query.Encode()); err != nil {
		// The driver's error repeats parts of the URL, so it goes nowhere.
		return nil, schema.Errorf(schema.ErrStoreConfig, "the store's URL, or a PG* variable or file that completes it, cannot be read")
	}
	if !sized {
		a.pool.MaxConns = connections
	}
	a.pool.MaxConns = max(a.pool.MaxConns, 2) // a read must get through beside a write
	return a, nil
}

// longestName is what PostgreSQL keeps of a name; it cuts longer ones silently.
const longestName = 63

func checkSchema(name string) error {
	switch {
	case name == "" || len(name) > longestName || strings.ContainsRune(name, 0):
		return schema.Errorf(schema.ErrStoreConfig, "a schema name has 1 to %d bytes", longestName)
	case strings.HasPrefix(name, "pg_"):
		return schema.Errorf(schema.ErrStoreConfig, "PostgreSQL keeps schema names that begin with pg_ for itself")
	}
	return nil
}

func splitPort(text string) (string, uint16, error) {
	host, port, err := net.SplitHostPort(text)
	n, parsed := strconv.ParseUint(port, 10, 16)
	if err != nil || parsed != nil || host == "" {
		return "", 0, schema.Errorf(schema.ErrStoreConfig, "listen=%s is not host:port", text)
	}
	return host, uint16(n), nil
}

// location names the store for people: hosts, database and schema.
func (a *address) location() string {
	var hosts []string
	add := func(host string, port uint16) {
		text := net.JoinHostPort(host, fmt.Sprint(port))
		if strings.HasPrefix(host, "/") {
			text = fmt.Sprintf("%s:%d", host, port)
		}
		for _, known := range hosts {
			if known == text {
				return // the same host once more, without TLS
			}
		}
		hosts = append(hosts, text)
	}
	c := a.pool.ConnConfig
	add(c.Host, c.Port)
	for _, f := range c.Fallbacks {
		add(f.Host, f.Port)
	}
	return fmt.Sprintf("postgres://%s/%s?schema=%s", strings.Join(hosts, ","), url.PathEscape(c.Database), url.QueryEscape(a.schema))
}
