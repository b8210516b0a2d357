package sqlite_test

import (
	"context"
	"testing"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

// together submits functions so that they share a transaction, and returns what each is answered.
func together(t *testing.T, s store.Store, fns ...func(store.Tx) error) []error {
	t.Helper()
	begun, end := make(chan struct{}), make(chan struct{})
	s.Submit(t.Context(), func(store.Tx) error {
		close(begun)
		<-end
		return nil
	}, func(error) {})
	<-begun
	answers, answered := make([]error, len(fns)), make(chan struct{}, len(fns))
	for i, fn := range fns {
		s.Submit(t.Context(), fn, func(err error) {
			answers[i] = err
			answered <- struct{}{}
		})
	}
	close(end)
	for range fns {
		<-answered
	}
	return answers
}

// opening opens a task inside a transaction.
func opening(title string) func(store.Tx) error {
	return func(tx store.Tx) error {
		_, err := store.Open(tx, &schema.OpenParams{
			Input: schema.OpenInput{Title: title}, RunID: "run", Authority: schema.Authority{Role: schema.Lead, SessionID: "root"},
		})
		return err
	}
}

// TestErrorThatRollsEverythingBack: SQLite ends the whole transaction, as it
// does for a full disk with a rollback journal. What would be run after it
// would commit on its own, so nothing may be.
func TestErrorThatRollsEverythingBack(t *testing.T) {
	t.Parallel()
	for _, raise := range []string{"ROLLBACK", "ABORT", "FAIL"} {
		t.Run(raise, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			s := open(t, root, sqlite.Options{})
			reference.Exec(t, reference.Open(t, root),
				"CREATE TRIGGER broken BEFORE INSERT ON task WHEN new.title = 'broken' BEGIN SELECT RAISE("+raise+", 'of the test'); END")
			stubborn := func(tx store.Tx) error {
				_ = opening("lost")(tx)
				_ = tx.Nested(opening("broken"))
				_ = opening("later")(tx)
				_ = tx.Nested(opening("nested"))
				return nil
			}
			failed(t, s.Write(t.Context(), stubborn), schema.ErrStoreCorrupt)
			if got := titles(t, s, "run"); got != "" {
				t.Fatalf("alone, it left %q", got)
			}
			answers := together(t, s, opening("a"), stubborn, opening("b"), opening("broken"), opening("c"))
			for i, wantError := range []bool{false, true, false, true, false} {
				if (answers[i] != nil) != wantError {
					t.Errorf("member %d: %v", i, answers[i])
				}
			}
			if got := titles(t, s, "run"); got != "a b c" {
				t.Errorf("together, they left %q", got)
			}
		})
	}
}

// TestCommitThatFails: with a rollback journal a commit waits for readers; one
// that reads for too long costs the whole batch, and only it.
func TestCommitThatFails(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	reference.Create(t, root, reference.Schema)
	s := open(t, root, sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	if err := add(s, "run", "before"); err != nil {
		t.Fatal(err)
	}
	reader := reference.Open(t, root)
	reference.Exec(t, reader, "BEGIN")
	reference.Rows(t, reader, "SELECT * FROM task")
	for _, err := range together(t, s, opening("a"), opening("b")) {
		failed(t, err, schema.ErrStoreBusy)
	}
	failed(t, add(s, "run", "c"), schema.ErrStoreBusy)
	if got := titles(t, s, "run"); got != "before" {
		t.Errorf("tasks %q", got)
	}
	reference.Exec(t, reader, "COMMIT")
	for _, err := range together(t, s, opening("d"), opening("e")) {
		if err != nil {
			t.Error(err)
		}
	}
	if got := titles(t, s, "run"); got != "before d e" {
		t.Errorf("tasks %q", got)
	}
	err := s.Read(context.Background(), func(tx store.Tx) error {
		events, err := tx.TaskEvents(2, store.Page{})
		if len(events) != 1 {
			t.Errorf("%d events of the task that came after the failure", len(events))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
