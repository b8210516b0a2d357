package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/dsh-taskforce/sidecar/store"
)

// check is one question about the server.
type check struct {
	name string
	ask  func(*tx) (store.Level, string, error)
}

var checks = []check{
	{"server", checkServer},
	{"durability", checkDurability},
	{"standby", checkStandby},
	{"privileges", checkPrivileges},
	{"connections", checkConnections},
	{"encryption", checkEncryption},
	{"schema", checkSchemaVersion},
}

// Examine asks every question about the server and the way to it. It changes
// nothing, and a store that was opened ReadOnly is enough for it.
func (s *Store) Examine(ctx context.Context) ([]store.Finding, error) {
	var findings []store.Finding
	err := s.Read(ctx, func(inside store.Tx) error {
		findings = nil
		for _, c := range checks {
			level, explanation, err := c.ask(inside.(*tx))
			if err != nil {
				return err
			}
			findings = append(findings, store.Finding{Level: level, Name: c.name, Explanation: explanation})
		}
		return nil
	})
	return findings, err
}

func checkServer(t *tx) (store.Level, string, error) {
	way := "directly"
	if t.store.pooled {
		way = "through a pooler"
	}
	return store.Fine, fmt.Sprintf("PostgreSQL %s, reached %s at %s", t.store.identity.EngineVersion, way, t.store.identity.Location), nil
}

// checkDurability asks for the settings without which a commit can be lost.
func checkDurability(t *tx) (store.Level, string, error) {
	var fsync, pages, commit string
	if _, err := t.one("SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')", nil, &fsync, &pages, &commit); err != nil {
		return "", "", err
	}
	settings := fmt.Sprintf("fsync is %s, full_page_writes %s, synchronous_commit %s", fsync, pages, commit)
	switch {
	case fsync != "on" || pages != "on":
		return store.Fault, settings + ": what is acknowledged can be lost", nil
	case commit == "off":
		return store.Fine, settings + ", which the sidecar's transactions set to on", nil
	}
	return store.Fine, settings, nil
}

func checkStandby(t *tx) (store.Level, string, error) {
	var recovering, synchronous bool
	if _, err := t.one("SELECT pg_is_in_recovery(), current_setting('synchronous_standby_names') <> ''", nil, &recovering, &synchronous); err != nil {
		return "", "", err
	}
	switch {
	case recovering:
		return store.Warning, "the server is a standby, which cannot be written to: name the primary, or several hosts and target_session_attrs=read-write", nil
	case synchronous:
		return store.Fine, "commits wait for a synchronous standby", nil
	}
	return store.Fine, "commits wait for no standby: a failover can lose the last ones", nil
}

// checkPrivileges looks for what serving needs and the role lacks.
func checkPrivileges(t *tx) (store.Level, string, error) {
	var lacking []string
	for _, table := range append([]string{"sidecar_meta"}, tableNames()...) {
		wanted := "SELECT, INSERT, UPDATE, DELETE"
		switch table {
		case "sidecar_meta", "workflow":
			wanted = "SELECT"
		case "task_event", "governor_audit", "governor_retry_charge":
			wanted = "SELECT, INSERT"
		}
		for _, privilege := range strings.Split(wanted, ", ") {
			var has bool
			if _, err := t.one("SELECT has_table_privilege($1, $2)", []any{t.store.query("@" + table), privilege}, &has); err != nil {
				return "", "", err
			}
			if !has {
				lacking = append(lacking, privilege+" on "+table)
			}
		}
	}
	if len(lacking) > 0 {
		return store.Warning, "the role can read, but to serve it lacks " + strings.Join(lacking, ", "), nil
	}
	return store.Fine, "the role may do what serving needs", nil
}

func tableNames() []string {
	var names []string
	for _, table := range store.Ledger {
		names = append(names, table.Name)
	}
	return names
}

func checkConnections(t *tx) (store.Level, string, error) {
	var used, most int64
	const query = "SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint"
	if _, err := t.one(query, nil, &used, &most); err != nil {
		return "", "", err
	}
	text := fmt.Sprintf("%d of %d connections are in use; a sidecar opens up to %d", used, most, t.store.pool.Config().MaxConns)
	if used*5 > most*4 {
		return store.Warning, text, nil
	}
	return store.Fine, text, nil
}

// checkEncryption tells whether the last hop is encrypted; what lies behind a
// pooler does not show here.
func checkEncryption(t *tx) (store.Level, string, error) {
	var encrypted, local bool
	const query = "SELECT coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false), coalesce(inet_client_addr() << '127.0.0.0/8' OR inet_client_addr() = '::1', true)"
	if _, err := t.one(query, nil, &encrypted, &local); err != nil {
		return "", "", err
	}
	switch {
	case encrypted:
		return store.Fine, "the connection is encrypted", nil
	case local:
		return store.Fine, "the connection stays on the machine of the server", nil
	}
	return store.Warning, "the connection is not encrypted: say sslmode=verify-full", nil
}

func checkSchemaVersion(t *tx) (store.Level, string, error) {
	return store.Fine, fmt.Sprintf("version %d in %s", t.store.identity.SchemaVersion, t.store.address.quoted), nil
}
