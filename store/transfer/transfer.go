// Package transfer moves ledgers between engines.
//
// A copy is compared with its source row by row, by a digest over every row of
// both. The promises of a ledger are verified in one place, in SQL of the
// embedded engine; a ledger of another engine is copied into a file for that,
// which is deleted afterwards.
package transfer

import (
	"bytes"
	"context"
	"encoding/hex"
	"os"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// Progress is told how many of the rows are copied.
type Progress func(done, total int)

// Result says what a copy has made.
type Result struct {
	// Rows are the rows of every table together.
	Rows int64
	// Digest is the sum over every row, of the source and of the copy.
	Digest string
}

// Copy copies a whole ledger into an empty store, and reads it back to compare
// every row. The copy is committed by then: if it differs, the error says so.
func Copy(ctx context.Context, from store.Exporter, to interface {
	store.Importer
	store.Exporter
}, total int64, progress Progress) (*Result, error) {
	source := store.NewDigest()
	err := to.Import(ctx, func(put store.Put) error {
		return from.Export(ctx, func(t *store.Table, row []any) error {
			source.Add(t, row)
			progress(int(source.Rows), int(total))
			return put(t, row)
		})
	})
	if err != nil {
		return nil, err
	}
	copied := store.NewDigest()
	if err := to.Export(ctx, func(t *store.Table, row []any) error { copied.Add(t, row); return nil }); err != nil {
		return nil, err
	}
	if !bytes.Equal(source.Sum(), copied.Sum()) {
		return nil, schema.Errorf(schema.ErrStoreCorrupt, "the copy differs from its source: %d rows were read and %d are there; do not use it", source.Rows, copied.Rows)
	}
	return &Result{Rows: copied.Rows, Digest: hex.EncodeToString(copied.Sum())}, nil
}

// Verify verifies the ledger of another engine than the embedded one.
func Verify(ctx context.Context, s store.Exporter, id string) (v *store.Verification, err error) {
	err = inFile(ctx, s, func(file *sqlite.Store) error {
		if v, err = file.Verify(ctx); err == nil {
			v.StoreID = id
		}
		return err
	})
	return v, err
}

// Examine sums up the promises of a ledger of another engine.
func Examine(ctx context.Context, s store.Exporter) (findings []store.Finding, err error) {
	err = inFile(ctx, s, func(file *sqlite.Store) error {
		findings, err = file.Accounts(ctx)
		return err
	})
	return findings, err
}

// inFile hands over a ledger in a file of its own.
func inFile(ctx context.Context, s store.Exporter, fn func(*sqlite.Store) error) error {
	folder, err := os.MkdirTemp("", "taskforce-verify-")
	if err != nil {
		return &schema.Error{Code: schema.ErrStoreIO, Message: "there is no folder for the file to verify", Err: err}
	}
	defer func() { _ = os.RemoveAll(folder) }() // what is left is nobody's store
	// It lives for a moment only, so the kind of the file system does not matter.
	file, err := sqlite.Open(ctx, folder, sqlite.Options{AllowNetworkFS: true})
	if err != nil {
		return err
	}
	defer file.Close()
	err = file.Import(ctx, func(put store.Put) error { return s.Export(ctx, put) })
	if err != nil {
		return err
	}
	return fn(file)
}
