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

func stringsAreExact(t *testing.T, s store.Store) {
	for i, text := range odd {
		task := &store.Task{Task: schema.Task{
			Title: text, Note: &text, Status: schema.TaskOpen, RunID: &text, CreatedAt: "c", UpdatedAt: "u",
		}}
		r := reservation(fmt.Sprint(i), text, int64(i+1), 1, schema.Read, text)
		r.OperationKey, r.OwnerSession = text, &text
		event := schema.TaskEvent{TaskID: int64(i + 1), Action: "open", Role: schema.Lead, SessionID: text, To: schema.TaskOpen, Note: &text, CreatedAt: "c"}
		entry := schema.AuditEntry{RunID: text, ReservationID: &r.ReservationID, Action: "reserve", Role: schema.Lead, SessionID: text, Details: []byte("{}")}
		write(t, s, func(tx store.Tx) error {
			if err := tx.InsertTask(task); err != nil {
				return err
			}
			task.Owner, task.OwnerSession = &text, &text
			if err := tx.SaveTask(task); err != nil {
				return err
			}
			if err := tx.AppendTaskEvent(text, &event); err != nil {
				return err
			}
			if err := admit(tx, r, 0, 0); err != nil {
				return err
			}
			r.State, r.SessionID = schema.Running, &text
			if err := tx.SaveReservation(r); err != nil {
				return err
			}
			if err := tx.SetLimits(text, schema.DefaultLimits()); err != nil {
				return err
			}
			return tx.AppendAudit(&entry)
		})
		equal(t, "task", taskOf(t, s, task.TaskID), task)
		byKey := read(t, s, func(tx store.Tx) (*store.Reservation, error) { return tx.ReservationByKey(text, text) })
		equal(t, "reservation", byKey, r)
		holds := read(t, s, func(tx store.Tx) ([]schema.Hold, error) { return tx.Holds(text) })
		equal(t, "holds", holds, []schema.Hold{{ReservationID: r.ReservationID, ResourceKey: text, Mode: schema.Read}})
		events := read(t, s, func(tx store.Tx) ([]schema.TaskEvent, error) { return tx.TaskEvents(event.TaskID, store.Page{}) })
		equal(t, "events", events, []schema.TaskEvent{event})
		audit := read(t, s, func(tx store.Tx) ([]schema.AuditEntry, error) { return tx.Audit(text, store.Page{}) })
		equal(t, "audit", audit, []schema.AuditEntry{entry})
	}
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
	for i, text := range odd {
		equal(t, "tasks", read(t, s, titles(text)), []string{text})
		conflicts := read(t, s, func(tx store.Tx) ([]store.Conflict, error) { return tx.Conflicts(text, schema.Read) })
		if len(conflicts) != 1 || conflicts[0].ReservationID != fmt.Sprint(i) || conflicts[0].ResourceKey != text {
			t.Errorf("%q is held by %s", text, show(conflicts))
		}
	}
	list := read(t, s, func(tx store.Tx) ([]string, error) { return tx.Runs("", 1000) })
	equal(t, "runs", len(list), len(odd))
}
