package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/google/uuid"
	driver "modernc.org/sqlite"
	"pgregory.net/rapid"
)

// The ledger remembers counts; these tests compare what a long-lived store
// answers with what a store that has just been opened reads from the rows.

var errUndo = errors.New("undo")

// counts is everything that the ledger answers, for two runs of two tasks each.
type counts struct {
	Usage      map[string]store.Usage
	Limits     map[string]schema.Limits
	Admissions map[int64]store.Admissions
}

func readCounts(tx store.Tx) (c counts, err error) {
	c = counts{map[string]store.Usage{}, map[string]schema.Limits{}, map[int64]store.Admissions{}}
	for _, run := range []string{"a", "b"} {
		if c.Usage[run], err = tx.Usage(run); err != nil {
			return c, err
		}
		if c.Limits[run], err = tx.Limits(run); err != nil {
			return c, err
		}
	}
	for task := int64(1); task <= 4; task++ {
		if c.Admissions[task], err = tx.Admissions(task); err != nil {
			return c, err
		}
	}
	return c, nil
}

func openAt(t testing.TB, root string) *Store {
	t.Helper()
	s, err := Open(context.Background(), root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// same compares the writer's and the reader's ledger of each store with the rows.
func same(t fatal, root string, stores ...*Store) {
	t.Helper()
	ctx := context.Background()
	fresh, err := Open(ctx, root, Options{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	defer fresh.Close()
	want := collect(t, func(fn func(store.Tx) error) error { return fresh.Read(ctx, fn) })
	for _, s := range stores {
		if got := collect(t, func(fn func(store.Tx) error) error { return s.Write(ctx, fn) }); got != want {
			t.Fatalf("the writer remembers\n%s, the rows say\n%s", got, want)
		}
		if got := collect(t, func(fn func(store.Tx) error) error { return s.Read(ctx, fn) }); got != want {
			t.Fatalf("the reader remembers\n%s, the rows say\n%s", got, want)
		}
	}
}

func collect(t fatal, in func(func(store.Tx) error) error) string {
	t.Helper()
	var c counts
	if err := in(func(tx store.Tx) (err error) { c, err = readCounts(tx); return err }); err != nil {
		t.Fatalf("counts: %v", err)
	}
	return fmt.Sprint(c)
}

// admitTask adds a reservation of the task; tasks 1 and 2 are of run a, the others of b.
func admitTask(tx store.Tx, task int64, kind schema.Kind, mode schema.Mode, charge int64) error {
	a, err := tx.Admissions(task)
	if err != nil {
		return err
	}
	if active, err := tx.ActiveAdmission(task); err != nil || active != nil {
		return err
	}
	run := "a"
	if task > 2 {
		run = "b"
	}
	id := uuid.Must(uuid.NewV7()).String()
	return tx.InsertReservation(&store.Reservation{
		Reservation: schema.Reservation{
			ReservationID: id, RunID: run, TaskID: task, Generation: a.Generation + 1,
			State: schema.Reserved, Mode: mode, Kind: kind, Resources: []string{},
		},
		OperationKey: id, Payload: `{"resources":[]}`,
	}, schema.RetryCharge{ReservationID: id, ReworkGeneration: a.ReworkGeneration + charge, RetryCharge: charge, Source: schema.FromAdmission})
}

// moveTask gives the active reservation of the task another state.
func moveTask(tx store.Tx, task int64, to schema.State) error {
	active, err := tx.ActiveAdmission(task)
	if err != nil || active == nil {
		return err
	}
	r, err := tx.Reservation(active.ReservationID)
	if err != nil {
		return err
	}
	r.State = to
	return tx.SaveReservation(r)
}

// TestLedgerFollowsEveryWriter drives two stores on one file with random
// admissions, transitions, budgets and rollbacks, and a writer that leaves
// reservations without accounting, and compares after every step.
func TestLedgerFollowsEveryWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root := filepath.Join(tempDir(t), "store")
		stores := []*Store{mustOpen(t, root), mustOpen(t, root)}
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			s := stores[rapid.IntRange(0, 1).Draw(t, "store")]
			steps := rapid.SliceOfN(rapid.Custom(drawStep), 1, 3).Draw(t, "batch")
			undo := rapid.Bool().Draw(t, "undo")
			err := s.Write(context.Background(), func(tx store.Tx) error {
				for _, step := range steps {
					if err := step.apply(tx); err != nil {
						return err
					}
				}
				if undo {
					return errUndo
				}
				return nil
			})
			if err != nil && !errors.Is(err, errUndo) {
				t.Fatalf("write: %v", err)
			}
			same(t, root, stores...)
		}
	})
}

// step is one change of a transaction, perhaps undone by itself.
type step struct {
	What   string
	Task   int64
	Kind   schema.Kind
	Mode   schema.Mode
	State  schema.State
	Charge int64
	Undo   bool
}

func drawStep(t *rapid.T) step {
	return step{
		What:   rapid.SampledFrom([]string{"admit", "admit", "move", "limits"}).Draw(t, "what"),
		Task:   rapid.Int64Range(1, 4).Draw(t, "task"),
		Kind:   rapid.SampledFrom([]schema.Kind{schema.New, schema.Reuse, schema.Retry}).Draw(t, "kind"),
		Mode:   rapid.SampledFrom([]schema.Mode{schema.Read, schema.Write}).Draw(t, "mode"),
		State:  rapid.SampledFrom([]schema.State{schema.Unknown, schema.Running, schema.Settled, schema.Settled}).Draw(t, "state"),
		Charge: rapid.Int64Range(0, 2).Draw(t, "charge"),
		Undo:   rapid.Bool().Draw(t, "undo"),
	}
}

func (s step) apply(tx store.Tx) error {
	err := tx.Nested(func(tx store.Tx) error {
		if err := s.change(tx); err != nil {
			return err
		}
		if s.Undo {
			return errUndo
		}
		return nil
	})
	if errors.Is(err, errUndo) {
		return nil
	}
	return err
}

func (s step) change(tx store.Tx) error {
	switch s.What {
	case "admit":
		return admitTask(tx, s.Task, s.Kind, s.Mode, s.Charge)
	case "move":
		return moveTask(tx, s.Task, s.State)
	}
	limits, err := tx.Limits("a")
	if err != nil {
		return err
	}
	limits.MaxActive++
	return tx.SetLimits("a", limits)
}

// TestLedgerNoticesARestoredBackup restores an older state into the open file,
// as SQLite's backup API does, and lets another process go on from there.
func TestLedgerNoticesARestoredBackup(t *testing.T) {
	root, backup := t.TempDir(), filepath.Join(t.TempDir(), "backup.db")
	s := openAt(t, root)
	defer s.Close()
	admit := func(s *Store, task int64, kind schema.Kind) {
		t.Helper()
		err := s.Write(context.Background(), func(tx store.Tx) error {
			if err := admitTask(tx, task, kind, schema.Write, 1); err != nil {
				return err
			}
			return moveTask(tx, task, schema.Settled)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	admit(s, 1, schema.New)
	foreign(t, s.path, "VACUUM INTO '"+backup+"'")
	admit(s, 1, schema.New)
	admit(s, 2, schema.New)
	same(t, root, s)

	restoreBackup(t, s.path, backup)
	same(t, root, s)

	other := openAt(t, root)
	admit(other, 1, schema.Reuse) // the same row number and generation as before, another row
	admit(other, 3, schema.New)
	other.Close()
	same(t, root, s)
}

// TestLedgerFailsTheRunOfAnUnaccountedRow lets an older writer insert a
// reservation without a retry charge while the store is open.
func TestLedgerFailsTheRunOfAnUnaccountedRow(t *testing.T) {
	root := t.TempDir()
	s := openAt(t, root)
	defer s.Close()
	same(t, root, s)
	foreign(t, s.path, `INSERT INTO governor_reservation (reservation_id, run_id, task_id, operation_key, payload, generation, mode, kind, state)
		VALUES ('old', 'a', 1, 'k', '{"resources":[]}', 1, 'read', 'new', 'reserved')`)
	same(t, root, s)
	usage := func(run string) (u store.Usage) {
		t.Helper()
		if err := s.Write(context.Background(), func(tx store.Tx) (err error) { u, err = tx.Usage(run); return err }); err != nil {
			t.Fatal(err)
		}
		return u
	}
	if !usage("a").Unaccounted || usage("b").Unaccounted {
		t.Fatal("exactly the run of the unaccounted reservation must fail closed")
	}
	foreign(t, s.path, "INSERT INTO governor_retry_charge VALUES ('old', 0, 0, 'legacy')")
	if usage("a").Unaccounted {
		t.Fatal("another process has migrated the reservation")
	}
	same(t, root, s)
}

// foreign executes SQL as another process would: on a connection of its own.
func foreign(t *testing.T, path, statement string) {
	t.Helper()
	withConn(t, path, func(c *conn) error {
		_, err := c.c.ExecContext(context.Background(), statement)
		return err
	})
}

// restoreBackup overwrites the database in place.
func restoreBackup(t *testing.T, path, backup string) {
	t.Helper()
	withConn(t, path, func(c *conn) error {
		return c.c.Raw(func(raw any) error {
			b, err := raw.(interface {
				NewRestore(string) (*driver.Backup, error)
			}).NewRestore(backup)
			if err != nil {
				return err
			}
			if _, err := b.Step(-1); err != nil {
				return err
			}
			return b.Finish()
		})
	})
}

func withConn(t *testing.T, path string, do func(*conn) error) {
	t.Helper()
	c, err := (&Store{path: path, options: Options{BusyTimeout: DefaultBusyTimeout}}).connect(context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if err := do(c); err != nil {
		t.Fatal(err)
	}
}
