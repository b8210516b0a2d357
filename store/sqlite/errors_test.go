package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	lib "modernc.org/sqlite/lib"
)

func TestCodesOfSQLite(t *testing.T) {
	t.Parallel()
	tests := map[int]schema.Code{
		lib.SQLITE_BUSY: schema.ErrStoreBusy, lib.SQLITE_BUSY_SNAPSHOT: schema.ErrStoreBusy, lib.SQLITE_BUSY_RECOVERY: schema.ErrStoreBusy,
		lib.SQLITE_LOCKED: schema.ErrStoreBusy, lib.SQLITE_PROTOCOL: schema.ErrStoreBusy,
		lib.SQLITE_FULL:     schema.ErrStoreFull,
		lib.SQLITE_READONLY: schema.ErrStoreReadonly, lib.SQLITE_READONLY_DIRECTORY: schema.ErrStoreReadonly,
		lib.SQLITE_READONLY_DBMOVED: schema.ErrStoreReplaced,
		lib.SQLITE_PERM:             schema.ErrStoreReadonly, lib.SQLITE_CANTOPEN: schema.ErrStoreReadonly, lib.SQLITE_AUTH: schema.ErrStoreReadonly,
		lib.SQLITE_CORRUPT: schema.ErrStoreCorrupt, lib.SQLITE_CORRUPT_INDEX: schema.ErrStoreCorrupt, lib.SQLITE_NOTADB: schema.ErrStoreCorrupt,
		lib.SQLITE_ERROR: schema.ErrStoreCorrupt, lib.SQLITE_CONSTRAINT_UNIQUE: schema.ErrStoreCorrupt, lib.SQLITE_MISMATCH: schema.ErrStoreCorrupt,
		lib.SQLITE_IOERR: schema.ErrStoreIO, lib.SQLITE_IOERR_FSYNC: schema.ErrStoreIO, lib.SQLITE_IOERR_SHORT_READ: schema.ErrStoreIO,
		lib.SQLITE_NOMEM: schema.ErrStoreIO, lib.SQLITE_INTERRUPT: schema.ErrStoreIO,
	}
	for code, want := range tests {
		if got := codeOfSQLite(code); got != want {
			t.Errorf("%d is %s, want %s", code, got, want)
		}
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	known := schema.Errorf(schema.ErrStatus, "known")
	for _, err := range []error{nil, known, fmt.Errorf("wrapped: %w", known), context.Canceled, fmt.Errorf("wrapped: %w", context.DeadlineExceeded)} {
		if got := classify(err, "what"); any(got) != any(err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	tests := map[schema.Code][]error{
		schema.ErrStoreReadonly: {fs.ErrPermission, &fs.PathError{Op: "open", Path: "p", Err: syscall.EACCES}, syscall.EROFS},
		schema.ErrStoreReplaced: {fs.ErrNotExist, &fs.PathError{Op: "stat", Path: "p", Err: syscall.ENOENT}},
		schema.ErrStoreCorrupt:  {rowError{errors.New("converting")}},
		schema.ErrStoreIO:       {sql.ErrConnDone, syscall.EIO, errors.New("anything")},
	}
	for code, list := range tests {
		for _, err := range list {
			var got *schema.Error
			if !errors.As(classify(err, "the %s", "thing"), &got) || got.Code != code || !errors.Is(got, err) {
				t.Errorf("%v became %v, want %s", err, got, code)
				continue
			}
			if !strings.HasPrefix(got.Message, "the thing: ") || strings.Contains(got.Message, err.Error()) {
				t.Errorf("%v is told as %q", err, got.Message)
			}
		}
	}
}
