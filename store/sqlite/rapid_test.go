package sqlite

import (
	"context"
	"os"

	"pgregory.net/rapid"
)

// tempDir is a folder that goes with one rapid case.
func tempDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "ledger-")
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// mustOpen opens a store that goes with one rapid case.
func mustOpen(t *rapid.T, root string) *Store {
	s, err := Open(context.Background(), root, Options{})
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
