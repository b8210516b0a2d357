package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/google/uuid"
	"modernc.org/sqlite"
)

// Copied says what a backup or a restore has made.
type Copied struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	// StoreID is the identity of the copy, empty if no sidecar has served it yet.
	StoreID string `json:"store_id"`
	Rows    Rows   `json:"rows"`
}

// Progress is told how many of the pages are copied.
type Progress func(done, total int)

// Backup copies the store into a new file, in one consistent state and beside
// live writers. The file appears under its name when it is complete, on the disk
// and verified, and never takes the place of another. It stands for itself: no
// log belongs to it. It keeps the identity of the store, so it is not to be
// served where the store is: [Restore] makes a store of it.
func (s *Store) Backup(ctx context.Context, file string, progress Progress) (*Copied, error) {
	file, err := filepath.Abs(file)
	if err != nil {
		return nil, configError(err, "the file %s has no absolute path", file)
	}
	return s.copyTo(ctx, file, progress, func(c *conn) error {
		return c.setJournal(ctx, "delete", s.options.BusyTimeout)
	})
}

// Restore makes a store of a backup in the folder root, which must not have one.
// The backup is verified before anything is made, and the store before it
// appears. The store gets an identity of its own: the one that the backup was
// taken from may still be served, and two ledgers must never pass for one.
func Restore(ctx context.Context, file, root string, options Options, progress Progress) (*Copied, error) {
	path, err := filepath.Abs(filepath.Join(root, FileName))
	if err != nil {
		return nil, configError(err, "the root folder %s has no absolute path", root)
	}
	if file, err = filepath.Abs(file); err != nil {
		return nil, configError(err, "the file %s has no absolute path", file)
	}
	backup, err := openFile(ctx, file, Options{BusyTimeout: options.BusyTimeout, AllowNetworkFS: true, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer backup.Close()
	if _, err := backup.mustBeSound(ctx); err != nil {
		return nil, err
	}
	target := &Store{path: path, options: options}
	journal, err := target.prepareFile()
	if err != nil {
		return nil, err
	}
	return backup.copyTo(ctx, path, progress, func(c *conn) error {
		if err := c.renew(ctx, backup.identity.ID); err != nil {
			return err
		}
		return c.setJournal(ctx, journal, backup.options.BusyTimeout)
	})
}

// renew gives a copy an identity of its own. A file that no sidecar has served
// has none, and gets one from the first that does.
func (c *conn) renew(ctx context.Context, from string) error {
	if from == "" {
		return nil
	}
	const query = `INSERT INTO sidecar_meta (key, value) VALUES ('store_id', ?), ('restored_from', ?), ('restored_at', ?)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value`
	return classify(c.exec(ctx, query, uuid.NewString(), from, store.Timestamp(time.Now())), "the copy cannot get an identity")
}

// copyTo copies the store to a file beside the final one, completes it with
// finish, verifies it, and only then gives it its name.
func (s *Store) copyTo(ctx context.Context, final string, progress Progress, finish func(*conn) error) (*Copied, error) {
	for _, path := range []string{final, final + "-wal", final + "-shm", final + "-journal"} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return nil, schema.Errorf(schema.ErrStoreConfig, "%s exists already, and nothing is ever overwritten", path)
		}
	}
	made := &Store{path: final + ".incomplete-" + uuid.NewString()[:8], options: Options{BusyTimeout: s.options.BusyTimeout}}
	file, err := os.OpenFile(made.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, rootError(err, filepath.Dir(final))
	}
	file.Close()                                // SQLite opens it next
	defer func() { _ = os.Remove(made.path) }() // its name is taken away once the copy has another
	if err := s.copyPages(ctx, made, progress); err != nil {
		return nil, classify(err, "the copy in %s cannot be written", filepath.Dir(final))
	}
	copied, err := made.complete(ctx, finish)
	if err != nil {
		return nil, err
	}
	copied.File = final
	return copied, classify(place(made.path, final), "%s cannot be put in its place", final)
}

// copyPages copies every page inside one read transaction, so that writers
// neither change what is copied nor make the copy begin again.
func (s *Store) copyPages(ctx context.Context, made *Store, progress Progress) error {
	const pages = 256 // a step
	return s.Read(ctx, func(t store.Tx) error {
		return t.(*tx).conn.c.Raw(func(driver any) error {
			copying, err := driver.(interface {
				NewBackup(string) (*sqlite.Backup, error)
			}).NewBackup(made.dsn(false))
			if err != nil {
				return err
			}
			more := true
			for more && err == nil {
				if more, err = copying.Step(pages); err == nil {
					progress(copying.PageCount()-copying.Remaining(), copying.PageCount())
					err = ctx.Err()
				}
			}
			return errors.Join(err, copying.Finish())
		})
	})
}

// complete finishes a copy and makes sure that it is sound and on the disk.
func (s *Store) complete(ctx context.Context, finish func(*conn) error) (*Copied, error) {
	c, err := s.connect(ctx, false)
	if err != nil {
		return nil, err
	}
	err = finish(c)
	c.close()
	if err != nil {
		return nil, err
	}
	verified, err := openFile(ctx, s.path, Options{BusyTimeout: s.options.BusyTimeout, AllowNetworkFS: true, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer verified.Close()
	v, err := verified.mustBeSound(ctx)
	if err != nil {
		return nil, err
	}
	verified.Close()
	size, err := syncFile(s.path)
	return &Copied{Bytes: size, StoreID: v.StoreID, Rows: v.Rows}, classify(err, "the copy cannot be put on the disk")
}

// mustBeSound reads the whole store and refuses it if it has faults.
func (s *Store) mustBeSound(ctx context.Context) (*Verification, error) {
	var v *Verification
	err := s.Read(ctx, func(t store.Tx) error {
		e := &examination{context.WithoutCancel(ctx), s, t.(*tx).conn}
		if err := e.mustBeWhole(); err != nil {
			return classify(err, "%s cannot be examined", s.path)
		}
		accounts, err := verify(e)
		if err == nil {
			v, err = accounts.result()
		}
		return err
	})
	if err == nil && !v.Sound {
		err = schema.Errorf(schema.ErrStoreCorrupt, "the ledger in %s has faults, which taskforce verify explains", s.path)
	}
	return v, err
}

// mustBeWhole refuses a damaged file, and one that is no store: seen without
// its missing tables, it would pass for an empty ledger.
func (e *examination) mustBeWhole() error {
	level, explanation, err := e.integrity()
	if err == nil && level != Fine {
		err = schema.Errorf(schema.ErrStoreCorrupt, "%s: %s", e.store.path, explanation)
	}
	if err != nil {
		return err
	}
	known, err := e.conn.hasTable(e.ctx, "task")
	if err == nil && !known {
		err = schema.Errorf(schema.ErrStoreCorrupt, "%s is not a Taskforce database", e.store.path)
	}
	return err
}

// syncFile puts a file that nobody has open on the disk.
func syncFile(path string) (size int64, err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if err := file.Sync(); err != nil {
		return 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// place gives a complete file its final name, unless that is taken. A link
// fails if the name exists, which a rename does not; where there are no links,
// the name is looked at once more.
func place(path, final string) error {
	err := os.Link(path, final)
	if errors.Is(err, fs.ErrExist) {
		return schema.Errorf(schema.ErrStoreConfig, "%s exists already, and nothing is ever overwritten", final)
	}
	if err != nil {
		if _, err := os.Lstat(final); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", final, fs.ErrExist)
		}
		if err := os.Rename(path, final); err != nil {
			return err
		}
	}
	return syncFolder(filepath.Dir(final))
}
