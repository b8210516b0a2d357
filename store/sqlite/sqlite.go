// Package sqlite keeps the store in an SQLite file that many processes share.
//
// There is one connection that writes. A goroutine takes every queued write into
// one BEGIN IMMEDIATE, each in a savepoint of its own, commits once and then
// answers them all (writer.go); the batch is whatever arrived while the last
// commit ran, or while it waited for its turn (turn.go). A write that comes alone
// is served in its caller's goroutine. Reads have a few connections of their own
// (reader.go).
//
// Where the time of a lone write goes, by profile: more than half is the commit,
// a write of two pieces for each page and one sync, so a page less counts more
// than a statement less, and a system call less than either. Of the rest a third
// was database/sql (stmt.go), and a tenth the collection of garbage. Counts are
// remembered (ledger.go) and noted in the file (notes.go).
//
// All SQL of the engine stands in this package: schema.go makes and upgrades
// the tables, tx_*.go speak of the domain, errors.go maps SQLite's codes.
//
// What SQLite needs from its host is done in file.go: the three files are never
// opened or closed but by SQLite (closing any handle drops the process's POSIX
// locks, and another process can then delete a live WAL), and before each
// transaction the path must still lead to the file that was opened.
package sqlite

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// FileName is the name of the database in the root folder.
const FileName = "taskforce.db"

// DefaultBusyTimeout is how long a transaction waits for another process's.
const DefaultBusyTimeout = 5 * time.Second

// Options say how to open a store.
type Options struct {
	// BusyTimeout bounds the wait for a lock; 0 means [DefaultBusyTimeout].
	BusyTimeout time.Duration
	// AllowNetworkFS opens the store on a network or shared file system too,
	// with a rollback journal. Whether its locks hold is then the caller's risk.
	AllowNetworkFS bool
	// ReadOnly opens an existing store without changing anything, not even its schema.
	ReadOnly bool
}

// Store is an open SQLite file. It implements [store.Store].
type Store struct {
	path     string
	options  Options
	identity store.Identity
	files    files
	// acknowledged is what the process has written last.
	acknowledged atomic.Pointer[mark]
	// fresh says that there was no file, or an empty one, before it was opened.
	fresh bool
	// logged says that the file had a write-ahead log before it was opened.
	logged bool

	writer writer
	reader reader

	// open guards closed: whoever submits holds it for reading, so that the
	// queue is not closed under a sender.
	open   sync.RWMutex
	closed bool
	// closing ends watches, which have connections of their own; watching counts them.
	closing  chan struct{}
	watching sync.WaitGroup
	once     sync.Once
}

var _ store.Store = (*Store)(nil)

// Open opens the store in the folder root, which it creates if it is absent.
// It returns errors of the E_STORE codes; nothing is changed when it does.
func Open(ctx context.Context, root string, options Options) (*Store, error) {
	path, err := filepath.Abs(filepath.Join(root, FileName))
	if err != nil {
		return nil, configError(err, "the root folder %s has no absolute path", root)
	}
	return openFile(ctx, path, options)
}

// openFile opens the store in a file, whatever its name.
func openFile(ctx context.Context, path string, options Options) (*Store, error) {
	if options.BusyTimeout == 0 {
		options.BusyTimeout = DefaultBusyTimeout
	}
	s := &Store{path: path, options: options, closing: make(chan struct{})}
	log, noLog := look(path + "-wal")
	s.logged = noLog == nil
	journal, err := s.prepareFile()
	if err != nil {
		return nil, err
	}
	if err := s.checkFound(ctx, log); err != nil {
		return nil, err
	}
	if err := s.openFirst(ctx, journal); err != nil {
		return nil, err
	}
	s.reader.start()
	if !options.ReadOnly {
		s.writer.start(s)
	}
	return s, nil
}

// openFirst opens the first connection, brings the schema up to date, and
// leaves the connection to the writer.
func (s *Store) openFirst(ctx context.Context, journal string) error {
	first, err := s.connect(ctx, s.options.ReadOnly)
	if err != nil {
		return err
	}
	if err := s.adopt(ctx, first, journal); err != nil {
		first.close()
		return err
	}
	if s.options.ReadOnly {
		first.close()
		return nil
	}
	s.writer.conn = first
	return nil
}

// adopt makes sure that the file behind a new connection is a store that this
// version can serve, and remembers which one it is.
func (s *Store) adopt(ctx context.Context, c *conn, journal string) (err error) {
	if err := s.rememberFile(); err != nil {
		return err
	}
	if !c.logFits(ctx) {
		return s.replaced("-wal")
	}
	if s.fresh && !s.options.ReadOnly {
		if err := s.makePrivate(); err != nil {
			return classify(err, "the database cannot be made private")
		}
	}
	if journal != "" && !s.options.ReadOnly {
		if err := c.setJournal(ctx, journal, s.options.BusyTimeout); err != nil {
			return err
		}
	}
	if err := s.upgrade(ctx, c); err != nil {
		return err
	}
	if err := s.identify(ctx, c); err != nil {
		return err
	}
	c.hold()
	return nil
}

// Identity implements [store.Store].
func (s *Store) Identity() store.Identity { return s.identity }

// Path returns where the database is.
func (s *Store) Path() string { return s.path }

// Close implements [store.Store].
func (s *Store) Close() error {
	s.once.Do(func() {
		s.open.Lock()
		s.closed = true
		s.open.Unlock()
		close(s.closing)
		if !s.options.ReadOnly {
			s.writer.stop()
		}
		s.reader.stop()
		s.watching.Wait()
	})
	return nil
}

func errClosed() error { return schema.Errorf(schema.ErrStoreClosed, "the store is closed") }
