package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

var histories = []test{
	{"reservations and charges are listed in the order of admission", admissionOrder},
	{"holds are ordered by reservation and the bytes of the key", holdOrder},
	{"the audit is appended with id and time", auditIsAppended},
	{"the audit is paged by its id", auditPages},
	{"runs are listed once, in the order of their bytes", runs},
	{"the version changes with every change of the run", versions},
}

func admissionOrder(t *testing.T, s store.Store) {
	ids := []string{"c", "a", "d", "b"}
	admitted := map[string]*store.Reservation{}
	write(t, s, func(tx store.Tx) error {
		for i, id := range ids {
			r := reservation(id, "run", int64(i+1), 1, schema.Read)
			if err := admit(tx, r, int64(i), int64(i*10)); err != nil {
				return err
			}
			admitted[id] = r
			if err := admit(tx, reservation("x"+id, "other", int64(i+10), 1, schema.Read), 0, 0); err != nil {
				return err
			}
		}
		return nil
	})
	rows := map[string]int64{}
	for id, r := range admitted {
		rows[id] = r.Row
	}
	for _, test := range []struct {
		page store.Page
		want []string
	}{
		{store.Page{}, ids},
		{store.Page{Limit: 3}, ids[:3]},
		{store.Page{After: rows["c"], Limit: 2}, ids[1:3]},
		{store.Page{After: rows["d"]}, ids[3:]},
		{store.Page{After: rows["b"]}, nil},
	} {
		var got []string
		for _, r := range read(t, s, func(tx store.Tx) ([]store.Reservation, error) { return tx.Reservations("run", test.page) }) {
			got = append(got, r.ReservationID)
		}
		equal(t, fmt.Sprintf("reservations %+v", test.page), got, test.want)

		got = nil
		for _, c := range read(t, s, func(tx store.Tx) ([]store.Charged, error) { return tx.RetryCharges("run", test.page) }) {
			got = append(got, c.ReservationID)
			if c.Row != rows[c.ReservationID] || c.RetryCharge.RetryCharge != (c.TaskID-1)*10 || c.ReworkGeneration != c.TaskID-1 {
				t.Errorf("charge %s", show(c))
			}
		}
		equal(t, fmt.Sprintf("charges %+v", test.page), got, test.want)
	}
}

func holdOrder(t *testing.T, s store.Store) {
	write(t, s, func(tx store.Tx) error {
		if err := admit(tx, reservation("b", "run", 1, 1, schema.Read, "\U0001f600", "\uffee", "z", "Z", "é"), 0, 0); err != nil {
			return err
		}
		return admit(tx, reservation("a", "run", 2, 1, schema.Write, "z"), 0, 0)
	})
	holds := read(t, s, func(tx store.Tx) ([]schema.Hold, error) { return tx.Holds("run") })
	want := []schema.Hold{
		{ReservationID: "a", ResourceKey: "z", Mode: schema.Write},
		{ReservationID: "b", ResourceKey: "Z", Mode: schema.Read},
		{ReservationID: "b", ResourceKey: "z", Mode: schema.Read},
		{ReservationID: "b", ResourceKey: "é", Mode: schema.Read},
		{ReservationID: "b", ResourceKey: "\uffee", Mode: schema.Read},
		{ReservationID: "b", ResourceKey: "\U0001f600", Mode: schema.Read},
	}
	equal(t, "holds", holds, want)
}

func auditIsAppended(t *testing.T, s store.Store) {
	from := time.Now().Add(-time.Millisecond)
	details := `{"b":"\u0001<&>` + "\u2028" + `","a":1.0}`
	entries := []schema.AuditEntry{
		{RunID: "run", ReservationID: new("r1"), Action: "reserve", Role: schema.Worker, SessionID: " s ", Details: []byte(details)},
		{RunID: "run", Action: "extendBudget", Role: schema.Lead, SessionID: "l", Details: []byte("{}")},
	}
	write(t, s, func(tx store.Tx) error {
		for i := range entries {
			if err := tx.AppendAudit(&entries[i]); err != nil {
				return err
			}
		}
		return nil
	})
	got := read(t, s, func(tx store.Tx) ([]schema.AuditEntry, error) { return tx.Audit("run", store.Page{}) })
	equal(t, "audit", got, entries)
	for _, e := range got {
		at, err := time.Parse("2006-01-02T15:04:05.000Z", e.CreatedAt)
		if err != nil || at.Before(from) || at.After(time.Now()) {
			t.Errorf("recorded at %q", e.CreatedAt)
		}
	}
	if entries[0].ID <= 0 || entries[1].ID <= entries[0].ID {
		t.Errorf("ids %d, %d", entries[0].ID, entries[1].ID)
	}
}

func auditPages(t *testing.T, s store.Store) {
	var entries []schema.AuditEntry
	all := make([]schema.AuditEntry, 8)
	write(t, s, func(tx store.Tx) error {
		for i := range all {
			all[i] = schema.AuditEntry{RunID: fmt.Sprint("run-", i%2), Action: "bind", Role: schema.Lead, SessionID: fmt.Sprint(i), Details: []byte("{}")}
			if err := tx.AppendAudit(&all[i]); err != nil {
				return err
			}
		}
		return nil
	})
	for i := 0; i < len(all); i += 2 {
		entries = append(entries, all[i])
	}
	page := func(p store.Page) []schema.AuditEntry {
		return read(t, s, func(tx store.Tx) ([]schema.AuditEntry, error) { return tx.Audit("run-0", p) })
	}
	equal(t, "the first", page(store.Page{Limit: 3}), entries[:3])
	equal(t, "the rest", page(store.Page{After: entries[2].ID, Limit: 3}), entries[3:])
	equal(t, "after the end", len(page(store.Page{After: entries[3].ID})), 0)
}

func runs(t *testing.T, s store.Store) {
	list := func(after string, limit int64) []string {
		return read(t, s, func(tx store.Tx) ([]string, error) { return tx.Runs(after, limit) })
	}
	equal(t, "an empty store", len(list("", 10)), 0)
	write(t, s, func(tx store.Tx) error {
		for i, run := range []string{"b", "\U0001f600", "a", "a", "\uffee", " "} {
			if _, err := addTask(tx, run, "t"); err != nil {
				return err
			}
			if err := admit(tx, reservation(fmt.Sprint(i), run, int64(i+1), 1, schema.Read), 0, 0); err != nil {
				return err
			}
		}
		if err := tx.SetLimits("limited", schema.DefaultLimits()); err != nil {
			return err
		}
		return admit(tx, reservation("only", "admitted", 99, 1, schema.Read), 0, 0)
	})
	all := []string{" ", "a", "admitted", "b", "limited", "\uffee", "\U0001f600"}
	equal(t, "all", list("", 100), all)
	equal(t, "the first", list("", 2), all[:2])
	equal(t, "the next", list("a", 3), all[2:5])
	equal(t, "between", list("aa", 1), all[2:3])
	equal(t, "the end", len(list("\U0001f600", 10)), 0)
}

func versions(t *testing.T, s store.Store) {
	var task int64
	of := func(run string) store.Version {
		return read(t, s, func(tx store.Tx) (store.Version, error) { return tx.Version(run) })
	}
	for _, step := range []func(store.Tx) error{
		func(tx store.Tx) (err error) { task, err = addTask(tx, "run", "t"); return err },
		func(tx store.Tx) error {
			row, err := tx.Task(task)
			if err != nil {
				return err
			}
			row.UpdatedAt = "9999-01-01T00:00:00.000Z"
			return tx.SaveTask(row)
		},
		func(tx store.Tx) error {
			return tx.AppendTaskEvent("run", &schema.TaskEvent{TaskID: task, Action: "open", Role: schema.Lead, SessionID: "l", To: schema.TaskOpen, CreatedAt: "c"})
		},
		func(tx store.Tx) error {
			return tx.AppendAudit(&schema.AuditEntry{RunID: "run", Action: "settle", Role: schema.Lead, SessionID: "l", Details: []byte("{}")})
		},
	} {
		before, other := of("run"), of("other")
		write(t, s, step)
		if of("run") == before {
			t.Errorf("version %+v stayed", before)
		}
		equal(t, "another run", of("other"), other)
		equal(t, "looking", of("run"), of("run"))
	}
}
