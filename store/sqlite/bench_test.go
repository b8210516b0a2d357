package sqlite_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/google/uuid"
)

// benchTasks is how many tasks the retained reservations are spread over.
const benchTasks = 50

func openBench(b *testing.B, root string) *sqlite.Store {
	b.Helper()
	s, err := sqlite.Open(context.Background(), root, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func mustWrite(b *testing.B, s *sqlite.Store, fn func(store.Tx) error) {
	b.Helper()
	if err := s.Write(context.Background(), fn); err != nil {
		b.Fatal(err)
	}
}

// admit adds a reservation with its charge, hold and audit entry.
func admit(tx store.Tx, task, generation int64) (*store.Reservation, error) {
	r := &store.Reservation{
		Reservation: schema.Reservation{
			ReservationID: uuid.Must(uuid.NewV7()).String(), RunID: "run", TaskID: task, Generation: generation,
			State: schema.Reserved, Mode: schema.Write, Kind: schema.New, Resources: []string{fmt.Sprintf("repo:part-%d", task)},
		},
		OperationKey: fmt.Sprintf("task %d, attempt %d", task, generation),
	}
	r.Payload = fmt.Sprintf(`{"task_id":%d,"generation":%d,"mode":"write","kind":"new","resources":[%q]}`, task, generation-1, r.Resources[0])
	charge := schema.RetryCharge{ReservationID: r.ReservationID, Source: schema.FromAdmission}
	if err := tx.InsertReservation(r, charge); err != nil {
		return nil, err
	}
	return r, audit(tx, r, "reserve")
}

func audit(tx store.Tx, r *store.Reservation, action string) error {
	return tx.AppendAudit(&schema.AuditEntry{
		RunID: r.RunID, ReservationID: &r.ReservationID, Action: action, Role: schema.Lead, SessionID: "lead", Details: []byte(r.Payload),
	})
}

func settle(tx store.Tx, r *store.Reservation) error {
	proof := `{"kind":"never_started"}`
	r.State, r.Settlement = schema.Settled, &proof
	if err := tx.SaveReservation(r); err != nil {
		return err
	}
	return audit(tx, r, "settle")
}

// retain gives the run so many settled reservations.
func retain(b *testing.B, s *sqlite.Store, count int64) {
	b.Helper()
	mustWrite(b, s, func(tx store.Tx) error {
		for i := range count {
			r, err := admit(tx, i%benchTasks, i/benchTasks+1)
			if err == nil {
				err = settle(tx, r)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// BenchmarkSubmit measures group commit itself: writes of one row each, with a
// number of them waiting at once.
func BenchmarkSubmit(b *testing.B) {
	for _, depth := range []int{1, 64} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			writeAll(b, depth, openBench(b, b.TempDir()))
		})
	}
}

// BenchmarkShared is the same for stores that share a file, eight writes
// waiting at each, so that it measures how turns pass between them.
func BenchmarkShared(b *testing.B) {
	for _, sharing := range []int{1, 8} {
		b.Run(fmt.Sprintf("stores=%d", sharing), func(b *testing.B) {
			root := b.TempDir()
			var stores []*sqlite.Store
			for range sharing {
				stores = append(stores, openBench(b, root))
			}
			writeAll(b, 8, stores...)
		})
	}
}

// writeAll appends b.N audit entries, depth at once through each store.
func writeAll(b *testing.B, depth int, stores ...*sqlite.Store) {
	r := &store.Reservation{Reservation: schema.Reservation{RunID: "run"}, Payload: `{"reason":"benchmark"}`}
	lanes := depth * len(stores)
	b.ResetTimer()
	var workers sync.WaitGroup
	for lane := range lanes {
		workers.Go(func() {
			for i := lane; i < b.N; i += lanes {
				err := stores[lane%len(stores)].Write(context.Background(), func(tx store.Tx) error { return audit(tx, r, "extendBudget") })
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
}

// BenchmarkAdmission measures what an admission asks of the store and writes,
// and the settlement after it, in a run that retains a history.
func BenchmarkAdmission(b *testing.B) {
	for _, retained := range []int64{0, 20_000} {
		b.Run(fmt.Sprintf("retained=%d", retained), func(b *testing.B) {
			s := openBench(b, b.TempDir())
			retain(b, s, retained)
			for i := int64(0); b.Loop(); i++ {
				var admitted *store.Reservation
				mustWrite(b, s, func(tx store.Tx) (err error) {
					admitted, err = askAndAdmit(tx, i%benchTasks)
					return err
				})
				mustWrite(b, s, func(tx store.Tx) error { return settle(tx, admitted) })
			}
		})
	}
}

func askAndAdmit(tx store.Tx, task int64) (*store.Reservation, error) {
	if _, err := tx.Task(task); err != nil {
		return nil, err
	}
	admissions, err := tx.Admissions(task)
	if err != nil {
		return nil, err
	}
	if _, err := tx.ReservationByKey("run", fmt.Sprintf("task %d, attempt %d", task, admissions.Generation+1)); err != nil {
		return nil, err
	}
	if _, err := tx.ActiveAdmission(task); err != nil {
		return nil, err
	}
	if _, err := tx.Limits("run"); err != nil {
		return nil, err
	}
	if _, err := tx.Usage("run"); err != nil {
		return nil, err
	}
	if _, err := tx.Conflicts(fmt.Sprintf("repo:part-%d", task), schema.Write); err != nil {
		return nil, err
	}
	return admit(tx, task, admissions.Generation+1)
}

// BenchmarkRead measures reads of a run that retains a history: what a process
// has counted already, a page at either end, and every row.
func BenchmarkRead(b *testing.B) {
	const retained = 20_000
	s := openBench(b, b.TempDir())
	retain(b, s, retained)
	all, last := store.Page{}, store.NewPage(2*retained-store.DefaultPage, 0)
	for _, bench := range []struct {
		name string
		read func(store.Tx) (int, error)
	}{
		{"usage", func(tx store.Tx) (int, error) { _, err := tx.Usage("run"); return 1, err }},
		{"audit/first", func(tx store.Tx) (int, error) { return length(tx.Audit("run", store.NewPage(0, 0))) }},
		{"audit/last", func(tx store.Tx) (int, error) { return length(tx.Audit("run", last)) }},
		{"audit/all", func(tx store.Tx) (int, error) { return length(tx.Audit("run", all)) }},
		{"reservations/all", func(tx store.Tx) (int, error) { return length(tx.Reservations("run", all)) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				var rows int
				err := s.Read(context.Background(), func(tx store.Tx) (err error) {
					rows, err = bench.read(tx)
					return err
				})
				if err != nil || rows == 0 {
					b.Fatal(rows, err)
				}
			}
		})
	}
}

func length[Row any](rows []Row, err error) (int, error) { return len(rows), err }

// BenchmarkOpen measures opening and closing an existing store that nobody else has open.
func BenchmarkOpen(b *testing.B) {
	root := b.TempDir()
	first := openBench(b, root)
	retain(b, first, 1000)
	first.Close()
	for b.Loop() {
		s, err := sqlite.Open(context.Background(), root, sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
