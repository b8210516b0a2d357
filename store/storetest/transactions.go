package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

var transactions = slices.Concat(
	everyWay("a failed write leaves nothing", failedWriteLeavesNothing),
	everyWay("an error is returned as it is", errorIsReturnedAsItIs),
	everyWay("a nested failure undoes only itself", nestedFailure),
	everyWay("nesting is as deep as it is asked for", deepNesting),
	everyWay("a panic costs one write", panicCostsOneWrite),
	everyWay("a panic inside a nested call undoes the whole write", panicInsideNested),
	everyWay("a write sees its own changes", writeSeesItself),
	[]test{
		{"the error of a read is returned as it is", errorOfARead},
		{"a panic costs one read", panicCostsOneRead},
		{"a read keeps nothing", readKeepsNothing},
		{"a read sees its own moment only", readSeesOneMoment},
		{"writes of many callers are one after another", writesAreSerial},
	},
)

// way is how a write is made.
type way func(*testing.T, store.Store, func(store.Tx) error) error

// everyWay tests a write that is alone, and one that waits together with
// others, with which an engine may let it share a transaction.
func everyWay(name string, run func(*testing.T, store.Store, way)) []test {
	return []test{
		{name + ", alone", func(t *testing.T, s store.Store) { run(t, s, alone) }},
		{name + ", among others", func(t *testing.T, s store.Store) { run(t, s, amongOthers) }},
	}
}

func alone(t *testing.T, s store.Store, fn func(store.Tx) error) error {
	return s.Write(t.Context(), fn)
}

func amongOthers(t *testing.T, s store.Store, fn func(store.Tx) error) error {
	t.Helper()
	release := hold(t, s)
	answers := make(outcomes, 3)
	neighbour := func(name string) {
		s.Submit(t.Context(), func(tx store.Tx) error { _, err := addTask(tx, "neighbours", name); return err },
			func(err error) { answers <- outcome{name, err} })
	}
	before := len(read(t, s, titles("neighbours")))
	neighbour("before")
	s.Submit(t.Context(), fn, func(err error) { answers <- outcome{"tested", err} })
	neighbour("after")
	release()
	got := answers.wait(t, 3)
	if got["before"] != nil || got["after"] != nil {
		t.Errorf("the neighbours were answered %v and %v", got["before"], got["after"])
	}
	if after := len(read(t, s, titles("neighbours"))); after != before+2 {
		t.Errorf("%d of 2 neighbours were kept", after-before)
	}
	return got["tested"]
}

func failedWriteLeavesNothing(t *testing.T, s store.Store, write way) {
	err := write(t, s, func(tx store.Tx) error {
		if _, err := addTask(tx, "run", "lost"); err != nil {
			return err
		}
		if err := admit(tx, reservation("r", "run", 1, 1, schema.Write, "a"), 0, 0); err != nil {
			return err
		}
		if err := tx.SetLimits("run", schema.Limits{MaxActive: 9, MaxWriters: 9, MaxCreated: 9, MaxRetries: 9}); err != nil {
			return err
		}
		return errRefused
	})
	if err == nil {
		t.Fatal("the write succeeded")
	}
	equal(t, "tasks", read(t, s, titles("run")), []string{})
	equal(t, "reservation", stored(t, s, "r"), (*store.Reservation)(nil))
	equal(t, "limits", read(t, s, func(tx store.Tx) (schema.Limits, error) { return tx.Limits("run") }), schema.DefaultLimits())
	equal(t, "usage", read(t, s, func(tx store.Tx) (store.Usage, error) { return tx.Usage("run") }), store.Usage{})
	known := read(t, s, func(tx store.Tx) ([]string, error) { return tx.Runs("", 10) })
	equal(t, "the run is known", slices.Contains(known, "run"), false)
}

func errorIsReturnedAsItIs(t *testing.T, s store.Store, write way) {
	refuse := func(store.Tx) error { return errRefused }
	exactly(t, "write", write(t, s, refuse), errRefused)
	err := write(t, s, func(tx store.Tx) error {
		exactly(t, "nested", tx.Nested(refuse), errRefused)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func errorOfARead(t *testing.T, s store.Store) {
	exactly(t, "read", s.Read(t.Context(), func(store.Tx) error { return errRefused }), errRefused)
}

func nestedFailure(t *testing.T, s store.Store, write way) {
	err := write(t, s, func(tx store.Tx) error {
		if _, err := addTask(tx, "run", "before"); err != nil {
			return err
		}
		err := tx.Nested(func(tx store.Tx) error {
			if _, err := addTask(tx, "run", "undone"); err != nil {
				return err
			}
			return errRefused
		})
		if !errors.Is(err, errRefused) {
			t.Errorf("nested: %v", err)
		}
		err = tx.Nested(func(tx store.Tx) error {
			_, err := addTask(tx, "run", "kept")
			return err
		})
		if err != nil {
			return err
		}
		_, err = addTask(tx, "run", "after")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "tasks", read(t, s, titles("run")), []string{"before", "kept", "after"})
}

func deepNesting(t *testing.T, s store.Store, write way) {
	// Level n adds a task; every third level fails after the levels inside it.
	var descend func(tx store.Tx, level int) error
	descend = func(tx store.Tx, level int) error {
		if level == 7 {
			return nil
		}
		err := tx.Nested(func(tx store.Tx) error {
			if _, err := addTask(tx, "run", fmt.Sprint(level)); err != nil {
				return err
			}
			if err := descend(tx, level+1); err != nil {
				return err
			}
			if level%3 == 2 {
				return errRefused
			}
			return nil
		})
		if errors.Is(err, errRefused) {
			return nil // the level around it goes on
		}
		return err
	}
	if err := write(t, s, func(tx store.Tx) error { return descend(tx, 0) }); err != nil {
		t.Fatal(err)
	}
	equal(t, "tasks", read(t, s, titles("run")), []string{"0", "1"})
}

func panicCostsOneWrite(t *testing.T, s store.Store, write way) {
	err := write(t, s, func(tx store.Tx) error {
		if _, err := addTask(tx, "run", "lost"); err != nil {
			return err
		}
		panic("of the test")
	})
	fails(t, "panic", err, schema.ErrInternal)
	if err := write(t, s, func(tx store.Tx) error { _, err := addTask(tx, "run", "kept"); return err }); err != nil {
		t.Fatal(err)
	}
	equal(t, "tasks", read(t, s, titles("run")), []string{"kept"})
}

func panicInsideNested(t *testing.T, s store.Store, write way) {
	err := write(t, s, func(tx store.Tx) error {
		if _, err := addTask(tx, "run", "outer"); err != nil {
			return err
		}
		return tx.Nested(func(tx store.Tx) error {
			if _, err := addTask(tx, "run", "inner"); err != nil {
				return err
			}
			panic("of the test")
		})
	})
	fails(t, "panic", err, schema.ErrInternal)
	equal(t, "tasks", read(t, s, titles("run")), []string{})
}

func panicCostsOneRead(t *testing.T, s store.Store) {
	for range 20 { // more than an engine has connections for reading
		err := s.Read(t.Context(), func(store.Tx) error { panic("of the test") })
		fails(t, "panic", err, schema.ErrInternal)
	}
	equal(t, "tasks", read(t, s, titles("run")), []string{})
}

func readKeepsNothing(t *testing.T, s store.Store) {
	_ = s.Read(t.Context(), func(tx store.Tx) error { _, err := addTask(tx, "run", "lost"); return err })
	_ = s.Read(t.Context(), func(tx store.Tx) error { return tx.SetLimits("run", schema.Limits{MaxActive: 9}) })
	equal(t, "tasks", read(t, s, titles("run")), []string{})
	equal(t, "limits", read(t, s, func(tx store.Tx) (schema.Limits, error) { return tx.Limits("run") }), schema.DefaultLimits())
	write(t, s, func(tx store.Tx) error { _, err := addTask(tx, "run", "kept"); return err })
}

func readSeesOneMoment(t *testing.T, s store.Store) {
	write(t, s, func(tx store.Tx) error { _, err := addTask(tx, "run", "old"); return err })
	changed, written := make(chan struct{}), make(chan error, 1)
	var before, after []string
	err := s.Read(t.Context(), func(tx store.Tx) (err error) {
		if before, err = titles("run")(tx); err != nil {
			return err
		}
		s.Submit(t.Context(), func(tx store.Tx) error {
			_, err := addTask(tx, "run", "new")
			close(changed)
			return err
		}, func(err error) { written <- err })
		<-changed
		after, err = titles("run")(tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "before the write", before, []string{"old"})
	equal(t, "during the write", after, []string{"old"})
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	equal(t, "after the write", read(t, s, titles("run")), []string{"old", "new"})
}

func writeSeesItself(t *testing.T, s store.Store, write way) {
	err := write(t, s, func(tx store.Tx) error {
		if _, err := addTask(tx, "run", "mine"); err != nil {
			return err
		}
		list, err := titles("run")(tx)
		equal(t, "tasks", list, []string{"mine"})
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func writesAreSerial(t *testing.T, s store.Store) {
	const callers, each = 8, 10
	var group sync.WaitGroup
	for range callers {
		group.Go(func() {
			for range each {
				err := s.Write(t.Context(), func(tx store.Tx) error {
					list, err := titles("run")(tx)
					if err != nil {
						return err
					}
					_, err = addTask(tx, "run", fmt.Sprintf("%03d", len(list)))
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	list := read(t, s, titles("run"))
	if len(list) != callers*each || !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
		t.Errorf("%d tasks, want %d in order without duplicates", len(list), callers*each)
	}
}
