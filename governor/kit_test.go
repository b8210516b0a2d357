package governor_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/postgres/pgtest"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	status := m.Run()
	pgtest.Stop()
	if err := goleak.Find(); err != nil && status == 0 {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// ledger is a store of its own for one test, over the real engine.
type ledger struct {
	*sqlite.Store
	t    *testing.T
	root string
	raw  *sql.DB
}

// emptyStore is the file of a store without content. Making one takes longer
// than most tests, so they start with copies of it.
var emptyStore = sync.OnceValues(func() ([]byte, error) {
	root, err := os.MkdirTemp("", "empty-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(root)
	s, err := sqlite.Open(context.Background(), root, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(s.Path())
})

// newLedger opens an empty store.
func newLedger(t *testing.T) *ledger {
	t.Helper()
	empty, err := emptyStore()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, sqlite.FileName), empty, 0o600); err != nil {
		t.Fatal(err)
	}
	return openLedger(t, root)
}

// openLedger opens the store in a folder as a sidecar does, migration included.
func openLedger(t *testing.T, root string) *ledger {
	t.Helper()
	l := &ledger{t: t, root: root}
	t.Cleanup(func() { l.Close() })
	l.open()
	l.raw = reference.Open(t, root)
	return l
}

func (l *ledger) open() {
	l.t.Helper()
	s, err := sqlite.Open(context.Background(), l.root, sqlite.Options{})
	if err != nil {
		l.t.Fatal(err)
	}
	l.Store = s
	if err := governor.Prepare(context.Background(), s); err != nil {
		l.t.Fatal(err)
	}
}

// reopen plays the death of the sidecar and the start of another.
func (l *ledger) reopen() {
	l.t.Helper()
	l.Close()
	l.open()
}

// exec plays the other writer of the file.
func (l *ledger) exec(statements ...string) {
	l.t.Helper()
	reference.Exec(l.t, l.raw, statements...)
}

// rows is the result of a query on the file, as text.
func (l *ledger) rows(query string, args ...any) string {
	l.t.Helper()
	return reference.Rows(l.t, l.raw, query, args...)
}

// content is everything that the governor keeps, as text.
func (l *ledger) content() string {
	l.t.Helper()
	text := ""
	for _, table := range []string{"task", "task_event", "governor_run", "governor_reservation", "governor_retry_charge", "governor_hold", "governor_audit"} {
		text += table + "\n" + l.rows("SELECT * FROM "+table+" ORDER BY rowid")
	}
	return text
}

// version changes with every commit of anything.
func (l *ledger) version() string {
	l.t.Helper()
	return l.rows("PRAGMA data_version")
}

// caller speaks for somebody in a run.
type caller struct {
	*ledger
	run       string
	authority schema.Authority
}

// The run and the sessions that most tests speak of.
const run = "run-1"

func (l *ledger) lead() caller {
	return caller{l, run, schema.Authority{Role: schema.Lead, SessionID: "root"}}
}

func (l *ledger) worker(session string) caller {
	return caller{l, run, schema.Authority{Role: schema.Worker, SessionID: session}}
}

// in is the same caller in another run.
func (c caller) in(run string) caller {
	c.run = run
	return c
}

// outcome is what a call answered.
type outcome[R any] struct {
	ledger *ledger
	value  *R
	err    error
	// before is the version of the store before the call.
	before string
}

// call runs a method of the governor, or of tasks, in a transaction of its own.
func call[P, R any](l *ledger, method func(store.Tx, *P) (*R, error), p P) outcome[R] {
	l.t.Helper()
	o := outcome[R]{ledger: l, before: l.version()}
	o.err = l.Write(context.Background(), func(tx store.Tx) (err error) {
		o.value, err = method(tx, &p)
		return err
	})
	return o
}

// ok returns the result of a call that must succeed.
func (o outcome[R]) ok() *R {
	o.ledger.t.Helper()
	if o.err != nil {
		o.ledger.t.Fatalf("refused: %v", o.err)
	}
	return o.value
}

// unchanged returns the result of a call that must succeed and change nothing.
func (o outcome[R]) unchanged() *R {
	o.ledger.t.Helper()
	value := o.ok()
	o.checkUnchanged()
	return value
}

// refused returns the refusal of a call that must fail with the code, and have
// changed nothing.
func (o outcome[R]) refused(code schema.Code) *schema.Error {
	o.ledger.t.Helper()
	var refusal *schema.Error
	if !errors.As(o.err, &refusal) || refusal.Code != code {
		o.ledger.t.Fatalf("want %s, got %v", code, o.err)
	}
	o.checkUnchanged()
	return refusal
}

// conflict is refused by E_GOVERNOR_CONFLICT for the reason.
func (o outcome[R]) conflict(reason schema.Reason) *schema.Error {
	o.ledger.t.Helper()
	refusal := o.refused(schema.ErrGovernorConflict)
	if refusal.Details.Reason != reason {
		o.ledger.t.Fatalf("want the reason %s, got %v: %v", reason, refusal.Details.Reason, refusal)
	}
	return refusal
}

// fenced is refused by E_GOVERNOR_FENCE at the fence; expected is -1 where no
// generation was ever recorded.
func (o outcome[R]) fenced(fence schema.Fence, expected, current int64) {
	o.ledger.t.Helper()
	f := o.refused(schema.ErrGovernorFence).Details.Fence
	if f == nil {
		o.ledger.t.Fatal("the refusal names no fence")
	}
	got := int64(-1)
	if f.Expected != nil {
		got = *f.Expected
	}
	if f.Fence != fence || got != expected || f.Current != current {
		o.ledger.t.Fatalf("want the fence %s, expected %d, current %d; got %s, %d, %d", fence, expected, current, f.Fence, got, f.Current)
	}
}

// exhausted is refused by E_BUDGET_EXHAUSTED at the limit.
func (o outcome[R]) exhausted(limit schema.LimitName, maximum, used, requested int64) *schema.BudgetDetail {
	o.ledger.t.Helper()
	b := o.refused(schema.ErrBudgetExhausted).Details.Budget
	if b == nil {
		o.ledger.t.Fatal("the refusal names no budget")
	}
	if b.Limit != limit || b.Max != maximum || b.Used != used || b.Requested != requested {
		o.ledger.t.Fatalf("want %s: %d of %d used, %d requested; got %+v", limit, used, maximum, requested, *b)
	}
	return b
}

func (o outcome[R]) checkUnchanged() {
	o.ledger.t.Helper()
	if o.ledger.version() != o.before {
		o.ledger.t.Fatalf("the call changed the store, which now holds\n%s", o.ledger.content())
	}
}
