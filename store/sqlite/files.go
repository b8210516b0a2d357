package sqlite

import (
	"context"
	"database/sql"
	"net/url"
	"sync"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
)

// files watches over the database, its write-ahead log and the index of the
// log, which processes share. If one of them is removed, swapped or cut off while
// sidecars have it open, SQLite goes on with what it has: one process on the old
// files and the next one on new ones, each with locks of its own. So they are
// looked at by their names before each transaction, and once more before a
// commit is acknowledged; from the first wrong one on nothing is done any more.
//
// A connection that has seen a wrong file is not closed but abandoned to the end
// of the process: to close the last one SQLite copies the log into the database
// by the index, and removes both by their names, and they may be another's now.
type files struct {
	mu sync.Mutex
	// database is the file that was opened first, the only one that is served.
	database fileState
	// log and index are those that the open connections share, once one of them
	// has read: from then on its lock keeps SQLite from removing them. They are
	// unknown while no connection has read, and in a rollback journal mode.
	log, index fileState
	// holders counts the connections that have read.
	holders int
	// lost is why nothing is done any more, for as long as the process lives.
	lost error
	// unsaved says that the log is gone, and that what was acknowledged may be in
	// it and nowhere else.
	unsaved bool
}

// rememberFile takes the file that was opened for the one to be served.
func (s *Store) rememberFile() (err error) {
	s.files.database, err = lookWritten(s.path)
	return classify(err, "the database cannot be examined")
}

// The index of a log consists of regions, each made whole before it is used. The
// first one has room for the header and some frames, the others for more.
const (
	indexRegion   = 32 << 10
	firstFrames   = 4062
	furtherFrames = 4096
)

// checkFound refuses to open files that cannot belong together. log is the log as
// it was found before the database was looked for: SQLite would delete it beside
// a database that is absent or empty, and with it what was acknowledged. An index
// that is not whole is being made by another process, or was cut off under it, or
// was left by one for which the disk was full; only the last is harmless.
func (s *Store) checkFound(ctx context.Context, log fileState) error {
	switch {
	case log.size == 0:
		return nil // what an index says of an empty log is nothing
	case s.fresh:
		return schema.Errorf(schema.ErrStoreReplaced,
			"%s-wal is the log of a database that is gone or empty: bring the database back, or remove the log to begin anew", s.path)
	case s.needsNoLog(ctx):
		return schema.Errorf(schema.ErrStoreReplaced,
			"%s-wal is the log of another database than the one beside it: let all sidecars of the store end, and remove it if this database is the right one", s.path)
	}
	for range 100 {
		if s.indexWhole() || s.alone(ctx) {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return schema.Errorf(schema.ErrStoreCorrupt, "%s-shm was cut off while it is in use: let all sidecars of the store end, and start one", s.path)
}

// indexWhole says that there is no index, or one of whole regions, or one of the
// few bytes that mark it as new.
func (s *Store) indexWhole() bool {
	index, err := look(s.path + "-shm")
	return err != nil || index.size < 4 || index.size%indexRegion == 0
}

// alone says that no other connection has the database open, as one finds out
// that wants it for itself, and SQLite then makes the index anew. That one does
// without the index, and moves the log into the database when it is closed.
func (s *Store) alone(ctx context.Context) bool {
	if s.options.ReadOnly {
		return false // nothing may be moved
	}
	db, err := sql.Open("sqlite", s.uri(url.Values{"mode": {"rw"}, "_pragma": {"locking_mode(EXCLUSIVE)", "synchronous(FULL)"}}))
	if err != nil {
		return false
	}
	defer db.Close()
	var tables int
	return db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables) == nil
}

// needsNoLog says that the header of the database tells of a rollback journal. A
// log beside it belongs to another database, such as one that a backup has taken
// the place of, and SQLite would mix the two.
func (s *Store) needsNoLog(ctx context.Context) bool {
	db, err := sql.Open("sqlite", s.uri(url.Values{"mode": {"ro"}, "immutable": {"1"}})) // looks at nothing but the database
	if err != nil {
		return false
	}
	defer db.Close()
	var version string
	err = db.QueryRowContext(ctx, "SELECT hex(substr(data, 19, 2)) FROM sqlite_dbpage WHERE pgno = 1").Scan(&version)
	return err == nil && version == "0101"
}

// checkFiles looks whether the names still lead to the files that were opened. c, if
// it is not nil, is a connection that is in no transaction.
func (s *Store) checkFiles(ctx context.Context, c *conn) error {
	f := &s.files
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost != nil {
		s.save(ctx, c)
		return f.lost
	}
	now, err := lookWritten(s.path)
	if err != nil || !now.same(f.database) {
		return s.replaced("") // it may come back
	}
	if f.lost = s.checkLog(ctx, c); f.lost != nil {
		return f.lost
	}
	switch {
	case now.size == 0 && f.database.size > 0:
		f.lost = s.cutOff("") // and a new connection would delete the log
		return f.lost
	case !now.written.Equal(f.database.written) && f.index.known() && s.needsNoLog(ctx):
		// Somebody may have moved the log into the database, as happens now and
		// then. But a backup was copied over it.
		f.lost = s.replaced("")
		return f.lost
	case now.size < f.database.size:
		if c == nil {
			return nil // nobody can tell yet
		}
		if !c.whole(ctx) {
			f.lost = s.cutOff("")
			return f.lost
		}
	}
	f.database = now
	return nil
}

// logLength is how long the log was when it was last looked at.
func (s *Store) logLength() int64 {
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	return s.files.log.size
}

// checkLog checks the log and its index. The index comes first: while it is not
// the one that this process has in memory, SQLite must not touch anything.
func (s *Store) checkLog(ctx context.Context, c *conn) error {
	f := &s.files
	if !f.index.known() {
		return nil
	}
	index, err := look(s.path + "-shm")
	switch {
	case err != nil || !index.same(f.index):
		return s.replaced("-shm")
	case index.size < f.index.size:
		return s.cutOff("-shm")
	}
	f.index = index
	log, err := look(s.path + "-wal")
	switch {
	case err != nil || !log.same(f.log):
		f.unsaved = true
		s.save(ctx, c)
		return s.replaced("-wal")
	case log.size >= f.log.size, c != nil && c.logFits(ctx):
		f.log = log
	case c != nil:
		return s.cutOff("-wal")
	}
	return nil
}

// save moves a log that nobody else can read any more into the database, while a
// connection still has it and the index is the right one.
func (s *Store) save(ctx context.Context, c *conn) {
	f := &s.files
	if !f.unsaved || c == nil {
		return
	}
	f.unsaved = false
	if index, err := look(s.path + "-shm"); err == nil && index.same(f.index) && index.size >= f.index.size {
		_, _ = c.c.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)") // it succeeds or nothing can be done
	}
}

func (s *Store) replaced(ending string) error {
	return schema.Errorf(schema.ErrStoreReplaced, "%s%s was removed or replaced while it was in use", s.path, ending)
}

func (s *Store) cutOff(ending string) error {
	return schema.Errorf(schema.ErrStoreCorrupt, "%s%s was cut off while it was in use", s.path, ending)
}

// holdFiles is called by each connection once, after it has read.
func (s *Store) holdFiles() {
	f := &s.files
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holders++
	if f.index.known() {
		return
	}
	log, noLog := look(s.path + "-wal")
	index, noIndex := look(s.path + "-shm")
	if noLog == nil && noIndex == nil {
		f.log, f.index = log, index
	}
}

// releaseFiles is called before a connection is closed. It returns false if the
// connection must be abandoned. Without the database at its place SQLite leaves
// the log alone, so a connection can always be closed then.
func (s *Store) releaseFiles(c *conn) bool {
	f := &s.files
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lost == nil {
		now, err := look(s.path)
		if err == nil && now.same(f.database) {
			f.lost = s.checkLog(context.Background(), c)
		}
	}
	if f.lost != nil {
		s.save(context.Background(), c)
		return false
	}
	if c.holds {
		f.holders--
	}
	if f.holders == 0 {
		f.log, f.index = fileState{}, fileState{}
	}
	return true
}

// logFits says that the log is as long as its index tells, and the index as
// long as it says itself: SQLite appends to either without looking, and a log
// with a hole is worth nothing after a crash, an index with one hides what was
// written. Others may shorten the log between two looks, so it is looked at again.
func (c *conn) logFits(ctx context.Context) bool {
	const header, frameHeader = 32, 24
	for range 3 {
		var page int64
		frames, _ := c.logged(ctx)
		if frames == 0 {
			return true // there is no log, or whoever reads it next says what is wrong with it
		}
		if err := c.c.QueryRowContext(ctx, "PRAGMA page_size").Scan(&page); err != nil {
			return true
		}
		log, noLog := look(c.store.path + "-wal")
		index, noIndex := look(c.store.path + "-shm")
		regions := 1 + max(frames-firstFrames+furtherFrames-1, 0)/furtherFrames
		if noLog == nil && noIndex == nil && log.size >= header+frames*(frameHeader+page) && index.size >= regions*indexRegion {
			return true
		}
	}
	return false
}

// logged is how many frames the log has and how many of them are copied; none
// if there is no log.
func (c *conn) logged(ctx context.Context) (frames, copied int64) {
	var busy int64
	if err := c.c.QueryRowContext(ctx, "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &frames, &copied); err != nil || frames < 0 {
		return 0, 0
	}
	return frames, copied
}

// whole says that the database has all its pages, as a connection finds it that
// remembers none of them.
func (c *conn) whole(ctx context.Context) bool {
	fresh, err := c.store.connect(ctx, true)
	if err != nil {
		return false
	}
	defer fresh.closeNow()
	var verdict string
	err = fresh.c.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict)
	return err == nil && verdict == "ok"
}
