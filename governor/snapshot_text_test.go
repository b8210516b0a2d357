package governor_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
)

// retain gives the run a history of n settled admissions, each of a task of its own.
func (l *ledger) retain(run string, n int) {
	l.t.Helper()
	const numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
	numbered := func(insert string) string {
		return strings.Replace(insert, "SELECT", fmt.Sprintf(numbers, n)+"SELECT", 1)
	}
	l.exec("BEGIN",
		numbered("INSERT INTO governor_reservation SELECT '"+run+" r' || i, '"+run+`', i + coalesce((SELECT max(task_id) FROM governor_reservation), 0), 'k' || i,
			'{"task_id":1,"generation":0,"mode":"read","kind":"new","resources":["a"]}', 1, 'read', 'new', 'settled', NULL, NULL, '{"kind":"never_started"}' FROM n`),
		numbered("INSERT INTO governor_retry_charge SELECT '"+run+" r' || i, 0, i % 2, 'admission' FROM n"),
		numbered("INSERT INTO governor_audit (run_id, reservation_id, action, role, session_id, details, created_at) SELECT '"+run+"', '"+run+` r' || i, 'settle', 'lead', 'root', '{"i":' || i || '}', 't' || i FROM n`),
		"COMMIT")
}

// TestLongSnapshot: however long the history is, the snapshot has all of it, in order.
func TestLongSnapshot(t *testing.T) {
	t.Parallel()
	for _, n := range []int{999, 1000, 1001, 2000, 2345} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			l.retain("run-2", 10)
			l.retain(run, n)
			l.retain("run-3", 10)
			s := l.lead().snapshot()
			if len(s.Reservations) != n || len(s.RetryCharges) != n || len(s.Audit) != n || len(s.Retries) != (n+1)/2 || s.CreatedTotal != int64(n) {
				t.Fatalf("%d reservations, %d charges, %d audit entries, %d retries, %d created",
					len(s.Reservations), len(s.RetryCharges), len(s.Audit), len(s.Retries), s.CreatedTotal)
			}
			for i := range n {
				want := fmt.Sprint(run, " r", i+1)
				if s.Reservations[i].ReservationID != want || s.RetryCharges[i].ReservationID != want || text(s.Audit[i].ReservationID) != want {
					t.Fatalf("row %d is %s, %s, %s, want %s", i, s.Reservations[i].ReservationID, s.RetryCharges[i].ReservationID, text(s.Audit[i].ReservationID), want)
				}
			}
			sameText(t, l.lead())
		})
	}
}

// sameText checks that the snapshot's own text is the encoding of the snapshot.
func sameText(t *testing.T, c caller) {
	t.Helper()
	want, err := schema.Encode(c.snapshot())
	if err != nil {
		t.Fatal(err)
	}
	pieces := call(c.ledger, governor.SnapshotText, schema.RunParams{RunID: c.run}).unchanged()
	if got := string(bytes.Join(*pieces, nil)); got != string(want) {
		t.Errorf("the text is\n%s\nthe snapshot\n%s", got, want)
	}
}

func TestSnapshotTextIsTheSnapshot(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	odd := l.lead().in(" r\x00\u2028<&>\"\\\U0001f600 ")
	sameText(t, odd)
	for _, key := range []string{"\x01", "\U0001f600 \uffee", "<&>"} {
		r := odd.reserve(ask(key, odd.task("s \x7f")).as(schema.Retry).reading(key, "shared")).ok()
		sameText(t, odd)
		odd.bind(r, "s \x7f").ok()
		odd.markUnknownFor(r, key+"\n").ok()
		sameText(t, odd)
	}
	odd.extendBudget(schema.ExtendBudgetInput{Reason: "\u2028", MaxActive: new(int64(schema.MaxInteger))}).ok()
	sameText(t, odd)
}

func TestSnapshotTextFailsClosedToo(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	l.retain(run, 3)
	l.exec("DELETE FROM governor_retry_charge WHERE rowid = 2")
	l.Close()
	unprepared, err := sqlite.Open(context.Background(), l.root, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.Store = unprepared
	call(l, governor.SnapshotText, schema.RunParams{RunID: run}).conflict(schema.ReasonAccounting)
}
