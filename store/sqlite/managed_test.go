package sqlite_test

import (
	"context"
	"slices"
	"testing"

	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

// TestManagedTasks: the other writer's table may be there, or come while the
// store is open, or be dropped.
func TestManagedTasks(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := open(t, root, sqlite.Options{})
	db := reference.Open(t, root)
	for range 2 {
		if err := add(s, "run", "t"); err != nil {
			t.Fatal(err)
		}
	}
	managed := func() (list []int64) {
		t.Helper()
		look := func(tx store.Tx) error {
			list = nil
			for id := range int64(4) {
				if task, err := tx.Task(id); err != nil {
					return err
				} else if task != nil && task.Managed {
					list = append(list, id)
				}
			}
			return nil
		}
		if err := s.Read(context.Background(), look); err != nil {
			t.Fatal(err)
		}
		reading := list
		if err := s.Write(context.Background(), look); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(reading, list) {
			t.Errorf("a read says %v, a write %v", reading, list)
		}
		return list
	}
	const manage = "INSERT INTO workflow VALUES (2, 'run', 't', 's', 1, 1, '{}', NULL, 1, 0, 'root', '', '')"
	for _, step := range []struct {
		statements []string
		want       []int64
	}{
		{nil, nil},
		{[]string{reference.Workflow}, nil},
		{[]string{manage}, []int64{2}},
		{[]string{"UPDATE workflow SET stage = 'x'"}, []int64{2}},
		{[]string{"DROP TABLE workflow"}, nil},
		{[]string{reference.Workflow, manage}, []int64{2}},
	} {
		reference.Exec(t, db, step.statements...)
		if got := managed(); !slices.Equal(got, step.want) {
			t.Errorf("after %v: managed are %v, want %v", step.statements, got, step.want)
		}
	}
}
