package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/dsh-taskforce/sidecar/schema"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// classify turns an error of the driver or the file system into one of the
// E_STORE codes, by its code and never by its text. What is already a
// [schema.Error] or an error of the context is returned as it is.
func classify(err error, format string, args ...any) error {
	var known *schema.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e := schema.Errorf(codeOf(err), format, args...)
	e.Message += ": " + explain(e.Code)
	e.Err = err
	return e
}

// rowError is a value that is not what its column promises.
type rowError struct{ error }

func (e rowError) Unwrap() error { return e.error }

func codeOf(err error) schema.Code {
	var sqliteError *sqlite.Error
	var row rowError
	switch {
	case errors.As(err, &row):
		return schema.ErrStoreCorrupt
	case errors.As(err, &sqliteError):
		return codeOfSQLite(sqliteError.Code())
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return schema.ErrStoreReadonly
	case errors.Is(err, fs.ErrNotExist):
		return schema.ErrStoreReplaced
	case errors.Is(err, driver.ErrBadConn):
		return schema.ErrStoreIO
	}
	return schema.ErrStoreIO
}

func codeOfSQLite(code int) schema.Code {
	switch code {
	case lib.SQLITE_READONLY_DBMOVED:
		return schema.ErrStoreReplaced
	case lib.SQLITE_IOERR_SHMSIZE: // there is no room for the index of the log
		return schema.ErrStoreFull
	}
	switch code & 0xff {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		return schema.ErrStoreBusy
	case lib.SQLITE_FULL:
		return schema.ErrStoreFull
	case lib.SQLITE_READONLY, lib.SQLITE_PERM, lib.SQLITE_CANTOPEN, lib.SQLITE_AUTH:
		return schema.ErrStoreReadonly
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB, lib.SQLITE_FORMAT, lib.SQLITE_ERROR, lib.SQLITE_SCHEMA, lib.SQLITE_MISMATCH, lib.SQLITE_CONSTRAINT:
		// The engine's statements are constant, so an SQL error or a broken
		// constraint means that the file does not hold what the schema promises.
		return schema.ErrStoreCorrupt
	}
	return schema.ErrStoreIO
}

// explain says in words what a person can do about a code; the driver's text stays in the log.
func explain(code schema.Code) string {
	switch code {
	case schema.ErrStoreBusy:
		return "another process kept the lock for longer than the busy timeout"
	case schema.ErrStoreFull:
		return "the disk is full"
	case schema.ErrStoreReadonly:
		return "the file, its log or its folder cannot be opened for writing"
	case schema.ErrStoreCorrupt:
		return "the file is damaged or is not a Taskforce database"
	case schema.ErrStoreReplaced:
		return "the file was removed or replaced"
	}
	return "the disk failed to read or write"
}

func isBusy(err error) bool {
	var sqliteError *sqlite.Error
	return errors.As(err, &sqliteError) && codeOfSQLite(sqliteError.Code()) == schema.ErrStoreBusy
}

func configError(err error, format string, args ...any) error {
	return &schema.Error{Code: schema.ErrStoreConfig, Message: fmt.Sprintf(format, args...), Err: err}
}
