package governor_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

// GOVERNOR.md, "Additive retry-accounting migration", on files as an older
// writer left them.

// TestMigrationCharges: every explicit retry is kept, and the newest row of a
// task carries the rework that no admission has recorded, on top of it.
func TestMigrationCharges(t *testing.T) {
	t.Parallel()
	l := openLedger(t, legacyFile(t, []int64{0, 2, 3, 1},
		legacyRow{"a1", 1, 1, schema.New, schema.Settled},
		legacyRow{"b1", 2, 1, schema.Retry, schema.Settled},
		legacyRow{"c1", 3, 1, schema.Reuse, schema.Settled},
		legacyRow{"b2", 2, 2, schema.Retry, schema.Settled},
		legacyRow{"c2", 3, 2, schema.New, schema.Settled},
		legacyRow{"d1", 4, 1, schema.Retry, schema.Settled},
		legacyRow{"a2", 1, 2, schema.Retry, schema.Settled},
	))
	want := `'a1' | 0 | 0 | 'legacy'
'a2' | 0 | 1 | 'legacy'
'b1' | 2 | 1 | 'legacy'
'b2' | 2 | 3 | 'legacy'
'c1' | 3 | 0 | 'legacy'
'c2' | 3 | 3 | 'legacy'
'd1' | 1 | 2 | 'legacy'
`
	if got := l.rows("SELECT * FROM governor_retry_charge ORDER BY reservation_id"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := l.lead().snapshot().Retries; fmt.Sprint(got) != "map[1:1 2:4 3:3 4:2]" {
		t.Errorf("retries %v", got)
	}
}

// TestMigrationAddsOnlyWhatAccountedAdmissionsDidNotRecord: a file where an old
// binary wrote after a new one.
func TestMigrationAddsOnlyWhatAccountedAdmissionsDidNotRecord(t *testing.T) {
	t.Parallel()
	root := legacyFile(t, []int64{5},
		legacyRow{"accounted", 1, 1, schema.Retry, schema.Settled},
		legacyRow{"old", 1, 2, schema.Retry, schema.Settled},
		legacyRow{"newest", 1, 3, schema.Reuse, schema.Reserved})
	reference.Create(t, root, reference.RetryCharge, "INSERT INTO governor_retry_charge VALUES ('accounted', 2, 2, 'admission')")
	l := openLedger(t, root)
	want := "'accounted' | 2 | 2 | 'admission'\n'old' | 5 | 1 | 'legacy'\n'newest' | 5 | 3 | 'legacy'\n"
	if got := l.rows("SELECT * FROM governor_retry_charge ORDER BY rowid"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestMigrationPreservesEverythingElse(t *testing.T) {
	t.Parallel()
	root := legacyFile(t, []int64{2, 1},
		legacyRow{"a", 1, 1, schema.Retry, schema.Running},
		legacyRow{"b", 2, 1, schema.New, schema.Unknown})
	before := reference.Open(t, root)
	kept := func() string {
		text := ""
		for _, table := range []string{"task", "governor_run", "governor_reservation", "governor_hold", "governor_audit"} {
			text += table + "\n" + reference.Rows(t, before, "SELECT * FROM "+table)
		}
		return text
	}
	old := kept()
	openLedger(t, root)
	if got := kept(); got != old {
		t.Errorf("migration changed\n%s\nto\n%s", old, got)
	}
}

func TestMigrationIsNotRepeated(t *testing.T) {
	t.Parallel()
	l := openLedger(t, legacyFile(t, []int64{1}, legacyRow{"a", 1, 1, schema.Retry, schema.Settled}))
	l.lead().rework(1, "s")
	before := l.content()
	l.reopen()
	if after := l.content(); after != before {
		t.Errorf("reopening changed\n%s\nto\n%s", before, after)
	}
}

// TestMigratedTaskOverItsLimit refuses new keys, answers old ones, and takes an
// absolute extension.
func TestMigratedTaskOverItsLimit(t *testing.T) {
	t.Parallel()
	old := legacyRow{"a", 1, 1, schema.Retry, schema.Settled}
	l := openLedger(t, legacyFile(t, []int64{4}, old))
	lead := l.lead()
	lead.reserve(ask("fresh", 1).after(1)).exhausted(schema.LimitRetries, 2, 5, 0)
	lead.reserve(ask("fresh", 1).after(1).as(schema.Retry)).exhausted(schema.LimitRetries, 2, 5, 1)
	if again := lead.reserve(old.asked()).unchanged(); again.ReservationID != "a" || again.State != schema.Settled {
		t.Errorf("the old key names %+v", *again)
	}
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "reviewed", MaxRetries: new(int64(4))}).ok()
	lead.reserve(ask("fresh", 1).after(1)).exhausted(schema.LimitRetries, 4, 5, 0)
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "reviewed again", MaxRetries: new(int64(5))}).ok()
	lead.bind(lead.reserve(ask("fresh", 1).after(1)).ok(), "s").ok()
	if got := lead.charged(1); got != 5 {
		t.Errorf("charged %d, want 5", got)
	}
}

// TestLegacyAdmissionIsNotBound, whether or not the task was reworked since;
// everything else about it goes on.
func TestLegacyAdmissionIsNotBound(t *testing.T) {
	t.Parallel()
	states := []schema.State{schema.Reserved, schema.Running}
	for _, state := range states {
		for _, evidence := range []int64{0, 1} {
			t.Run(fmt.Sprintf("%s at %d", state, evidence), func(t *testing.T) {
				t.Parallel()
				old := legacyRow{"a", 1, 1, schema.New, state}
				l := openLedger(t, legacyFile(t, []int64{evidence}, old))
				if state == schema.Running {
					l.exec("UPDATE governor_reservation SET session_id = 's'")
				}
				lead, worker, r := l.lead(), l.worker("s"), old.reservation()
				lead.bind(r, "s").fenced(schema.FenceRework, -1, evidence)
				worker.bind(r, "s").fenced(schema.FenceRework, -1, evidence)
				worker.reserve(old.asked()).unchanged()
				worker.markUnknown(r).ok()
				lead.bind(r, "s").fenced(schema.FenceRework, -1, evidence)
				worker.settle(r, succeeded).ok()
				worker.settle(r, succeeded).unchanged()
				fresh := worker.reserve(ask("fresh", 1).after(1)).ok()
				worker.bind(fresh, "s").ok()
			})
		}
	}
}

func TestLegacyHoldsStillExclude(t *testing.T) {
	t.Parallel()
	old := legacyRow{"a", 1, 1, schema.New, schema.Unknown}
	l := openLedger(t, legacyFile(t, []int64{0}, old))
	lead := l.lead()
	refused := lead.reserve(ask("op", lead.task("s")).reading("key of a")).refused(schema.ErrResourceBusy)
	if since := refused.Details.Holders[0].Execution.Since; since != nil {
		t.Errorf("held since %s, though the audit does not tell", *since)
	}
	lead.settle(old.reservation(), neverStarted).ok()
	lead.reserve(ask("op", lead.task("s")).reading("key of a")).ok()
}

// TestRowWithoutAccountingFailsClosed: an old binary wrote while this sidecar
// was running. New admissions and snapshots of that run fail until the store is
// opened again; what needs no accounting goes on.
func TestRowWithoutAccountingFailsClosed(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	known := ask("known", lead.task("s"))
	r := lead.reserve(known).ok()
	old := legacyRow{"a", lead.task("s"), 1, schema.Retry, schema.Reserved}
	other := lead.in("run-2")
	l.exec(old.statements()...)

	lead.reserve(ask("fresh", lead.task("s"))).conflict(schema.ReasonAccounting)
	refusal := call(l, governor.Snapshot, schema.RunParams{RunID: run}).conflict(schema.ReasonAccounting)
	if !strings.Contains(refusal.Message, "start the sidecar again") {
		t.Errorf("the refusal does not say what to do: %s", refusal.Message)
	}
	lead.reserve(known).unchanged()
	lead.reserve(old.asked()).unchanged()
	lead.bind(old.reservation(), "s").fenced(schema.FenceRework, -1, 0)
	lead.bind(r, "s").ok()
	lead.markUnknown(old.reservation()).ok()
	lead.settle(r, succeeded).ok()
	other.reserve(ask("elsewhere", other.task("s"))).ok()

	l.reopen()
	if got := lead.charged(old.task); got != 1 {
		t.Errorf("the old row was charged %d, want 1", got)
	}
	lead.settle(old.reservation(), neverStarted).ok()
	lead.reserve(ask("fresh", lead.task("s"))).ok()
}

// TestAnotherSidecarMigrates: the running one notices and goes on.
func TestAnotherSidecarMigrates(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	old := legacyRow{"a", lead.task("s"), 1, schema.Retry, schema.Settled}
	l.exec(old.statements()...)
	lead.reserve(ask("fresh", old.task).after(1)).conflict(schema.ReasonAccounting)
	openLedger(t, l.root)
	lead.reserve(ask("fresh", old.task).after(1)).ok()
}

func TestOpeningAloneMigratesNothing(t *testing.T) {
	t.Parallel()
	root := legacyFile(t, []int64{1}, legacyRow{"a", 1, 1, schema.Retry, schema.Settled})
	for _, options := range []sqlite.Options{{ReadOnly: true}, {}} {
		s, err := sqlite.Open(context.Background(), root, options)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	if got := reference.Rows(t, reference.Open(t, root), "SELECT count(*) FROM governor_retry_charge"); got != "0\n" {
		t.Errorf("%s charges after opening, want none", got)
	}
}

// TestMigrationsAtOnce: several sidecars start on the same old file.
func TestMigrationsAtOnce(t *testing.T) {
	t.Parallel()
	root := legacyFile(t, []int64{2},
		legacyRow{"a", 1, 1, schema.Retry, schema.Settled}, legacyRow{"b", 1, 2, schema.New, schema.Reserved})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			s, err := sqlite.Open(context.Background(), root, sqlite.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if err := governor.Prepare(context.Background(), s); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	want := "'a' | 2 | 1 | 'legacy'\n'b' | 2 | 2 | 'legacy'\n"
	if got := reference.Rows(t, reference.Open(t, root), "SELECT * FROM governor_retry_charge ORDER BY rowid"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestNothingToMigrateNeedsNoLock: a sidecar starts beside one that writes.
func TestNothingToMigrateNeedsNoLock(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.lead().reserve(ask("op", l.lead().task("s"))).ok()
	s, err := sqlite.Open(t.Context(), l.root, sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l.exec("BEGIN IMMEDIATE")
	err = governor.Prepare(t.Context(), s)
	l.exec("ROLLBACK")
	if err != nil {
		t.Error(err)
	}
}

// TestReservationOfAMissingTask: the migration does not stumble over it.
func TestReservationOfAMissingTask(t *testing.T) {
	t.Parallel()
	l := openLedger(t, legacyFile(t, nil, legacyRow{"a", 7, 1, schema.Retry, schema.Settled}))
	if got := l.rows("SELECT * FROM governor_retry_charge"); got != "'a' | 0 | 1 | 'legacy'\n" {
		t.Errorf("got %s", got)
	}
}
