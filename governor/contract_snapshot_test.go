package governor_test

import (
	"cmp"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/governor"
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/go-json-experiment/json/jsontext"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares a value with testdata/<name>.json. Reservation ids and times
// differ from run to run, so they stand there as $r1, $r2, ... and $time.
func golden(t *testing.T, name string, value any) {
	t.Helper()
	encoded, err := schema.Encode(value)
	if err != nil {
		t.Fatal(err)
	}
	got := jsontext.Value(anonymous(string(encoded)))
	if err := got.Indent(); err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs (run with -update to accept):\n%s", file, got)
	}
}

var (
	ids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	times = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
)

func anonymous(text string) string {
	var seen []string
	text = ids.ReplaceAllStringFunc(text, func(id string) string {
		if !slices.Contains(seen, id) {
			seen = append(seen, id)
		}
		return "$r" + string(rune('1'+slices.Index(seen, id)))
	})
	return times.ReplaceAllString(text, "$$time")
}

// TestSnapshot holds one of everything: its shape and its order are the golden file's.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	retried, plain, reworked := lead.task("s-1"), lead.task("s-2"), lead.task("s-3")
	settled := lead.reserve(ask("settled", retried).as(schema.Retry).writing("repo")).ok()
	lead.bind(settled, "s-1").ok()
	lead.settle(settled, succeeded).ok()
	lead.reserve(ask("again", retried).after(1).as(schema.Retry).reading("repo", "\U0001f600", "\uffee")).ok()
	unknown := lead.reserve(ask("unknown", plain).as(schema.New)).ok()
	lead.markUnknown(unknown).ok()
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "more", MaxActive: new(int64(7))}).ok()
	lead.rework(reworked, "s-3")
	running := lead.reserve(ask("running", reworked).writing("branch")).ok()
	l.worker("s-3").bind(running, "s-3").ok()
	other := lead.in("run-2")
	other.reserve(ask("elsewhere", other.task("s-4")).reading("repo")).ok()
	golden(t, "snapshot", lead.snapshot())
}

func TestSnapshotOfAnUnknownRun(t *testing.T) {
	t.Parallel()
	golden(t, "snapshot-empty", newLedger(t).lead().snapshot())
}

// TestSnapshotOrder: reservations and charges by insertion, holds by reservation
// id and then by the bytes of the key, the audit by id.
func TestSnapshotOrder(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	keys := []string{"\U0001f600", "\uffee", "z", "a", "", "é"}
	var inserted []string
	for _, key := range []string{"1", "2", "3"} {
		r := lead.reserve(ask(key, lead.task("s")).reading(append([]string{"shared " + key}, keys...)...)).ok()
		inserted = append(inserted, r.ReservationID)
	}
	// The other writer's ids are random: give the first row the last id.
	l.exec("UPDATE governor_reservation SET reservation_id = 'ffffffff-0000-4000-8000-000000000000' WHERE rowid = 1",
		"UPDATE governor_retry_charge SET reservation_id = 'ffffffff-0000-4000-8000-000000000000' WHERE rowid = 1",
		"UPDATE governor_hold SET reservation_id = 'ffffffff-0000-4000-8000-000000000000' WHERE reservation_id = '"+inserted[0]+"'")
	inserted[0] = "ffffffff-0000-4000-8000-000000000000"

	s := lead.snapshot()
	for i, want := range inserted {
		if s.Reservations[i].ReservationID != want || s.RetryCharges[i].ReservationID != want {
			t.Errorf("row %d: %s, %s, want %s", i, s.Reservations[i].ReservationID, s.RetryCharges[i].ReservationID, want)
		}
	}
	sorted := slices.IsSortedFunc(s.Holds, func(a, b schema.Hold) int {
		return cmp.Or(strings.Compare(a.ReservationID, b.ReservationID), strings.Compare(a.ResourceKey, b.ResourceKey))
	})
	if !sorted || len(s.Holds) != 21 {
		t.Errorf("%d holds in the order %v", len(s.Holds), s.Holds)
	}
	if !slices.IsSortedFunc(s.Audit, func(a, b schema.AuditEntry) int { return cmp.Compare(a.ID, b.ID) }) {
		t.Errorf("audit in the order %v", s.Audit)
	}
}

// TestSnapshotTimes: UTC, ISO 8601, milliseconds, Z.
func TestSnapshotTimes(t *testing.T) {
	t.Parallel()
	lead := newLedger(t).lead()
	lead.reserve(ask("op", lead.task("s"))).ok()
	at := lead.snapshot().Audit[0].CreatedAt
	if times.FindString(at) != at {
		t.Errorf("recorded at %q", at)
	}
}

// TestReservationIDs: UUIDs of version 7 in lower case, ever later ones ever larger.
func TestReservationIDs(t *testing.T) {
	t.Parallel()
	lead := newLedger(t).lead()
	last := ""
	for _, key := range []string{"1", "2", "3", "4", "5", "6"} {
		r := lead.reserve(ask(key, lead.task("s"))).ok()
		if ids.FindString(r.ReservationID) != r.ReservationID || r.ReservationID <= last {
			t.Errorf("%q after %q", r.ReservationID, last)
		}
		last = r.ReservationID
	}
}

func TestNativeAdapterAlwaysRefuses(t *testing.T) {
	t.Parallel()
	var refusal *schema.Error
	if err := governor.NativeAdapter(); !errors.As(err, &refusal) || refusal.Code != schema.ErrSchedulerCapability {
		t.Fatalf("got %v", err)
	}
	golden(t, "native-adapter", refusal.Data())
}
