package sqlite_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// DESIGN.md, section 6: a removed or swapped file fails closed, reads too.

// failsClosed checks that nothing can be done with a store whose file is gone.
func failsClosed(t *testing.T, s *sqlite.Store) {
	t.Helper()
	for range 6 { // more than there are connections for reading
		failed(t, add(s, "run", "lost"), schema.ErrStoreReplaced)
		err := s.Read(context.Background(), func(store.Tx) error { t.Error("it read"); return nil })
		failed(t, err, schema.ErrStoreReplaced)
	}
	failed(t, s.Watch(t.Context(), func() { t.Error("it told") }), schema.ErrStoreReplaced)
}

func TestRemovedFileFailsClosed(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, sqlite.Options{})
	if err := add(s, "run", "kept"); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file(root)); err != nil {
		t.Fatal(err)
	}
	failsClosed(t, s)
	if _, err := os.Stat(file(root)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a new file was made: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestSwappedFileFailsClosed(t *testing.T) {
	t.Parallel()
	other := t.TempDir()
	open(t, other, sqlite.Options{}).Close()
	root := t.TempDir()
	s := open(t, root, sqlite.Options{})
	if err := add(s, "run", "kept"); err != nil {
		t.Fatal(err)
	}
	if got := titles(t, s, "run"); got != "kept" {
		t.Fatalf("tasks %q", got)
	}
	aside := filepath.Join(t.TempDir(), "aside")
	if err := os.Rename(file(root), aside); err != nil {
		t.Fatal(err)
	}
	failsClosed(t, s)
	if err := os.Rename(file(other), file(root)); err != nil {
		t.Fatal(err)
	}
	failsClosed(t, s)
	if err := os.Rename(aside, file(root)); err != nil {
		t.Fatal(err)
	}
	if err := add(s, "run", "after"); err != nil {
		t.Errorf("the file is back, but: %v", err)
	}
	if got := titles(t, s, "run"); got != "kept after" {
		t.Errorf("tasks %q", got)
	}
}

// TestSwapDuringAWatch ends the watch.
func TestSwapDuringAWatch(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, sqlite.Options{})
	begun, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { ended <- s.Watch(context.Background(), func() { begun <- struct{}{} }) }()
	<-begun
	if err := os.Remove(file(root)); err != nil {
		t.Fatal(err)
	}
	failed(t, <-ended, schema.ErrStoreReplaced)
}

// TestRemovedRootFailsClosed.
func TestRemovedRootFailsClosed(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	s := open(t, root, sqlite.Options{})
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	failsClosed(t, s)
}
