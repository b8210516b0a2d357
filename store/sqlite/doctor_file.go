package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// fileChecks are the questions about the file and its surroundings.
var fileChecks = []check{
	{"engine", (*examination).engine},
	{"file_system", (*examination).fileSystem},
	{"folder_mode", (*examination).folderMode},
	{"file_mode", (*examination).fileMode},
	{"journal_mode", (*examination).journalMode},
	{"synchronous", (*examination).synchronous},
	{"log_size", (*examination).logSize},
	{"integrity", (*examination).integrity},
	{"foreign_keys", (*examination).foreignKeys},
	{"schema_version", (*examination).schemaVersion},
	{"indexes", (*examination).indexes},
	{"other_writer", (*examination).otherWriter},
}

func (e *examination) engine() (Level, string, error) {
	identity := e.store.Identity()
	return Fine, fmt.Sprintf("%s %s on %s", identity.Engine, identity.EngineVersion, identity.Location), nil
}

func (e *examination) fileSystem() (Level, string, error) {
	folder := filepath.Dir(e.store.path)
	shared, err := sharedFileSystem(folder)
	if err != nil || shared != "" {
		return Warning, shared + ": its locks cannot be relied on", err
	}
	kind, err := fileSystemType(folder)
	return Fine, "local: " + kind, err
}

func (e *examination) folderMode() (Level, string, error) {
	return privacy(filepath.Dir(e.store.path))
}

// fileMode looks at the database and at the files that SQLite keeps beside it.
func (e *examination) fileMode() (Level, string, error) {
	path := e.store.path
	return privacy(path, path+"-wal", path+"-shm")
}

// privacy warns if other users may use one of the paths; those that do not exist are passed over.
func privacy(paths ...string) (Level, string, error) {
	if runtime.GOOS == "windows" {
		return Fine, "left to the access list of the folder", nil
	}
	modes := ""
	for _, path := range paths {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", "", err
		case info.Mode().Perm()&0o077 != 0:
			return Warning, fmt.Sprintf("%s has mode %04o, so other users may use it", path, info.Mode().Perm()), nil
		}
		modes += fmt.Sprintf(", %s %04o", filepath.Base(path), info.Mode().Perm())
	}
	return Fine, "private: " + strings.TrimPrefix(modes, ", "), nil
}

func (e *examination) journalMode() (level Level, mode string, err error) {
	err = e.scan("PRAGMA main.journal_mode", &mode)
	switch mode {
	case "wal":
		return Fine, "wal", err
	case "delete", "truncate", "persist":
		return Fine, mode + ": as the file was found; reads and writes wait for each other", err
	}
	return Fault, mode + ": a crash can damage the file", err
}

func (e *examination) synchronous() (Level, string, error) {
	var level int
	if err := e.scan("PRAGMA main.synchronous", &level); err != nil {
		return "", "", err
	}
	if level < 2 {
		return Fault, fmt.Sprintf("%d: what is acknowledged may be lost", level), nil
	}
	return Fine, "full: what is acknowledged is on the disk", nil
}

// largeLog is the size of a write-ahead log that a reader must have kept from
// being begun anew for long.
const largeLog = 4 * longLog

func (e *examination) logSize() (Level, string, error) {
	info, err := os.Stat(e.store.path + "-wal")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Fine, "there is no write-ahead log", nil
	case err != nil:
		return "", "", err
	case info.Size() > largeLog:
		return Warning, fmt.Sprintf("%d MiB: %s a read open for long", info.Size()>>20, e.pinners()), nil
	}
	return Fine, fmt.Sprintf("%d KiB", info.Size()>>10), nil
}

// pinners names the processes that are reading in the log, as far as the
// operating system tells.
func (e *examination) pinners() string {
	names, err := logReaders(e.store.path + "-shm")
	if err != nil || len(names) == 0 {
		return "some process has kept"
	}
	return strings.Join(names, " and ") + " may have kept"
}

func (e *examination) integrity() (Level, string, error) {
	problems, err := e.list("PRAGMA main.integrity_check(100)")
	switch {
	case err != nil:
		return "", "", err
	case len(problems) == 1 && problems[0] == "ok":
		return Fine, "pages, indexes and constraints agree", nil
	}
	return Fault, "the file is damaged: " + some(problems, len(problems)), nil
}

// foreignKeys can only concern tables of the other writer: ours declare none.
func (e *examination) foreignKeys() (Level, string, error) {
	tables, err := e.list("SELECT DISTINCT \"table\" FROM pragma_foreign_key_check")
	if err != nil || len(tables) == 0 {
		return Fine, "every reference that the file declares is met", err
	}
	return Warning, "rows refer to rows that are not there, in " + some(tables, len(tables)), nil
}

func (e *examination) schemaVersion() (Level, string, error) {
	version, err := e.conn.schemaVersion(e.ctx)
	switch {
	case err != nil:
		return "", "", err
	case version == 0:
		return Fine, "no sidecar has served this file yet; the first one adds its tables", nil
	case version < SchemaVersion:
		return Fine, fmt.Sprintf("%d; the next sidecar that serves the file upgrades it to %d", version, SchemaVersion), nil
	}
	return Fine, fmt.Sprint(version), nil
}

// indexes looks for what an upgrade makes: the sidecar's queries demand their
// indexes, and some of them keep promises of the ledger.
func (e *examination) indexes() (Level, string, error) {
	version, err := e.conn.schemaVersion(e.ctx)
	if err != nil || version < SchemaVersion {
		return Fine, "an upgrade makes them", err
	}
	present, err := e.list("SELECT name FROM main.sqlite_schema WHERE type = 'index'")
	if err != nil {
		return "", "", err
	}
	var missing []string
	for _, statement := range indexes {
		_, rest, _ := strings.Cut(statement, "EXISTS ")
		name, _, _ := strings.Cut(rest, " ")
		if !slices.Contains(present, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return Fault, "missing: " + some(missing, len(missing)), nil
	}
	return Fine, "all there", nil
}

// otherWriter tells what else lives in the file. Triggers on the sidecar's
// tables would act inside its transactions.
func (e *examination) otherWriter() (Level, string, error) {
	known := ""
	for _, table := range tables {
		known += ", '" + table.name + "'"
	}
	known = "(" + known[2:] + ")"
	triggers, err := e.list("SELECT name FROM main.sqlite_schema WHERE type = 'trigger' AND tbl_name IN " + known)
	if err != nil {
		return "", "", err
	}
	if len(triggers) > 0 {
		return Warning, "triggers on the sidecar's tables: " + some(triggers, len(triggers)), nil
	}
	others, err := e.list("SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT IN " + known)
	if err != nil || len(others) == 0 {
		return Fine, "no table but the sidecar's", err
	}
	managed := 0
	if e.conn.workflow {
		err = e.scan("SELECT count(*) FROM workflow WHERE task_id IN (SELECT id FROM task)", &managed)
	}
	return Fine, fmt.Sprintf("has tables %s; its workflow manages %d tasks", some(others, len(others)), managed), err
}
