package storetest

import (
	"fmt"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

var keys = []test{
	{"strings are kept exactly", stringsAreExact},
	{"strings that look alike stay apart", stringsStayApart},
}

// odd are strings that an engine could confuse, cut or trim.
var odd = []string{
	"a", "A", " a", "a ", "a\t", "a\n", "a\r\n", "\u00a0a", "\ufeffa",
	"a\x00", "a\x00b", "a\x00c", "\x00", "\x01", "\x7f", "\u0085", "\u2028", "\u2029",
	"\u00e9", "e\u0301", "\ufb01le", "file", "\uffee", "\uffff", "\U0001f600", "\U0010ffff",
	`"`, `'`, `\`, `\u0000`, "%", "_", "?", "$1", ":a", "--", "a;b", "<b>&amp;", "null", "0", "00", "1e0", "-0",
}

// kept is one string in every place that keeps one.
type kept struct {
	task        *store.Task
	reservation *store.Reservation
	event       schema.TaskEvent
	entry       schema.AuditEntry
}

func keep(tx store.Tx, i int, text string) (*kept, error) {
	k := &kept{
		task:        &store.Task{Task: schema.Task{Title: text, Note: &text, Status: schema.TaskOpen, RunID: &text, CreatedAt: "c", UpdatedAt: "u"}},
		reservation: reservation(fmt.Sprint(i), text, int64(i+1), 1, schema.Read, text),
		event:       schema.TaskEvent{TaskID: int64(i + 1), Action: "open", Role: schema.Lead, SessionID: text, To: schema.TaskOpen, Note: &text, CreatedAt: "c"},
	}
	k.entry = schema.AuditEntry{RunID: text, ReservationID: &k.reservation.ReservationID, Action: "reserve", Role: schema.Lead, SessionID: text, Details: []byte("{}")}
	k.reservation.OperationKey, k.reservation.OwnerSession = text, &text
	for _, step := range []func() error{
		func() error { return tx.InsertTask(k.task) },
		func() error { k.task.Owner, k.task.OwnerSession = &text, &text; return tx.SaveTask(k.task) },
		func() error { return tx.AppendTaskEvent(text, &k.event) },
		func() error { return admit(tx, k.reservation, 0, 0) },
		func() error {
			k.reservation.State, k.reservation.SessionID = schema.Running, &text
			return tx.SaveReservation(k.reservation)
		},
		func() error { return tx.SetLimits(text, schema.DefaultLimits()) },
		func() error { return tx.AppendAudit(&k.entry) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func stringsAreExact(t *testing.T, s store.Store) {
	all := make([]*kept, len(odd))
	write(t, s, func(tx store.Tx) (err error) {
		for i, text := range odd {
			if all[i], err = keep(tx, i, text); err != nil {
				return err
			}
		}
		return nil
	})
	err := s.Read(t.Context(), func(tx store.Tx) error {
		for i, text := range odd {
			task, err := tx.Task(all[i].task.TaskID)
			same(t, "task", task, all[i].task, err)
			byKey, err := tx.ReservationByKey(text, text)
			same(t, "reservation", byKey, all[i].reservation, err)
			holds, err := tx.Holds(text)
			same(t, "holds", holds, []schema.Hold{{ReservationID: fmt.Sprint(i), ResourceKey: text, Mode: schema.Read}}, err)
			events, err := tx.TaskEvents(all[i].event.TaskID, store.Page{})
			same(t, "events", events, []schema.TaskEvent{all[i].event}, err)
			audit, err := tx.Audit(text, store.Page{})
			same(t, "audit", audit, []schema.AuditEntry{all[i].entry}, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// same compares what a method returned, when it returned no error.
func same(t *testing.T, what string, got, want any, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	equal(t, what, got, want)
}

func stringsStayApart(t *testing.T, s store.Store) {
	write(t, s, func(tx store.Tx) error {
		for i, text := range odd {
			if _, err := addTask(tx, text, text); err != nil {
				return err
			}
			r := reservation(fmt.Sprint(i), text, int64(i+1), 1, schema.Write, text)
			r.OperationKey = text
			if err := admit(tx, r, 0, 0); err != nil {
				return err
			}
		}
		return nil
	})
	err := s.Read(t.Context(), func(tx store.Tx) error {
		for i, text := range odd {
			names, err := titles(text)(tx)
			same(t, "tasks", names, []string{text}, err)
			conflicts, err := tx.Conflicts(text, schema.Read)
			if err != nil || len(conflicts) != 1 || conflicts[0].ReservationID != fmt.Sprint(i) || conflicts[0].ResourceKey != text {
				t.Errorf("%q is held by %s, %v", text, show(conflicts), err)
			}
		}
		list, err := tx.Runs("", 1000)
		same(t, "runs", len(list), len(odd), err)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
