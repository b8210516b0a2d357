package governor_test

import (
	"slices"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
)

// GOVERNOR.md, "Scope and guarantees": resources and holds.

func TestReadsShareAndWritesExclude(t *testing.T) {
	t.Parallel()
	tests := []struct {
		held, asked schema.Mode
		busy        bool
	}{
		{schema.Read, schema.Read, false},
		{schema.Read, schema.Write, true},
		{schema.Write, schema.Read, true},
		{schema.Write, schema.Write, true},
	}
	for _, test := range tests {
		for _, other := range []string{run, "run-2"} {
			t.Run(string(test.asked)+" against "+string(test.held)+" of "+other, func(t *testing.T) {
				t.Parallel()
				l := newLedger(t)
				lead, holder := l.lead(), l.lead().in(other)
				held := ask("holder", holder.task("s")).reading("repo")
				held.Mode = test.held
				holder.reserve(held).ok()
				asked := ask("asker", lead.task("s")).reading("repo")
				asked.Mode = test.asked
				if o := lead.reserve(asked); test.busy {
					o.refused(schema.ErrResourceBusy)
				} else {
					o.ok()
				}
			})
		}
	}
}

// TestKeysAreExact: the core discovers no aliases.
func TestKeysAreExact(t *testing.T) {
	t.Parallel()
	keys := []string{
		"repo", "Repo", " repo", "repo ", "repo/", "./repo", "repo\n", "re\x00po", "re\x00po2",
		"caf\u00e9", "cafe\u0301", "\ufb01le", "file", "\u2028", "\U0001f600", "a<b>&c", `"q"\`, "\u0085", "%72epo",
	}
	l := newLedger(t)
	lead := l.lead()
	lead.extendBudget(schema.ExtendBudgetInput{Reason: "many", MaxActive: new(int64(100)), MaxWriters: new(int64(100))}).ok()
	for _, key := range keys {
		r := lead.reserve(ask("op "+key, lead.task("s")).writing(key)).ok()
		if !slices.Equal(r.Resources, []string{key}) {
			t.Errorf("%q came back as %q", key, r.Resources)
		}
	}
	for _, key := range keys {
		refused := lead.reserve(ask("again "+key, lead.task("s")).reading(key)).refused(schema.ErrResourceBusy)
		if got := refused.Details.Holders[0].ResourceKey; got != key {
			t.Errorf("%q is held as %q", key, got)
		}
	}
}

func TestModeAppliesToEveryResource(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	lead.reserve(ask("writer", lead.task("s")).writing("a", "b", "c")).ok()
	for _, key := range []string{"a", "b", "c"} {
		lead.reserve(ask("reader", lead.task("s")).reading(key)).refused(schema.ErrResourceBusy)
	}
	for _, hold := range lead.snapshot().Holds {
		if hold.Mode != schema.Write {
			t.Errorf("%s is held for %s", hold.ResourceKey, hold.Mode)
		}
	}
}

func TestOrderAndDuplicatesOfResourcesDoNotMatter(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	task := lead.task("s")
	r := lead.reserve(ask("op", task).writing("b", "a", "b", "c", "a")).ok()
	if want := []string{"a", "b", "c"}; !slices.Equal(r.Resources, want) {
		t.Errorf("got %q, want %q", r.Resources, want)
	}
	again := lead.reserve(ask("op", task).writing("c", "b", "a")).unchanged()
	if again.ReservationID != r.ReservationID {
		t.Error("another order made another reservation")
	}
}

// TestBusyNamesEveryHolder: one busy key of many refuses the whole admission,
// and the refusal says who holds, where and since when.
func TestBusyNamesEveryHolder(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead, other := l.lead(), l.lead().in("run-2")
	reader := lead.reserve(ask("reader", lead.task("s-1")).reading("shared")).ok()
	lead.bind(reader, "s-1").ok()
	writer := other.reserve(ask("writer", other.task("s-2")).writing("mine")).ok()
	other.markUnknown(writer).ok()

	refused := lead.reserve(ask("op", lead.task("s-3")).writing("free", "mine", "shared")).refused(schema.ErrResourceBusy)
	holders := refused.Details.Holders
	if len(holders) != 2 {
		t.Fatalf("%d holders, want 2: %+v", len(holders), holders)
	}
	checkHolder(t, holders[0], "mine", schema.Write, writer, schema.Unknown, "s-2", "")
	checkHolder(t, holders[1], "shared", schema.Read, reader, schema.Running, "s-1", "s-1")
	lead.reserve(ask("op", lead.task("s-3")).writing("free")).ok()
}

func checkHolder(t *testing.T, h schema.Holder, key string, mode schema.Mode, r *schema.Reservation, state schema.State, owner, session string) {
	t.Helper()
	e := h.Execution
	if e == nil {
		t.Fatalf("the holder of %s is not described", key)
	}
	if h.ResourceKey != key || h.Mode != mode || h.State != state || e.State != state || e.ReservationID != r.ReservationID ||
		e.RunID != r.RunID || e.TaskID != r.TaskID || e.Generation != r.Generation || e.Mode != mode || e.Kind != r.Kind {
		t.Errorf("the holder of %s is described as %+v, %+v", key, h, *e)
	}
	if text(e.OwnerSession) != owner || text(e.SessionID) != session || e.Since == nil {
		t.Errorf("the holder of %s has owner %q, session %q, since %v", key, text(e.OwnerSession), text(e.SessionID), e.Since)
	}
}

// text is the string, or "" for null.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestSettlementReleasesOnlyItsOwnHolds(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	first := lead.reserve(ask("first", lead.task("s")).reading("repo")).ok()
	second := lead.reserve(ask("second", lead.task("s")).reading("repo")).ok()
	lead.settle(first, neverStarted).ok()
	lead.reserve(ask("writer", lead.task("s")).writing("repo")).refused(schema.ErrResourceBusy)
	lead.settle(second, neverStarted).ok()
	lead.reserve(ask("writer", lead.task("s")).writing("repo")).ok()
}

// TestTaskStatusReleasesNothing: cancelling, submitting or accepting a task settles no execution.
func TestTaskStatusReleasesNothing(t *testing.T) {
	t.Parallel()
	ends := map[string]func(caller, int64){"submitted": caller.submit, "accepted": caller.accept, "cancelled": caller.cancel, "rejected": caller.reject}
	for status, end := range ends {
		t.Run(status, func(t *testing.T) {
			t.Parallel()
			l := newLedger(t)
			lead := l.lead()
			task := lead.task("s")
			r := lead.reserve(ask("op", task).writing("repo")).ok()
			lead.bind(r, "s").ok()
			end(lead, task)
			if s := lead.snapshot(); s.ActiveTotal != 1 || len(s.Holds) != 1 {
				t.Errorf("%d active, %d holds", s.ActiveTotal, len(s.Holds))
			}
			lead.settle(r, succeeded).ok()
		})
	}
}

func TestReopeningKeepsHoldsAndStates(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	lead := l.lead()
	running := lead.reserve(ask("running", lead.task("s")).writing("repo")).ok()
	lead.bind(running, "s").ok()
	lead.markUnknown(lead.reserve(ask("unknown", lead.task("s")).reading("doc")).ok()).ok()
	before := l.content()
	l.reopen()
	if after := l.content(); after != before {
		t.Fatalf("reopening changed\n%s\nto\n%s", before, after)
	}
	again := lead.reserve(ask("running", running.TaskID).writing("repo")).unchanged()
	if again.State != schema.Running {
		t.Errorf("running work is %s after reopening", again.State)
	}
}
