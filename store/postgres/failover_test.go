package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/postgres"
	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
	"github.com/dsh-taskforce/sidecar/store/transfer"
)

func transferVerify(s *postgres.Store) (*store.Verification, error) {
	return transfer.Verify(context.Background(), s, s.Identity().ID)
}

// load admits and settles one task of each of some runs after another, through
// stores of their own, and remembers what was acknowledged.
type load struct {
	t      *testing.T
	stores []*postgres.Store
	tasks  []int64
	end    chan struct{}
	group  sync.WaitGroup

	mu       sync.Mutex
	admitted map[string]int // acknowledged admissions by id
	settled  map[string]int
	unknown  int
	progress chan struct{}
	// failed is closed by the first host that gave up.
	failed chan struct{}
	once   sync.Once
}

func run(i int) string { return fmt.Sprintf("run %d", i) }

// startLoad opens the stores and begins.
func startLoad(t *testing.T, n int, url string) *load {
	t.Helper()
	l := &load{t: t, end: make(chan struct{}), admitted: map[string]int{}, settled: map[string]int{}, progress: make(chan struct{}, 1), failed: make(chan struct{})}
	t.Cleanup(l.group.Wait)
	for i := range n {
		// Whatever happens to the servers takes a few seconds at most.
		s := open(t, url, postgres.Options{BusyTimeout: 20 * time.Second})
		task, err := addTask(s, run(i))
		if err != nil {
			t.Fatal(err)
		}
		l.stores, l.tasks = append(l.stores, s), append(l.tasks, task.TaskID)
	}
	for i := range n {
		l.group.Go(func() { l.run(i) })
	}
	return l
}

// run is one host. What it was not told, it asks again, by the same key.
func (l *load) run(i int) {
	for n := int64(0); ; n++ {
		select {
		case <-l.end:
			return
		case <-l.failed:
			return
		default:
		}
		var r *schema.Reservation
		l.insist(func() (err error) {
			r, err = reserve(l.stores[i], run(i), l.tasks[i], n, schema.Reuse, "shared by "+fmt.Sprint(i/2), "own "+fmt.Sprint(i))
			return err
		})
		if r == nil {
			return
		}
		l.note(l.admitted, r.ReservationID)
		l.insist(func() error { return settle(l.stores[i], r) })
		l.note(l.settled, r.ReservationID)
	}
}

// insist makes a call until its outcome is known.
func (l *load) insist(call func() error) {
	for {
		switch err := call(); codeOf(err) {
		case "":
			if err != nil {
				l.fail(err)
			}
			return
		case schema.ErrStoreUnknown:
			l.mu.Lock()
			l.unknown++
			l.mu.Unlock()
		case schema.ErrResourceBusy: // another run has the shared key
		default:
			l.fail(err)
			return
		}
	}
}

func (l *load) fail(err error) {
	l.t.Error(err)
	l.once.Do(func() { close(l.failed) })
}

func (l *load) note(in map[string]int, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in[id]++
	select {
	case l.progress <- struct{}{}:
	default:
	}
}

// more waits for some more acknowledgements.
func (l *load) more(n int) {
	l.t.Helper()
	for range n {
		select {
		case <-l.progress:
		case <-l.failed:
			l.t.FailNow()
		}
	}
}

// finish ends the load and checks that what was acknowledged is there, once.
func (l *load) finish() {
	l.t.Helper()
	close(l.end)
	l.group.Wait()
	found := map[string]string{}
	for i, s := range l.stores {
		list := snapshot(l.t, s, run(i)).Reservations
		for n, r := range list {
			if r.Generation != int64(n)+1 {
				l.t.Errorf("%s: admission %d has generation %d", run(i), n, r.Generation)
			}
			found[r.ReservationID] = string(r.State)
		}
	}
	for id := range l.admitted {
		if found[id] == "" {
			l.t.Errorf("the acknowledged admission %s is lost", id)
		}
	}
	for id := range l.settled {
		if found[id] != string(schema.Settled) {
			l.t.Errorf("the acknowledged settlement of %s is lost", id)
		}
	}
	if len(found) != len(l.admitted) {
		l.t.Errorf("%d admissions were acknowledged and %d are there", len(l.admitted), len(found))
	}
	l.t.Logf("%d admissions acknowledged, %d outcomes unknown", len(l.admitted), l.unknown)
	sound(l.t, l.stores[0])
}

// The primary dies under load and its synchronous standby is promoted: nothing
// that was acknowledged is lost, and nothing happens twice.
func TestFailover(t *testing.T) {
	t.Parallel()
	primary := pgtest.Start(t)
	standby := primary.Standby(t)
	url := fmt.Sprintf("postgres://%s@127.0.0.1:%d,127.0.0.1:%d/postgres?target_session_attrs=read-write", pgtest.User, primary.Port, standby.Port)
	l := startLoad(t, 4, url)
	l.more(50)
	primary.Kill()
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	l.more(50)
	l.finish()
}

// Server processes are killed one by one, which restarts all of them, and then
// the whole server is, in every way.
func TestServerDies(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t)
	l := startLoad(t, 4, server.URL("taskforce"))
	admin := server.Connect(t, "taskforce")
	for range 20 {
		l.more(3 + rand.IntN(5))
		if _, err := admin.Exec(context.Background(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'taskforce taskforce' ORDER BY random() LIMIT 2"); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.KillBackend(); err != nil {
		t.Fatal(err)
	}
	l.more(20)
	for _, end := range []func() error{server.Shutdown, func() error { server.Kill(); return nil }} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		l.more(20)
	}
	l.finish()
}
