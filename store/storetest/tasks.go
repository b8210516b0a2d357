package storetest

import (
	"fmt"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

var tasks = []test{
	{"a task is kept whole", taskIsKeptWhole},
	{"a missing task is nil", missingTask},
	{"saving a task changes what may change", savingATask},
	{"tasks are listed by run, status and page", tasksAreListed},
	{"task events are kept in order", taskEvents},
}

func taskIsKeptWhole(t *testing.T, s store.Store) {
	full := &store.Task{Task: schema.Task{
		Title: "full", Note: new("a note"), Status: schema.TaskOpen, RunID: new("run"),
		CreatedAt: "2026-01-02T03:04:05.678Z", UpdatedAt: "2026-01-02T03:04:05.679Z",
	}}
	bare := &store.Task{Task: schema.Task{Title: "", Status: schema.TaskOpen, RunID: new("run"), CreatedAt: "c", UpdatedAt: "u"}}
	write(t, s, func(tx store.Tx) error {
		if err := tx.InsertTask(full); err != nil {
			return err
		}
		return tx.InsertTask(bare)
	})
	if full.TaskID <= 0 || bare.TaskID <= full.TaskID {
		t.Errorf("ids %d, %d", full.TaskID, bare.TaskID)
	}
	for _, want := range []*store.Task{full, bare} {
		equal(t, want.Title, taskOf(t, s, want.TaskID), want)
	}
}

func taskOf(t *testing.T, s store.Store, id int64) *store.Task {
	t.Helper()
	return read(t, s, func(tx store.Tx) (*store.Task, error) { return tx.Task(id) })
}

func missingTask(t *testing.T, s store.Store) {
	for _, id := range []int64{0, 1, -1, schema.MaxInteger} {
		if got := taskOf(t, s, id); got != nil {
			t.Errorf("task %d is %+v", id, got)
		}
	}
}

func savingATask(t *testing.T, s store.Store) {
	var id int64
	write(t, s, func(tx store.Tx) (err error) { id, err = addTask(tx, "run", "title"); return err })
	want := taskOf(t, s, id)
	want.Status, want.Owner, want.OwnerSession = schema.TaskClaimed, new("label"), new("session")
	want.EvidenceGeneration, want.UpdatedAt = 7, "2027-01-01T00:00:00.000Z"
	write(t, s, func(tx store.Tx) error {
		changed := *want
		changed.Title, changed.Note, changed.RunID, changed.CreatedAt = "other", new("other"), new("other"), "other"
		return tx.SaveTask(&changed)
	})
	equal(t, "saved", taskOf(t, s, id), want)

	want.Owner, want.OwnerSession = nil, nil
	write(t, s, func(tx store.Tx) error { return tx.SaveTask(want) })
	equal(t, "disowned", taskOf(t, s, id), want)
}

func tasksAreListed(t *testing.T, s store.Store) {
	write(t, s, func(tx store.Tx) error {
		for i := range 6 {
			id, err := addTask(tx, fmt.Sprint("run-", i%2), fmt.Sprint("t", i))
			if err != nil {
				return err
			}
			if i >= 4 {
				task, err := tx.Task(id)
				if err != nil {
					return err
				}
				task.Status = schema.TaskDone
				if err := tx.SaveTask(task); err != nil {
					return err
				}
			}
		}
		return nil
	})
	all := read(t, s, func(tx store.Tx) ([]schema.Task, error) { return tx.Tasks("run-0", "", store.Page{}) })
	if len(all) != 3 {
		t.Fatalf("%d tasks, want 3", len(all))
	}
	tests := []struct {
		run    string
		status schema.TaskStatus
		page   store.Page
		want   []string
	}{
		{"run-0", "", store.Page{}, []string{"t0", "t2", "t4"}},
		{"run-1", "", store.Page{}, []string{"t1", "t3", "t5"}},
		{"run-2", "", store.Page{}, nil},
		{"run-0", schema.TaskOpen, store.Page{}, []string{"t0", "t2"}},
		{"run-0", schema.TaskDone, store.Page{}, []string{"t4"}},
		{"run-0", schema.TaskClaimed, store.Page{}, nil},
		{"run-0", "", store.Page{Limit: 2}, []string{"t0", "t2"}},
		{"run-0", "", store.Page{After: all[0].TaskID, Limit: 1}, []string{"t2"}},
		{"run-0", schema.TaskOpen, store.Page{After: all[0].TaskID}, []string{"t2"}},
		{"run-0", "", store.Page{After: all[2].TaskID}, nil},
	}
	for _, test := range tests {
		var got []string
		for _, task := range read(t, s, func(tx store.Tx) ([]schema.Task, error) { return tx.Tasks(test.run, test.status, test.page) }) {
			got = append(got, task.Title)
		}
		equal(t, fmt.Sprintf("%s %q %+v", test.run, test.status, test.page), got, test.want)
	}
}

func taskEvents(t *testing.T, s store.Store) {
	open := schema.TaskOpen
	events := []schema.TaskEvent{
		{TaskID: 1, Action: "open", Role: schema.Worker, SessionID: " s ", To: schema.TaskOpen, CreatedAt: "1"},
		{TaskID: 2, Action: "open", Role: schema.Lead, SessionID: "l", To: schema.TaskOpen, CreatedAt: "2"},
		{TaskID: 1, Action: "reject", Role: schema.Lead, SessionID: "l", From: &open, To: schema.TaskRejected, EvidenceGeneration: 3, Note: new("why"), CreatedAt: "3"},
	}
	write(t, s, func(tx store.Tx) error {
		for i := range events {
			if err := tx.AppendTaskEvent("run", &events[i]); err != nil {
				return err
			}
		}
		return nil
	})
	list := func(task int64, page store.Page) []schema.TaskEvent {
		return read(t, s, func(tx store.Tx) ([]schema.TaskEvent, error) { return tx.TaskEvents(task, page) })
	}
	equal(t, "all", list(1, store.Page{}), []schema.TaskEvent{events[0], events[2]})
	equal(t, "the first", list(1, store.Page{Limit: 1}), events[:1])
	equal(t, "the rest", list(1, store.Page{After: events[0].ID}), events[2:])
	if events[0].ID >= events[1].ID || events[1].ID >= events[2].ID {
		t.Errorf("ids %d, %d, %d", events[0].ID, events[1].ID, events[2].ID)
	}
}
