//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	driver "modernc.org/sqlite"
)

// Somebody removes, swaps, cuts off or overwrites a file of the store while
// sidecars have it open. Whatever they answer then, there is one ledger: what is
// acknowledged is in it, and everybody who goes on writes to it.

// ledger collects what the sidecars of a store acknowledge.
type ledger struct {
	t    *testing.T
	root string
	// titles are those of the acknowledged tasks, by id.
	titles map[int64]string
	// sent counts the calls, so that no two tasks have the same title.
	sent int
	// binary is another program than the test itself that reads the store at the end.
	binary string
}

// ask asks a sidecar for a new task. It returns the code of the refusal, "" if
// there was none.
func (l *ledger) ask(s *sidecar) schema.Code {
	l.t.Helper()
	l.sent++
	title := fmt.Sprint("task ", l.sent)
	r := s.call(schema.OpenTask.Name, schema.OpenParams{RunID: "run", Authority: lead, Input: schema.OpenInput{Title: title}})
	if r.Error != nil {
		checkWords(l.t, r.Error.Message)
		return r.Error.Data.Code
	}
	l.acknowledged(accepted[schema.Task](l.t, r).TaskID, title)
	return ""
}

func (l *ledger) acknowledged(id int64, title string) {
	l.t.Helper()
	if other, known := l.titles[id]; known {
		l.t.Errorf("task %d is %q and %q: there are two ledgers", id, other, title)
	}
	l.titles[id] = title
}

// look reads by a sidecar, and returns the code of the refusal.
func (l *ledger) look(s *sidecar) schema.Code {
	l.t.Helper()
	r := s.call(schema.ListTasks.Name, schema.ListParams{RunID: "run", Authority: lead})
	if r.Error != nil {
		checkWords(l.t, r.Error.Message)
		return r.Error.Data.Code
	}
	return ""
}

// kept checks that a new sidecar finds a sound ledger with every task.
func (l *ledger) kept() {
	l.t.Helper()
	cmd := program(l.t, "serve", "--root", l.root)
	if l.binary != "" {
		cmd.Path = l.binary
	}
	s := launch(l.t, cmd)
	found := map[int64]string{}
	for after := (*int64)(nil); ; {
		p := schema.ListParams{RunID: "run", Authority: lead, Input: schema.ListInput{Limit: 1000}}
		if after != nil {
			p.Input.After = *after
		}
		page := result(s, schema.ListTasks, p)
		for _, task := range page.Items {
			found[task.TaskID] = task.Title
		}
		if after = page.Next; after == nil {
			break
		}
	}
	for id, title := range l.titles {
		if found[id] != title {
			l.t.Errorf("task %d, %q, was acknowledged and is lost: there is %q", id, title, found[id])
		}
	}
	if status := s.end(); status != 0 {
		l.t.Errorf("exit status %d", status)
	}
	sound(l.t, l.root)
}

// checkWords checks that a refusal is one line for people.
func checkWords(t *testing.T, message string) {
	t.Helper()
	if message == "" || strings.ContainsAny(message, "\n") || strings.Contains(message, "SQL logic") {
		t.Errorf("the refusal is not a line for people: %q", message)
	}
}

// newLedger makes a store that two sidecars have open, with acknowledged tasks
// in the database and in its log.
func newLedger(t *testing.T) (l *ledger, first, second *sidecar) {
	t.Helper()
	l = &ledger{t: t, root: filepath.Join(t.TempDir(), "root"), titles: map[int64]string{}}
	s := serve(t, l.root)
	for range 3 {
		l.ask(s)
	}
	s.end()
	first, second = serve(t, l.root), serve(t, l.root)
	for range 3 {
		for _, s := range []*sidecar{first, second} {
			if code := l.ask(s) + l.look(s); code != "" {
				t.Fatalf("before anything happens: %s", code)
			}
		}
	}
	return l, first, second
}

func (l *ledger) path(ending string) string { return filepath.Join(l.root, sqlite.FileName+ending) }

func remove(ending string) func(*ledger) {
	return func(l *ledger) {
		l.t.Helper()
		if err := os.Remove(l.path(ending)); err != nil {
			l.t.Fatal(err)
		}
	}
}

// swap puts a copy in the place of a file.
func swap(ending string) func(*ledger) {
	return func(l *ledger) {
		l.t.Helper()
		content, err := os.ReadFile(l.path(ending))
		if err == nil {
			err = os.WriteFile(l.path(".copy"), content, 0o600)
		}
		if err == nil {
			err = os.Rename(l.path(".copy"), l.path(ending))
		}
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// empty puts an empty file in the place of a file.
func empty(ending string) func(*ledger) {
	return func(l *ledger) {
		l.t.Helper()
		remove(ending)(l)
		if err := os.WriteFile(l.path(ending), nil, 0o600); err != nil {
			l.t.Fatal(err)
		}
	}
}

// cut leaves a part of a file.
func cut(ending string, part int64) func(*ledger) {
	return func(l *ledger) {
		l.t.Helper()
		info, err := os.Stat(l.path(ending))
		if err == nil {
			err = os.Truncate(l.path(ending), info.Size()*part/100)
		}
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

// overwrite writes over a file without changing its length.
func overwrite(ending string) func(*ledger) {
	return func(l *ledger) {
		l.t.Helper()
		file, err := os.OpenFile(l.path(ending), os.O_WRONLY, 0)
		if err != nil {
			l.t.Fatal(err)
		}
		defer file.Close()
		info, err := file.Stat()
		if err == nil {
			_, err = file.WriteAt(bytes.Repeat([]byte{0xff}, int(info.Size())), 0)
		}
		if err != nil {
			l.t.Fatal(err)
		}
	}
}

func TestFilesUnderLiveSidecars(t *testing.T) {
	t.Parallel()
	const (
		replaced = schema.ErrStoreReplaced
		corrupt  = schema.ErrStoreCorrupt
	)
	tests := []struct {
		name string
		do   func(*ledger)
		// first and second are what two sidecars answer that had the files open,
		// the second one after a third has been started.
		first, second schema.Code
		// third is what the third one says if it does not start.
		third schema.Code
		// destroyed says that what was acknowledged before is gone with the file,
		// beyond that no sidecar starts until somebody acts.
		destroyed, beyond bool
	}{
		{"database removed", remove(""), replaced, replaced, replaced, true, true},
		{"database swapped", swap(""), replaced, replaced, "", true, false},
		{"database emptied", empty(""), replaced, replaced, replaced, true, true},
		{"database cut off", cut("", 50), corrupt, corrupt, corrupt, true, true},
		{"database cut to nothing", cut("", 0), corrupt, corrupt, replaced, true, true},
		{"log removed", remove("-wal"), replaced, replaced, replaced, false, false},
		{"log swapped", swap("-wal"), replaced, replaced, "", false, false},
		{"log emptied", empty("-wal"), replaced, replaced, replaced, false, false},
		{"log cut off", cut("-wal", 50), corrupt, corrupt, replaced, true, false},
		{"log cut to nothing", cut("-wal", 0), corrupt, corrupt, replaced, true, false},
		{"index removed", remove("-shm"), replaced, replaced, "", false, false},
		{"index swapped", swap("-shm"), replaced, replaced, "", false, false},
		{"index emptied", empty("-shm"), replaced, replaced, "", false, false},
		{"index cut off", cut("-shm", 50), corrupt, corrupt, corrupt, false, false},
		// An index of nothing is made anew from the log, by whoever reads first.
		{"index cut to nothing", cut("-shm", 0), corrupt, "", "", false, false},
		{"index overwritten", overwrite("-shm"), "", "", "", false, false},
		{"log and index removed", func(l *ledger) { remove("-wal")(l); remove("-shm")(l) }, replaced, replaced, "", true, false},
		{"everything removed", func(l *ledger) { remove("")(l); remove("-wal")(l); remove("-shm")(l) }, replaced, replaced, "", true, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l, first, second := newLedger(t)
			test.do(l)
			if test.destroyed {
				l.titles = map[int64]string{}
			}
			answers := func(s *sidecar, want schema.Code) {
				t.Helper()
				if code := l.ask(s); code != want {
					t.Errorf("a write is answered %q, want %q", code, want)
				}
				if code := l.look(s); code != want {
					t.Errorf("a read is answered %q, want %q", code, want)
				}
			}
			answers(first, test.first)
			third := serve(t, l.root)
			if test.third == "" {
				answers(third, "")
			} else {
				third.refusesToStart(string(test.third))
			}
			answers(second, test.second)
			answers(first, test.first)
			for _, s := range []*sidecar{first, second} {
				if status := s.end(); status != 0 {
					t.Errorf("exit status %d", status)
				}
			}
			if test.third == "" {
				answers(third, "")
				third.end()
			}
			if !test.beyond {
				l.kept()
			}
		})
	}
}

// A log is removed, and nobody makes a call before the sidecars end, or only one
// that reads. They still have the log, and it goes into the database.
func TestRemovedLogIsSaved(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(l *ledger, s *sidecar){
		"unnoticed":        func(*ledger, *sidecar) {},
		"noticed by reads": func(l *ledger, s *sidecar) { l.look(s); l.look(s) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, first, second := newLedger(t)
			remove("-wal")(l)
			for _, s := range []*sidecar{first, second} {
				between(l, s)
				if status := s.end(); status != 0 {
					t.Errorf("exit status %d", status)
				}
			}
			l.kept()
		})
	}
}

// backUp makes a backup of the store.
func (l *ledger) backUp() (path string) {
	l.t.Helper()
	path = filepath.Join(l.t.TempDir(), "backup.db")
	run(l.t, "backup", path, "--root", l.root)
	return path
}

// restoreOver writes a backup over the open database, as SQLite itself does it.
func (l *ledger) restoreOver(backup string) {
	l.t.Helper()
	c := openDatabase(l.t, l.root)
	defer c.Close()
	err := c.Raw(func(raw any) error {
		restoring, err := raw.(interface {
			NewRestore(string) (*driver.Backup, error)
		}).NewRestore(backup)
		if err != nil {
			return err
		}
		_, err = restoring.Step(-1)
		return errors.Join(err, restoring.Finish())
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// A backup takes the place of the database, or its content, under live sidecars
// that have acknowledged more since. They refuse; a new one serves the backup.
func TestBackupRestoredOver(t *testing.T) {
	t.Parallel()
	ways := map[string]func(l *ledger, backup string){
		"by its name": func(l *ledger, backup string) {
			if err := os.Rename(backup, l.path("")); err != nil {
				l.t.Fatal(err)
			}
		},
		"by its content": func(l *ledger, backup string) {
			content, err := os.ReadFile(backup)
			if err == nil {
				err = os.WriteFile(l.path(""), content, 0o600)
			}
			if err != nil {
				l.t.Fatal(err)
			}
		},
		"by SQLite": (*ledger).restoreOver,
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, first, second := newLedger(t)
			backup, before := l.backUp(), maps.Clone(l.titles)
			if code := l.ask(first) + l.ask(second); code != "" {
				t.Fatal(code)
			}
			way(l, backup)
			l.titles = before
			for _, s := range []*sidecar{first, second, first} {
				if write, read := l.ask(s), l.look(s); write != schema.ErrStoreReplaced || read != schema.ErrStoreReplaced {
					t.Errorf("a write is answered %q, a read %q", write, read)
				}
			}
			first.end()
			second.end()
			if name != "by SQLite" { // the log of the old database is in the way
				serve(t, l.root).refusesToStart("log of another database", string(schema.ErrStoreReplaced))
				remove("-wal")(l)
				remove("-shm")(l)
			}
			l.kept()
		})
	}
}
