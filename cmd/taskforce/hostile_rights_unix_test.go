//go:build unix

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// Another user has the database open, and with it the log and the index, which
// that user alone may write. A second user may write the database, but is
// refused, and the first one is not disturbed: neither while it runs nor by what
// a killed one has left.
func TestForeignIndex(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("to be two users takes the superuser")
	}
	root := newStore(t)
	chmod(t, filepath.Join(root, sqlite.FileName), 0o666)
	chmod(t, root, 0o777)
	l := &ledger{t: t, root: root, titles: map[int64]string{}}
	first := serve(t, root)
	l.ask(first)
	refused := func() {
		t.Helper()
		launch(t, unprivileged(t, root, "serve", "--root", root)).refusesToStart(string(schema.ErrStoreReadonly))
	}
	chmod(t, l.path("-shm"), 0o600)
	refused()
	if code := l.ask(first); code != "" {
		t.Errorf("the owner is answered %s", code)
	}
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	first.wait()
	refused()
	l.kept()
}

// In a folder that may not be written there can be no log, so a store is not
// served, but one that is served goes on when the right is taken away.
func TestUnwritableFolder(t *testing.T) {
	t.Parallel()
	root := newStore(t)
	chmod(t, filepath.Join(root, sqlite.FileName), 0o666)
	chmod(t, root, 0o555)
	launch(t, unprivileged(t, root, "serve", "--root", root)).refusesToStart(string(schema.ErrStoreReadonly))

	chmod(t, root, 0o777)
	l := &ledger{t: t, root: root, titles: map[int64]string{}}
	s := launch(t, unprivileged(t, root, "serve", "--root", root))
	l.ask(s)
	chmod(t, root, 0o555)
	for range 3 {
		if code := l.ask(s) + l.look(s); code != "" {
			t.Errorf("a call is answered %s", code)
		}
	}
	if status := s.end(); status != 0 {
		t.Errorf("exit status %d", status)
	}
	chmod(t, root, 0o777)
	l.kept()
}
