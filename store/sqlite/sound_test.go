package sqlite_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

var lead = schema.Authority{Role: schema.Lead, SessionID: "lead"}

// scribe makes calls of the governor on a store.
type scribe struct {
	t     *testing.T
	store *sqlite.Store
}

// done makes a call that must succeed.
func done[P, R any](s *scribe, call func(store.Tx, *P) (*R, error), params P) *R {
	s.t.Helper()
	var result *R
	err := s.store.Write(s.t.Context(), func(tx store.Tx) (err error) {
		result, err = call(tx, &params)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return result
}

// task opens a task that the session owns, or nobody if it is "".
func (s *scribe) task(run, session string) int64 {
	s.t.Helper()
	task := done(s, store.Open, schema.OpenParams{RunID: run, Authority: lead, Input: schema.OpenInput{Title: "a task"}})
	if session != "" {
		s.claim(run, task.TaskID, session)
	}
	return task.TaskID
}

func (s *scribe) claim(run string, task int64, session string) {
	s.t.Helper()
	done(s, store.Claim, schema.ClaimParams{RunID: run, Authority: lead, Input: schema.ClaimInput{TaskID: task, Owner: session, OwnerSession: session}})
}

// reject sends a task back, and gives it to the same session again.
func (s *scribe) reject(run string, task int64, session string) {
	s.t.Helper()
	done(s, store.Submit, schema.TaskNoteParams{RunID: run, Authority: lead, Input: schema.TaskNoteInput{TaskID: task}})
	done(s, store.Reject, schema.RejectParams{RunID: run, Authority: lead, Input: schema.RejectInput{TaskID: task, Reason: "again"}})
	s.claim(run, task, session)
}

func (s *scribe) reserve(run string, task, generation int64, key string, mode schema.Mode, kind schema.Kind, resources ...string) *schema.Reservation {
	s.t.Helper()
	return done(s, governor.Reserve, schema.ReserveParams{RunID: run, Authority: lead, Input: schema.ReserveInput{
		OperationKey: key, TaskID: task, Generation: generation, Mode: mode, Kind: kind, Resources: resources,
	}})
}

func (s *scribe) bind(r *schema.Reservation, session string) {
	s.t.Helper()
	done(s, governor.Bind, schema.BindParams{RunID: r.RunID, Authority: lead,
		Input: schema.BindInput{ReservationID: r.ReservationID, Generation: r.Generation, SessionID: session}})
}

func (s *scribe) settle(r *schema.Reservation, proof schema.Proof) {
	s.t.Helper()
	done(s, governor.Settle, schema.SettleParams{RunID: r.RunID, Authority: lead,
		Input: schema.SettleInput{ReservationID: r.ReservationID, Generation: r.Generation, Proof: proof}})
}

// soundLedger makes a store that keeps every promise and has something of
// everything. The reservations are known by their operation keys: a settled and
// a running one of task 1 (a, b), a reserved one of task 2 (c), unknown and
// settled ones of another run (d, e), and two that a migration has charged (f, g).
func soundLedger(t *testing.T) (root string) {
	t.Helper()
	root = filepath.Join(t.TempDir(), "root")
	sound.Do(func() {
		content, err := os.ReadFile(filepath.Join(writeLedger(t), sqlite.FileName))
		if err != nil {
			t.Fatal(err)
		}
		sound.file = content
	})
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, sqlite.FileName), sound.file, 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

// sound is the file of a sound ledger, written once and copied by each test.
var sound struct {
	sync.Once
	file []byte
}

func writeLedger(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	s := &scribe{t, open(t, root, sqlite.Options{})}
	neverStarted := schema.Proof{Kind: schema.NeverStarted}
	one := s.task("run", "s")
	s.settle(s.reserve("run", one, 0, "a", schema.Write, schema.New, "x"), neverStarted)
	s.reject("run", one, "s")
	s.bind(s.reserve("run", one, 1, "b", schema.Write, schema.Retry, "y\x00z", "x", "\uff5e", "\U0001f600"), "s")
	s.reserve("run", s.task("run", ""), 0, "c", schema.Read, schema.New, "r")

	two := s.reserve("other", s.task("other", "w"), 0, "d", schema.Read, schema.Reuse, "r", "q\"\\\n")
	s.bind(two, "w")
	done(s, governor.MarkUnknown, schema.MarkUnknownParams{RunID: "other", Authority: lead,
		Input: schema.MarkUnknownInput{ReservationID: two.ReservationID, Generation: 1, Reason: "lost sight of it"}})
	three := s.reserve("other", s.task("other", "w"), 0, "e", schema.Write, schema.Reuse)
	s.bind(three, "w")
	s.settle(three, schema.Proof{Kind: schema.Terminal, Outcome: schema.Failed, Quiescent: true, Evidence: "<log> & \u2028"})
	for n := range int64(2) {
		limit := 7 + n
		done(s, governor.ExtendBudget, schema.ExtendBudgetParams{RunID: "other", Authority: lead,
			Input: schema.ExtendBudgetInput{Reason: "more", MaxActive: &limit}})
	}

	old := s.task("other", "w")
	s.settle(s.reserve("other", old, 0, "f", schema.Read, schema.Retry), neverStarted)
	s.settle(s.reserve("other", old, 1, "g", schema.Read, schema.Reuse), neverStarted)
	s.reject("other", old, "w")
	s.reject("other", old, "w")
	execute(t, root, "DELETE FROM governor_retry_charge WHERE reservation_id IN (SELECT reservation_id FROM governor_reservation WHERE operation_key IN ('f', 'g'))")
	if err := governor.Prepare(t.Context(), s.store); err != nil {
		t.Fatal(err)
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	return root
}

// execute runs statements on the file as another program would.
func execute(t *testing.T, root string, statements ...string) {
	t.Helper()
	db := reference.Open(t, root)
	reference.Exec(t, db, statements...)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
