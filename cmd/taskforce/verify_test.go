package main

import (
	"testing"

	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// sound checks that the ledger in a root folder keeps every promise, and warns of
// nothing but what is expected. It returns how many rows there are.
func sound(t *testing.T, root string, expected ...string) sqlite.Rows {
	t.Helper()
	s, err := sqlite.Open(t.Context(), root, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v, err := s.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range v.Breaches {
		if len(expected) == 0 || b.Check != expected[0] || b.Level == sqlite.Fault {
			t.Errorf("%s %s %s %q: %s", b.Level, b.Check, b.Table, b.Row, b.Explanation)
		}
	}
	return v.Rows
}
