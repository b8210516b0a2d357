// Package postgres keeps the store in a PostgreSQL database that the sidecars
// of many machines share.
//
// The rules of the governor are about one run, or about one resource key, so a
// write takes transaction-level advisory locks for exactly these, always in one
// order: the store (shared), its runs, its resource keys, each kind sorted
// (lock.go). Its other statements come after the locks and, in READ COMMITTED,
// see everything that earlier holders of the locks have committed; SERIALIZABLE
// would find nothing more and would fail transactions that merely came close to
// each other. Runs so proceed in parallel and a resource has one decision at a
// time across all runs and machines. Writes that do not say what they touch
// take the store's lock for themselves. What could still deadlock is undone by
// the server and run again (write.go).
//
// Within one process, calls that can see each other keep the order of their
// submission and others run side by side (queue.go); calls of one run that wait
// together share a commit. A transaction sends what it can in one go: statements
// whose result nobody needs yet wait for the next one that somebody does (tx.go).
//
// Nothing depends on the session: no prepared statement is expected behind a
// pooler, every lock and setting ends with its transaction, and names are
// qualified by the schema. A connection that is lost before the commit costs
// another try; one that is lost during it is an unknown outcome
// ([schema.ErrStoreUnknown]), never sent again.
package postgres

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DefaultBusyTimeout is how long a call waits for locks, and for a server.
const DefaultBusyTimeout = 5 * time.Second

// Options say how to open a store.
type Options struct {
	// BusyTimeout bounds the wait for a lock and for a lost server; 0 means [DefaultBusyTimeout].
	BusyTimeout time.Duration
	// Application is what the connections call themselves; "" means a sidecar.
	Application string
	// ReadOnly opens an existing store without changing anything, not even its schema.
	ReadOnly bool
}

// Store is a schema of a PostgreSQL database. It implements [store.Store].
type Store struct {
	address  *address
	options  Options
	identity store.Identity
	pool     *pgxpool.Pool
	// pooled says that a transaction pooler stands before the server.
	pooled  bool
	queries sync.Map // of SQL as it is written here to SQL of this schema
	queue   queue
	counted counted
	news    news

	// open guards closed: whoever submits holds it for reading.
	open   sync.RWMutex
	closed bool
	// life ends when the store closes.
	life context.Context
	end  context.CancelFunc
	// busy counts reads and watches, which Close waits for.
	busy sync.WaitGroup
	once sync.Once
}

var _ store.Store = (*Store)(nil)

// Open opens the store that a URL names: postgres://user@host:port/database,
// with every parameter that libpq and pgx know, and
//
//	schema   the schema that holds the tables, "taskforce" if it is absent
//	listen   host:port of the server itself, where the URL leads to a pooler
//	         that forbids LISTEN
//
// The schema and its tables are made if they are absent. Open returns errors of
// the E_STORE codes, without the password.
func Open(ctx context.Context, url string, options Options) (*Store, error) {
	if options.BusyTimeout == 0 {
		options.BusyTimeout = DefaultBusyTimeout
	}
	a, err := parseAddress(url)
	if err != nil {
		return nil, err
	}
	a.name(cmp.Or(options.Application, a.application()))
	s := &Store{address: a, options: options}
	s.life, s.end = context.WithCancel(context.Background())
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		s.pool.Close()
		return nil, err
	}
	s.queue.start(s)
	s.news.start(s)
	return s, nil
}

// prepare brings the schema up to date and remembers which store it is.
func (s *Store) prepare(ctx context.Context) error {
	if !s.options.ReadOnly {
		if err := s.migrate(ctx); err != nil {
			return err
		}
	}
	return s.identify(ctx)
}

// Identity implements [store.Store].
func (s *Store) Identity() store.Identity { return s.identity }

// enter takes part in the store until the returned function is called.
func (s *Store) enter() (leave func(), err error) {
	s.open.RLock()
	defer s.open.RUnlock()
	if s.closed {
		return nil, errClosed()
	}
	s.busy.Add(1)
	return s.busy.Done, nil
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.once.Do(func() {
		s.open.Lock()
		s.closed = true
		s.open.Unlock()
		s.end()
		s.queue.stop()
		s.busy.Wait()
		s.news.stop()
		s.pool.Close()
	})
	return nil
}

func errClosed() error { return schema.Errorf(schema.ErrStoreClosed, "the store is closed") }
