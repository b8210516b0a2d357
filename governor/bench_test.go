package governor_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

var benchLead = schema.Authority{Role: schema.Lead, SessionID: "lead"}

// benchTask is a claimed task that a benchmark admits again and again.
type benchTask struct{ id, generation int64 }

func openBench(b *testing.B, tasks int) (store.Store, []*benchTask) {
	b.Helper()
	s, err := sqlite.Open(context.Background(), b.TempDir(), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	var list []*benchTask
	err = s.Write(context.Background(), func(tx store.Tx) error {
		many := int64(1) << 40
		_, err := governor.ExtendBudget(tx, &schema.ExtendBudgetParams{RunID: "run", Authority: benchLead, Input: schema.ExtendBudgetInput{
			Reason: "benchmark", MaxActive: &many, MaxWriters: &many, MaxCreated: &many, MaxRetries: &many,
		}})
		for i := 0; err == nil && i < tasks; i++ {
			var task *schema.Task
			if task, err = store.Open(tx, &schema.OpenParams{RunID: "run", Authority: benchLead, Input: schema.OpenInput{Title: "task"}}); err == nil {
				list = append(list, &benchTask{id: task.TaskID})
				_, err = store.Claim(tx, &schema.ClaimParams{RunID: "run", Authority: benchLead, Input: schema.ClaimInput{TaskID: task.TaskID, Owner: "o", OwnerSession: "s"}})
			}
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return s, list
}

// write writes at once if it can, as the sidecar does for a request that comes alone.
func write(s store.Store, fn func(store.Tx) error) error {
	ctx := context.Background()
	if done, err := s.WriteNow(ctx, fn); done {
		return err
	}
	return s.Write(ctx, fn)
}

// cycle reserves, binds and settles, each in a write of its own.
func (t *benchTask) cycle(s store.Store, key string) error {
	var r *schema.Reservation
	err := write(s, func(tx store.Tx) (err error) {
		r, err = governor.Reserve(tx, &schema.ReserveParams{RunID: "run", Authority: benchLead, Input: schema.ReserveInput{
			OperationKey: key, TaskID: t.id, Generation: t.generation, Mode: schema.Write, Kind: schema.New,
			Resources: []string{fmt.Sprintf("resource-%d", t.id)},
		}})
		return err
	})
	if err != nil {
		return err
	}
	t.generation = r.Generation
	err = write(s, func(tx store.Tx) error {
		_, err := governor.Bind(tx, &schema.BindParams{RunID: "run", Authority: benchLead, Input: schema.BindInput{
			ReservationID: r.ReservationID, Generation: r.Generation, SessionID: "s",
		}})
		return err
	})
	if err != nil {
		return err
	}
	return write(s, func(tx store.Tx) error {
		_, err := governor.Settle(tx, &schema.SettleParams{RunID: "run", Authority: benchLead, Input: schema.SettleInput{
			ReservationID: r.ReservationID, Generation: r.Generation,
			Proof: schema.Proof{Kind: schema.Terminal, Outcome: schema.Succeeded, Quiescent: true, Evidence: "exit status 0"},
		}})
		return err
	})
}

// BenchmarkCycle measures reserve, bind and settle with a number of hosts at
// once; one operation is one cycle of three durable writes.
func BenchmarkCycle(b *testing.B) {
	for _, depth := range []int{1, 64} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			s, tasks := openBench(b, depth)
			b.ResetTimer()
			var workers sync.WaitGroup
			for w, task := range tasks {
				workers.Go(func() {
					for i := w; i < b.N; i += depth {
						if err := task.cycle(s, fmt.Sprintf("op-%d", i)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			workers.Wait()
		})
	}
}
