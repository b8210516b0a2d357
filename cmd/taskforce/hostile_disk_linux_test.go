package main

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"golang.org/x/sys/unix"
)

// disk is a small file system of memory that can be filled.
type disk struct {
	t       *testing.T
	folder  string
	ballast string
}

func newDisk(t *testing.T, size string) *disk {
	t.Helper()
	folder := mount(t, "tmpfs", "tmpfs", "size="+size+",mode=700")
	t.Cleanup(func() { unmount(t, folder) })
	return &disk{t, folder, filepath.Join(folder, "ballast")}
}

// fill leaves so many bytes free.
func (d *disk) fill(free int64) {
	d.t.Helper()
	var stat unix.Statfs_t
	if err := unix.Statfs(d.folder, &stat); err != nil {
		d.t.Fatal(err)
	}
	file, err := os.OpenFile(d.ballast, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer file.Close()
	if size := int64(stat.Bavail)*stat.Bsize - free; size > 0 {
		if err := unix.Fallocate(int(file.Fd()), 0, 0, size); err != nil {
			d.t.Fatal(err)
		}
	}
}

// empty gives the room back.
func (d *disk) empty() {
	d.t.Helper()
	if err := os.Remove(d.ballast); err != nil && !errors.Is(err, os.ErrNotExist) {
		d.t.Fatal(err)
	}
}

// asked sends so many calls at once, each with a note of that many bytes, and
// files what is acknowledged. Every refusal must be one of the codes.
func (l *ledger) asked(s *sidecar, calls, bytes int, codes ...schema.Code) (refused int) {
	l.t.Helper()
	note := strings.Repeat("x", bytes)
	titles := map[int]string{}
	replies := map[int]reply{}
	for range calls {
		l.sent++
		title := fmt.Sprint("task ", l.sent)
		titles[s.send(schema.OpenTask.Name, schema.OpenParams{RunID: "run", Authority: lead, Input: schema.OpenInput{Title: title, Note: &note}})] = title
	}
	for len(replies) < calls {
		s.receiveInto(replies)
	}
	for id, r := range replies {
		if r.Error == nil {
			l.acknowledged(accepted[schema.Task](l.t, r).TaskID, titles[id])
			continue
		}
		refused++
		checkWords(l.t, r.Error.Message)
		if !contains(codes, r.Error.Data.Code) {
			l.t.Errorf("a call is refused with %s: %s", r.Error.Data.Code, r.Error.Message)
		}
	}
	return refused
}

func contains(codes []schema.Code, code schema.Code) bool {
	for _, c := range codes {
		if c == code {
			return true
		}
	}
	return false
}

// setJournal sets the journal mode of a store that nobody has open. The
// connection is closed at once: it would keep the room of files that are removed.
func (l *ledger) setJournal(mode string) {
	l.t.Helper()
	db, err := sql.Open("sqlite", l.path(""))
	if err != nil {
		l.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA journal_mode = " + mode); err != nil {
		l.t.Fatal(err)
	}
}

// The disk is full from one byte on or another: while the file is made, at the
// first write, while the log grows. What is refused says so, what is acknowledged
// is kept, and once there is room the same sidecar goes on.
func TestFullDisk(t *testing.T) {
	for _, journal := range []string{"wal", "delete"} {
		t.Run(journal, func(t *testing.T) {
			t.Parallel()
			d := newDisk(t, "2m")
			began, refused := 0, 0
			for free := int64(0); free <= 480<<10; free += 16 << 10 {
				l := &ledger{t: t, root: filepath.Join(d.folder, "root"), titles: map[int64]string{}}
				if journal == "delete" {
					serve(t, l.root).end()
					l.setJournal(journal)
				}
				d.fill(free)
				s := serve(t, l.root)
				if s.begins() {
					began++
					for range 4 {
						refused += l.asked(s, 8, 3000, schema.ErrStoreFull)
					}
					d.empty()
					if n := l.asked(s, 8, 3000); n > 0 {
						t.Errorf("with %d bytes free %d calls are refused once there is room", free, n)
					}
					if status := s.end(); status != 0 {
						t.Errorf("exit status %d", status)
					}
				} else {
					s.refusesToStart(string(schema.ErrStoreFull))
					d.empty()
				}
				l.kept()
				if err := os.RemoveAll(l.root); err != nil {
					t.Fatal(err)
				}
			}
			if began == 0 || refused == 0 || journal == "wal" && began == 31 {
				t.Errorf("%d of 31 sidecars began, and refused %d calls", began, refused)
			}
		})
	}
}

// log says how many pages the log has, and how many of them are moved into the database.
func (l *ledger) log() (pages, moved int) {
	l.t.Helper()
	c := openDatabase(l.t, l.root)
	defer c.Close()
	var busy int
	if err := c.QueryRowContext(l.t.Context(), "PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &pages, &moved); err != nil {
		l.t.Fatal(err)
	}
	return pages, moved
}

// There is room for the log, but not for moving it into the database: nothing
// is refused for that, the log grows until the disk is full, and is moved once
// there is room.
func TestFullDiskAtCheckpoint(t *testing.T) {
	t.Parallel()
	d := newDisk(t, "6m")
	l := &ledger{t: t, root: filepath.Join(d.folder, "root"), titles: map[int64]string{}}
	s := serve(t, l.root)
	for l.asked(s, 8, 20_000, schema.ErrStoreFull) == 0 {
	}
	const enough = 1000 // SQLite moves a log of so many pages
	if pages, moved := l.log(); pages < enough || moved == pages {
		t.Fatalf("the log has %d pages, of which %d are moved, when the disk is full", pages, moved)
	}
	if code := l.look(s); code != "" {
		t.Errorf("a read is answered %s", code)
	}
	if err := unix.Mount("tmpfs", d.folder, "tmpfs", unix.MS_REMOUNT, "size=24m"); err != nil {
		t.Fatal(err)
	}
	l.asked(s, 8, 20_000)
	l.asked(s, 8, 20_000)
	if pages, _ := l.log(); pages >= enough {
		t.Errorf("the log still has %d pages", pages)
	}
	if status := s.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	l.kept()
}

// A backup for which there is no room leaves nothing behind.
func TestFullDiskUnderBackup(t *testing.T) {
	t.Parallel()
	root := newStore(t)
	d := newDisk(t, "1m")
	for free := int64(0); free < 128<<10; free += 32 << 10 {
		d.fill(free)
		launch(t, program(t, "backup", filepath.Join(d.folder, "backup.db"), "--root", root)).refusesToStart(string(schema.ErrStoreFull))
		launch(t, program(t, "restore", filepath.Join(root, "taskforce.db"), "--root", filepath.Join(d.folder, "root"))).refusesToStart(string(schema.ErrStoreFull))
		d.empty()
		for _, folder := range []string{d.folder, filepath.Join(d.folder, "root")} {
			entries, err := os.ReadDir(folder)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			for _, entry := range entries {
				if entry.Name() != "root" {
					t.Errorf("%s is left behind", entry.Name())
				}
			}
		}
	}
}
