package sqlite

import (
	"context"
	"errors"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/google/uuid"
)

// admitMany adds settled reservations of one task.
func admitMany(t *testing.T, s *Store, n int) {
	t.Helper()
	err := s.Write(context.Background(), func(tx store.Tx) error {
		if _, err := tx.Usage("a"); err != nil {
			return err
		}
		for i := range n {
			id := uuid.Must(uuid.NewV7()).String()
			r := &store.Reservation{Reservation: schema.Reservation{ReservationID: id, RunID: "a", TaskID: 1, Generation: int64(i) + 1,
				State: schema.Settled, Mode: schema.Read, Kind: schema.Reuse, Resources: []string{}}, OperationKey: id, Payload: `{"resources":[]}`}
			if err := tx.InsertReservation(r, schema.RetryCharge{ReservationID: id, Source: schema.FromAdmission}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// unaccounted is what a sidecar that starts finds without a charge.
func unaccounted(t *testing.T, root string) (run bool, list []store.Unaccounted) {
	t.Helper()
	s := openAt(t, root)
	defer s.Close()
	err := s.Read(context.Background(), func(tx store.Tx) error {
		usage, err := tx.Usage("a")
		if err != nil {
			return err
		}
		run = usage.Unaccounted
		list, err = tx.Unaccounted()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return run, list
}

// TestNoteOfCharges: a sidecar that starts looks for reservations without a
// charge only after the last one that noted that there are none, so that a long
// history does not delay it. What an older writer adds comes after the note.
func TestNoteOfCharges(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := openAt(t, root)
	admitMany(t, s, notedEvery+10)
	s.Close()
	if run, list := unaccounted(t, root); run || len(list) > 0 {
		t.Fatalf("unaccounted %v: %v", run, list)
	}
	// Nobody does this; it shows that what is older than the note is left alone.
	foreign(t, s.path, "UPDATE governor_retry_charge SET reservation_id = 'nobody''s' WHERE rowid = 3")
	if run, list := unaccounted(t, root); run || len(list) > 0 {
		t.Errorf("what is older than the note was looked at: %v, %v", run, list)
	}
	foreign(t, s.path, "INSERT INTO governor_reservation SELECT 'old binary''s', run_id, 2, 'key', payload, 1, mode, kind, state, owner_session, session_id, settlement FROM governor_reservation WHERE rowid = 1")
	if run, list := unaccounted(t, root); !run || len(list) != 2 {
		t.Errorf("an old binary's reservation is not found: %v, %v", run, list)
	}
}

// TestNoteOfAnotherLedger: a note that names no reservation says nothing.
func TestNoteOfAnotherLedger(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := openAt(t, root)
	admitMany(t, s, 3)
	s.Close()
	foreign(t, s.path, "INSERT INTO sidecar_meta VALUES ('charged_up_to', 'nobody''s')")
	foreign(t, s.path, "DELETE FROM governor_retry_charge WHERE rowid = 2")
	if run, list := unaccounted(t, root); !run || len(list) != 1 {
		t.Errorf("found %v, %v", run, list)
	}
}

// TestNoteIsUndone with the admission that made it.
func TestNoteIsUndone(t *testing.T) {
	t.Parallel()
	s := openAt(t, t.TempDir())
	defer s.Close()
	admitMany(t, s, notedEvery-1)
	err := s.Write(context.Background(), func(tx store.Tx) error {
		if err := admitTask(tx, 2, schema.New, schema.Read, 0); err != nil {
			return err
		}
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		t.Fatal(err)
	}
	withConn(t, s.path, func(c *conn) error {
		var noted bool
		_, err := c.scan(context.Background(), "SELECT EXISTS (SELECT 1 FROM sidecar_meta WHERE key = 'charged_up_to')", nil, &noted)
		if noted {
			t.Error("the note is kept")
		}
		return err
	})
}
