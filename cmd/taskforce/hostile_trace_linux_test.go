package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// The system calls of a sidecar prove what no answer can: that nobody but SQLite
// opens or closes the files, and that a reply comes after the sync.

const watched = "trace=?open,openat,?openat2,?creat,close,write,pwrite64,fsync,fdatasync"

// opened counts how often a session of n rounds of calls opens each file, and
// checks that none is closed before the last reply.
func opened(t *testing.T, rounds int) (database, log, index int) {
	t.Helper()
	path := filepath.Join(newStore(t), sqlite.FileName)
	cmd, tr := traced(t, []string{"-e", watched}, program(t, "serve", "--root", filepath.Dir(path)))
	s := launch(t, cmd)
	for range rounds {
		s.openTask("run", "s")
		result(s, schema.GetSummary, schema.RunParams{RunID: "run"})
	}
	if status := s.end(); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	last := -1
	calls := tr.calls()
	for _, c := range calls {
		if c.name == "write" && strings.HasPrefix(c.args, "1<") {
			last = c.begun
		}
	}
	for _, c := range calls {
		for ending, count := range map[string]*int{"": &database, "-wal": &log, "-shm": &index} {
			switch {
			case !c.on(path + ending):
			case c.opens():
				*count++
				if !strings.Contains(c.args, "O_NOFOLLOW") { // SQLite opens with it, and Go without
					t.Errorf("%s(%s) is not by SQLite", c.name, c.args)
				}
			case c.name == "close" && c.begun < last:
				t.Errorf("%s is closed before the last reply", ending)
			}
		}
	}
	return database, log, index
}

// A descriptor that anybody else closes takes the locks of the whole process
// with it. So there are as many as there are connections, one that writes and one
// that reads, and the index is opened once for both, however many calls are made.
func TestOnlySQLiteOpensTheFiles(t *testing.T) {
	t.Parallel()
	for _, rounds := range []int{1, 50} {
		if database, log, index := opened(t, rounds); database != 2 || log != 2 || index != 1 {
			t.Errorf("after %d rounds the database was opened %d times, its log %d times and its index %d times, by two connections",
				rounds, database, log, index)
		}
	}
}

// Between the last byte that a call adds to the log and its reply there is a
// sync of the log that has ended.
func TestSyncPrecedesReply(t *testing.T) {
	t.Parallel()
	path := filepath.Join(newStore(t), sqlite.FileName)
	cmd, tr := traced(t, []string{"-e", watched}, program(t, "serve", "--root", filepath.Dir(path)))
	s := launch(t, cmd)
	const calls = 20
	for range calls {
		s.openTask("run", "")
	}
	if status := s.end(); status != 0 {
		t.Fatalf("exit status %d", status)
	}
	replies, added, synced := 0, -1, -1
	for _, c := range tr.calls() {
		switch {
		case c.name == "pwrite64" && c.on(path+"-wal"):
			added = c.ended
		case strings.HasSuffix(c.name, "sync") && c.on(path+"-wal") && c.result == "0" && c.begun > added:
			synced = c.ended
		case c.name == "write" && strings.HasPrefix(c.args, "1<"):
			replies++
			if added < 0 || synced < added || c.begun < synced {
				t.Errorf("reply %d is written at %d, after the log was written at %d and synced at %d", replies, c.begun, added, synced)
			}
			added, synced = -1, -1
		}
	}
	if replies != calls {
		t.Errorf("%d replies were traced, want %d", replies, calls)
	}
}
