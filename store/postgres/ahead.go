package postgres

import (
	"bytes"
	"slices"

	"github.com/dsh-taskforce/sidecar/store"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A write that is alone in its transaction has said what it is about. What it
// will ask for is read in the same round trip as the locks, after them, and is
// good until the transaction changes something. A question that was not foreseen
// only takes a round trip of its own.

// early are the answers that were foreseen, a dozen at most.
type early []*answer

// answer are the rows that a query returned, as they came.
type answer struct {
	query  string
	args   []any
	fields []pgconn.FieldDescription
	rows   [][][]byte
}

// to finds the answer to a question, nil if there is none.
func (e early) to(query string, args []any) *answer {
	for _, a := range e {
		if a.query == query && slices.EqualFunc(a.args, args, sameArgument) {
			return a
		}
	}
	return nil
}

// sameArgument compares what the foreseen queries take.
func sameArgument(a, b any) bool {
	digest, ok := a.([]byte)
	other, same := b.([]byte)
	if ok || same {
		return ok && same && bytes.Equal(digest, other)
	}
	return a == b
}

// ask queues a query whose answer will be wanted.
func (t *tx) ask(query string, args ...any) {
	a := &answer{query: query, args: args}
	t.early = append(t.early, a)
	t.queue(query, args...).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			a.fields = slices.Clone(rows.FieldDescriptions()) // absent from a failure
			var row [][]byte
			for _, value := range rows.RawValues() {
				row = append(row, slices.Clone(value)) // nil stays nil
			}
			a.rows = append(a.rows, row)
		}
		return rows.Err()
	})
}

// replay hands over the rows of an early answer. It reports false if there is none.
func (t *tx) replay(query string, args, fields []any, next func() error) (found bool, err error) {
	if len(t.early) == 0 {
		return false, nil
	}
	if err := t.flush(); err != nil {
		return true, err
	}
	a := t.early.to(query, args)
	if a == nil {
		return false, nil
	}
	for _, row := range a.rows {
		for i, value := range row {
			if err := t.conn.TypeMap().Scan(a.fields[i].DataTypeOID, a.fields[i].Format, value, fields[i]); err != nil {
				return true, rowError{err}
			}
		}
		unescapeAll(fields)
		if err := next(); err != nil {
			return true, err
		}
	}
	return true, nil
}

// readAhead asks what a write of the scope will.
func (t *tx) readAhead(scope *store.Scope) {
	if scope == nil || len(scope.Runs) != 1 { // it is no single call
		return
	}
	run := digest(scope.Runs[0])
	admits := len(scope.Operations) > 0
	for _, id := range scope.Reservations {
		t.ask(reservationByID, id)
		t.ask(chargeOfReservation, id)
		if task, known := t.store.queue.holdings.task(id); known {
			t.ask(taskByID, task)
			t.askAdmissions(task)
		}
	}
	for _, id := range scope.Tasks {
		t.ask(taskByID, id)
		if admits {
			t.askAdmissions(id)
			t.ask(activeOfTask, id)
		}
	}
	if !admits {
		return
	}
	for _, key := range scope.Operations {
		t.ask(reservationByOperation, run, digest(key))
	}
	t.ask(limitsOfRun, run)
	t.ask(activeOfRun, run)
	known := t.store.counted.run(scope.Runs[0])
	t.ask(laterOfRun, run, known.row, known.reservation)
	if len(scope.Resources) > manyResources {
		return
	}
	for _, key := range scope.Resources {
		t.ask(holdsOnResource, digest(key), !scope.Shared)
	}
}

func (t *tx) askAdmissions(task int64) {
	known := t.store.counted.task(task)
	t.ask(laterOfTask, task, known.Generation, known.reservation)
}

// changes is called before the transaction changes anything.
func (t *tx) changes() { t.early, t.changed = nil, true }
