package sqlite_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
	"github.com/dsh-taskforce/sidecar/store/sqlite"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

// TestReadOnlyReadsOlderFiles and leaves them byte for byte as they are.
func TestReadOnlyReadsOlderFiles(t *testing.T) {
	t.Parallel()
	olderFiles(t, func(t *testing.T, root, want string) {
		before := content(t, root)
		s := open(t, root, sqlite.Options{ReadOnly: true})
		var got *store.Task
		err := s.Read(t.Context(), func(tx store.Tx) (err error) {
			got, err = tx.Task(7)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if got == nil || got.Title != "old" || !strings.Contains(want, fmt.Sprintf("'%s'", got.Status)) {
			t.Errorf("got %+v", got)
		}
		readEverything(t, s)
		s.Close()
		unchanged(t, root, before)
	})
}

// readEverything calls every method that reads.
func readEverything(t *testing.T, s *sqlite.Store) {
	t.Helper()
	err := s.Read(t.Context(), func(tx store.Tx) error {
		for name, read := range map[string]func() error{
			"Tasks":           func() error { _, err := tx.Tasks("run", "", store.Page{}); return err },
			"Tasks by status": func() error { _, err := tx.Tasks("run", schema.TaskOpen, store.Page{}); return err },
			"TaskEvents":      func() error { _, err := tx.TaskEvents(7, store.Page{}); return err },
			"Limits":          func() error { _, err := tx.Limits("run"); return err },
			"Usage":           func() error { _, err := tx.Usage("run"); return err },
			"Admissions":      func() error { _, err := tx.Admissions(7); return err },
			"ActiveAdmission": func() error { _, err := tx.ActiveAdmission(7); return err },
			"Reservation":     func() error { _, err := tx.Reservation("r"); return err },
			"Conflicts":       func() error { _, err := tx.Conflicts("k", schema.Write); return err },
			"RetryCharge":     func() error { _, err := tx.RetryCharge("r"); return err },
			"Unaccounted":     func() error { _, err := tx.Unaccounted(); return err },
			"Executions":      func() error { _, err := tx.Executions("run"); return err },
			"Holds":           func() error { _, err := tx.Holds("run"); return err },
			"Reservations":    func() error { _, err := tx.Reservations("run", store.Page{}); return err },
			"RetryCharges":    func() error { _, err := tx.RetryCharges("run", store.Page{}); return err },
			"Audit":           func() error { _, err := tx.Audit("run", store.Page{}); return err },
			"Runs":            func() error { _, err := tx.Runs("", 10); return err },
			"Version":         func() error { _, err := tx.Version("run"); return err },
		} {
			if err := read(); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestReadOnlyReadsTheOtherWritersFiles.
func TestReadOnlyReadsTheOtherWritersFiles(t *testing.T) {
	t.Parallel()
	for _, name := range reference.Names(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			reference.Unpack(t, name, root)
			before := content(t, root)
			s := open(t, root, sqlite.Options{ReadOnly: true})
			var reservations int
			err := s.Read(t.Context(), func(tx store.Tx) error {
				runs, err := tx.Runs("", 100)
				for _, run := range runs {
					list, err := tx.Reservations(run, store.Page{})
					if err != nil {
						return err
					}
					reservations += len(list)
				}
				return err
			})
			if err != nil || reservations == 0 {
				t.Errorf("%d reservations, %v", reservations, err)
			}
			readEverything(t, s)
			failed(t, add(s, "run", "t"), schema.ErrStoreReadonly)
			s.Close()
			unchanged(t, root, before)
		})
	}
}

func TestReadOnlyTakesAnEmptyFile(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	writeFile(t, file(root), "")
	before := content(t, root)
	s := open(t, root, sqlite.Options{ReadOnly: true})
	readEverything(t, s)
	s.Close()
	unchanged(t, root, before)
}
