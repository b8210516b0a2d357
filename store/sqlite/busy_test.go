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

// TestBusyStore: another process keeps the write lock for longer than the
// busy timeout. A write fails with a retryable error, a read goes on, and the
// next write succeeds once the lock is free.
func TestBusyStore(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	if err := add(s, "run", "before"); err != nil {
		t.Fatal(err)
	}
	other := reference.Open(t, root)
	reference.Exec(t, other, "BEGIN IMMEDIATE")
	for range 2 {
		refusal := failed(t, add(s, "run", "lost"), schema.ErrStoreBusy)
		if !refusal.Data().Retryable {
			t.Error("the refusal is not retryable")
		}
		if got := titles(t, s, "run"); got != "before" {
			t.Errorf("tasks %q", got)
		}
	}
	reference.Exec(t, other, "COMMIT")
	if err := add(s, "run", "after"); err != nil {
		t.Fatal(err)
	}
	if got := titles(t, s, "run"); got != "before after" {
		t.Errorf("tasks %q", got)
	}
}

// TestWriteWaitsForTheLock within the busy timeout.
func TestWriteWaitsForTheLock(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, sqlite.Options{})
	other := reference.Open(t, root)
	reference.Exec(t, other, "BEGIN IMMEDIATE")
	done := make(chan error, 1)
	s.Submit(t.Context(), func(tx store.Tx) error {
		return tx.SetLimits("run", schema.DefaultLimits())
	}, func(err error) { done <- err })
	reference.Exec(t, other, "COMMIT")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestDamagedRowFailsItsCall and nothing else: a payload that is not JSON, an
// integer that is none.
func TestDamagedRowFailsItsCall(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		damage string
		read   func(store.Tx) error
	}{
		"a payload":  {"UPDATE governor_reservation SET payload = '{'", func(tx store.Tx) error { _, err := tx.Reservation("r"); return err }},
		"payloads":   {"UPDATE governor_reservation SET payload = 'null,'", func(tx store.Tx) error { _, err := tx.Reservations("run", store.Page{}); return err }},
		"details":    {"UPDATE governor_audit SET details = '{a}'", func(tx store.Tx) error { _, err := tx.Audit("run", store.Page{}); return err }},
		"a number":   {"UPDATE task SET evidence_generation = 'many'", func(tx store.Tx) error { _, err := tx.Task(1); return err }},
		"no status":  {"UPDATE governor_reservation SET generation = 'first'", func(tx store.Tx) error { _, err := tx.Reservation("r"); return err }},
		"a charge":   {"UPDATE governor_retry_charge SET retry_charge = 'some'", func(tx store.Tx) error { _, err := tx.RetryCharge("r"); return err }},
		"the limits": {"UPDATE governor_run SET max_active = 'six'", func(tx store.Tx) error { _, err := tx.Limits("run"); return err }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			s := open(t, root, sqlite.Options{})
			if err := add(s, "run", "t"); err != nil {
				t.Fatal(err)
			}
			reference.Exec(t, reference.Open(t, root),
				`INSERT INTO governor_reservation VALUES ('r', 'run', 1, 'k', '{"resources":[]}', 1, 'read', 'new', 'reserved', NULL, NULL, NULL)`,
				"INSERT INTO governor_retry_charge VALUES ('r', 0, 0, 'admission')", "INSERT INTO governor_run VALUES ('run', 6, 2, 3, 2)",
				"INSERT INTO governor_audit (run_id, action, role, session_id, details, created_at) VALUES ('run', 'bind', 'lead', 'l', '{}', '')",
				test.damage)
			failed(t, s.Read(context.Background(), test.read), schema.ErrStoreCorrupt)
			failed(t, s.Write(context.Background(), test.read), schema.ErrStoreCorrupt)
			if err := add(s, "run", "another"); err != nil {
				t.Errorf("the store is of no use any more: %v", err)
			}
		})
	}
}
