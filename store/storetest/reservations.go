package storetest

import (
	"fmt"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

var reservations = []test{
	{"limits default and are set by run", limits},
	{"a reservation is kept whole", reservationIsKeptWhole},
	{"a missing reservation is nil", missingReservation},
	{"saving a reservation changes what may change", savingAReservation},
	{"settling releases holds", settlingReleases},
	{"reads share and writes exclude", conflicts},
	{"executions are what is not settled", executions},
}

func limits(t *testing.T, s store.Store) {
	of := func(run string) schema.Limits {
		return read(t, s, func(tx store.Tx) (schema.Limits, error) { return tx.Limits(run) })
	}
	equal(t, "unknown run", of("run"), schema.DefaultLimits())
	first := schema.Limits{MaxActive: 1, MaxWriters: 2, MaxCreated: 3, MaxRetries: schema.MaxInteger}
	write(t, s, func(tx store.Tx) error { return tx.SetLimits("run", first) })
	equal(t, "set", of("run"), first)
	second := schema.Limits{MaxActive: 5, MaxWriters: 6, MaxCreated: 7, MaxRetries: 8}
	write(t, s, func(tx store.Tx) error { return tx.SetLimits("run", second) })
	equal(t, "set again", of("run"), second)
	equal(t, "another run", of("run "), schema.DefaultLimits())
}

func stored(t *testing.T, s store.Store, id string) *store.Reservation {
	t.Helper()
	return read(t, s, func(tx store.Tx) (*store.Reservation, error) { return tx.Reservation(id) })
}

func reservationIsKeptWhole(t *testing.T, s store.Store) {
	r := reservation("r1", "run", 1, 1, schema.Write, "a", "b")
	r.OwnerSession = new("owner")
	r.Payload = `{"task_id":1,"generation":0,"mode":"write","kind":"new","resources":["a","b"]}`
	unowned := reservation("r2", "run", 2, 1, schema.Read)
	write(t, s, func(tx store.Tx) error {
		if err := admit(tx, r, 4, 2); err != nil {
			return err
		}
		return admit(tx, unowned, 0, 0)
	})
	equal(t, "owned", stored(t, s, "r1"), r)
	equal(t, "unowned", stored(t, s, "r2"), unowned)
	if r.Row <= 0 || unowned.Row <= r.Row {
		t.Errorf("rows %d, %d", r.Row, unowned.Row)
	}
	byKey := read(t, s, func(tx store.Tx) (*store.Reservation, error) { return tx.ReservationByKey("run", "op r1") })
	equal(t, "by key", byKey, r)
	charge := read(t, s, func(tx store.Tx) (*schema.RetryCharge, error) { return tx.RetryCharge("r1") })
	equal(t, "charge", charge, &schema.RetryCharge{ReservationID: "r1", ReworkGeneration: 4, RetryCharge: 2, Source: schema.FromAdmission})
	holds := read(t, s, func(tx store.Tx) ([]schema.Hold, error) { return tx.Holds("run") })
	equal(t, "holds", holds, []schema.Hold{{ReservationID: "r1", ResourceKey: "a", Mode: schema.Write}, {ReservationID: "r1", ResourceKey: "b", Mode: schema.Write}})
	pending := read(t, s, func(tx store.Tx) ([]store.Unaccounted, error) { return tx.Unaccounted() })
	equal(t, "unaccounted", len(pending), 0)
}

func missingReservation(t *testing.T, s store.Store) {
	write(t, s, func(tx store.Tx) error { return admit(tx, reservation("r1", "run", 1, 1, schema.Read), 0, 0) })
	err := s.Read(t.Context(), func(tx store.Tx) error {
		r, err := tx.Reservation("r2")
		if r != nil || err != nil {
			t.Errorf("reservation: %v, %v", r, err)
		}
		for _, at := range [][2]string{{"run", "op r2"}, {"run ", "op r1"}, {"other", "op r1"}} {
			if r, err = tx.ReservationByKey(at[0], at[1]); r != nil || err != nil {
				t.Errorf("%q: %v, %v", at, r, err)
			}
		}
		charge, err := tx.RetryCharge("r2")
		if charge != nil || err != nil {
			t.Errorf("charge: %v, %v", charge, err)
		}
		active, err := tx.ActiveAdmission(2)
		if active != nil || err != nil {
			t.Errorf("active: %v, %v", active, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func savingAReservation(t *testing.T, s store.Store) {
	r := reservation("r1", "run", 1, 1, schema.Write, "a")
	write(t, s, func(tx store.Tx) error { return admit(tx, r, 0, 0) })
	want := *r
	for _, state := range []schema.State{schema.Running, schema.Unknown, schema.Settled} {
		want.State, want.SessionID, want.OwnerSession = state, new("s "+string(state)), new("o "+string(state))
		want.Settlement = new(`{"kind":"never_started"}`)
		write(t, s, func(tx store.Tx) error {
			row, err := tx.Reservation("r1")
			if err != nil {
				return err
			}
			row.State, row.SessionID, row.OwnerSession, row.Settlement = want.State, want.SessionID, want.OwnerSession, want.Settlement
			row.Payload, row.OperationKey, row.RunID, row.Kind, row.Generation = `{"resources":[]}`, "other", "other", schema.Retry, 9
			return tx.SaveReservation(row)
		})
		want.Stored = state
		equal(t, string(state), stored(t, s, "r1"), &want)
	}
}

func settlingReleases(t *testing.T, s store.Store) {
	write(t, s, func(tx store.Tx) error {
		if err := admit(tx, reservation("r1", "run", 1, 1, schema.Write, "a", "b"), 0, 0); err != nil {
			return err
		}
		return admit(tx, reservation("r2", "run", 2, 1, schema.Write, "c"), 0, 0)
	})
	write(t, s, func(tx store.Tx) error { return move(tx, "r1", schema.Settled) })
	holds := read(t, s, func(tx store.Tx) ([]schema.Hold, error) { return tx.Holds("run") })
	equal(t, "holds", holds, []schema.Hold{{ReservationID: "r2", ResourceKey: "c", Mode: schema.Write}})
	in := read(t, s, func(tx store.Tx) ([]store.Conflict, error) { return tx.Conflicts("a", schema.Write) })
	equal(t, "conflicts", len(in), 0)
	write(t, s, func(tx store.Tx) error { return admit(tx, reservation("r3", "run", 1, 2, schema.Write, "a"), 0, 0) })
}

func conflicts(t *testing.T, s store.Store) {
	write(t, s, func(tx store.Tx) error {
		for i, r := range []*store.Reservation{
			reservation("z", "run-1", 1, 1, schema.Read, "shared", "a"),
			reservation("a", "run-2", 2, 1, schema.Read, "shared"),
			reservation("w", "run-1", 3, 1, schema.Write, "owned"),
		} {
			if err := admit(tx, r, int64(i), 0); err != nil {
				return err
			}
			entry := &schema.AuditEntry{RunID: r.RunID, ReservationID: &r.ReservationID, Action: "reserve", Role: schema.Lead, SessionID: "l", Details: []byte("{}")}
			if err := tx.AppendAudit(entry); err != nil {
				return err
			}
		}
		return nil
	})
	tests := []struct {
		key  string
		mode schema.Mode
		want []string
	}{
		{"shared", schema.Read, nil},
		{"shared", schema.Write, []string{"z", "a"}}, // in the order of admission
		{"owned", schema.Read, []string{"w"}},
		{"owned", schema.Write, []string{"w"}},
		{"free", schema.Write, nil},
		{"Shared", schema.Write, nil},
	}
	for _, test := range tests {
		var got []string
		for _, c := range read(t, s, func(tx store.Tx) ([]store.Conflict, error) { return tx.Conflicts(test.key, test.mode) }) {
			got = append(got, c.ReservationID)
			if c.ResourceKey != test.key || c.Execution.ReservationID != c.ReservationID || c.Execution.Since == nil || c.Execution.Mode != c.Mode {
				t.Errorf("%s: %s", test.key, show(c))
			}
		}
		equal(t, fmt.Sprintf("%s for %s", test.key, test.mode), got, test.want)
	}
}

func executions(t *testing.T, s store.Store) {
	var since string
	write(t, s, func(tx store.Tx) error {
		for i, state := range []schema.State{schema.Reserved, schema.Running, schema.Unknown, schema.Settled} {
			r := reservation(string(state), "run", int64(i+1), 1, schema.Read)
			r.OwnerSession = new("owner")
			if err := admit(tx, r, 0, 0); err != nil {
				return err
			}
			if err := move(tx, r.ReservationID, state); err != nil {
				return err
			}
		}
		entry := &schema.AuditEntry{RunID: "run", ReservationID: new("running"), Action: "reserve", Role: schema.Lead, SessionID: "l", Details: []byte("{}")}
		err := tx.AppendAudit(entry)
		since = entry.CreatedAt
		return err
	})
	list := read(t, s, func(tx store.Tx) ([]schema.Execution, error) { return tx.Executions("run") })
	want := []schema.Execution{}
	for i, state := range []schema.State{schema.Reserved, schema.Running, schema.Unknown} {
		want = append(want, schema.Execution{
			ReservationID: string(state), RunID: "run", TaskID: int64(i + 1), Generation: 1, State: state,
			Mode: schema.Read, Kind: schema.New, OwnerSession: new("owner"),
		})
	}
	want[1].Since = &since
	equal(t, "executions", list, want)
	for i := range want {
		active := read(t, s, func(tx store.Tx) (*schema.Execution, error) { return tx.ActiveAdmission(want[i].TaskID) })
		equal(t, "active admission", active, &want[i])
	}
	settled := read(t, s, func(tx store.Tx) (*schema.Execution, error) { return tx.ActiveAdmission(4) })
	equal(t, "settled", settled, (*schema.Execution)(nil))
	elsewhere := read(t, s, func(tx store.Tx) ([]schema.Execution, error) { return tx.Executions("run-2") })
	equal(t, "another run", len(elsewhere), 0)
}
