package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/postgres"
	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// The benchmarks of BENCHMARKS.md: `make bench-postgres`. A cycle is an
// admission of a writer with a resource of its own, its bind and its settlement,
// each on the disk before the next. The server waits for the disk as usual.

// parallel is how many runs go on at once.
var parallel = []int{1, 8, 32}

func BenchmarkCycles(b *testing.B) {
	server := pgtest.Start(b)
	for _, runs := range parallel {
		b.Run(fmt.Sprintf("postgres/runs=%d", runs), func(b *testing.B) {
			s := open(b, server.URL(server.Schema())+"&pool_max_conns=44", postgres.Options{})
			benchCycles(b, s, runs)
		})
		b.Run(fmt.Sprintf("raw-pgx/runs=%d", runs), func(b *testing.B) {
			benchRaw(b, server, server.Schema(), runs)
		})
		b.Run(fmt.Sprintf("sqlite/runs=%d", runs), func(b *testing.B) {
			s, err := sqlite.Open(context.Background(), b.TempDir(), sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			benchCycles(b, s, runs)
		})
	}
}

// inParallel runs b.N cycles on some runs, one after another in each.
func inParallel(b *testing.B, runs int, cycle func(i int, n int64) error) {
	var group sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ResetTimer()
	for i := range runs {
		group.Go(func() {
			for n := int64(0); left.Add(-1) >= 0; n++ {
				if err := cycle(i, n); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
}

func benchCycles(b *testing.B, s store.Store, runs int) {
	tasks := make([]int64, runs)
	for i := range tasks {
		task, err := addTask(s, run(i))
		if err == nil {
			_, err = write(s, run(i), store.Scope{}, store.Claim, schema.ClaimParams{RunID: run(i), Authority: lead,
				Input: schema.ClaimInput{TaskID: task.TaskID, Owner: "Ann", OwnerSession: "s"}})
		}
		if err != nil {
			b.Fatal(err)
		}
		tasks[i] = task.TaskID
	}
	inParallel(b, runs, func(i int, n int64) error {
		r, err := reserve(s, run(i), tasks[i], n, schema.Reuse, "resource of "+run(i))
		if err != nil {
			return err
		}
		of := store.Scope{Reservations: []string{r.ReservationID}}
		if _, err := write(s, run(i), of, governor.Bind, schema.BindParams{RunID: run(i), Authority: lead,
			Input: schema.BindInput{ReservationID: r.ReservationID, Generation: r.Generation, SessionID: "s"}}); err != nil {
			return err
		}
		_, err = write(s, run(i), of, governor.Settle, schema.SettleParams{RunID: run(i), Authority: lead,
			Input: schema.SettleInput{ReservationID: r.ReservationID, Generation: r.Generation,
				Proof: schema.Proof{Kind: schema.Terminal, Outcome: schema.Succeeded, Quiescent: true, Evidence: "log"}}})
		return err
	})
}

// benchRaw sends the statements of the same cycles by pgx alone.
func benchRaw(b *testing.B, server *pgtest.Server, name string, runs int) {
	s := open(b, server.URL(name), postgres.Options{})
	hosts := make([]*postgres.RawHost, runs)
	for i := range hosts {
		task, err := addTask(s, run(i))
		if err != nil {
			b.Fatal(err)
		}
		hosts[i] = postgres.NewRawHost(s, server.Connect(b, name), run(i), task.TaskID)
	}
	inParallel(b, runs, func(i int, n int64) error { return hosts[i].Cycle(n) })
}
