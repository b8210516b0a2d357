package sqlite

import (
	"context"

	"github.com/dsh-taskforce/sidecar/schema"
)

// ledger is what a connection remembers of the retained rows, so that an
// admission costs the same whatever the run retains. Everything in it derives
// from reservation rows up to `row`, which are only ever appended: their run,
// task, kind, generation and charge never change.
//
// It is trusted only inside a transaction that has checked PRAGMA data_version.
// If another connection has committed, the rows that came later are read first,
// beginning with the last one known: if that is not the same row any more (a
// backup was restored over the file), everything is forgotten. Own changes
// become part of the ledger at once and are undone with their savepoint or
// transaction.
type ledger struct {
	known bool
	// row and id name the last reservation row that is counted, 0 if there was none.
	row int64
	id  string
	// runs and tasks hold what was asked for so far.
	runs  map[string]runEntry
	tasks map[int64]taskEntry
	// unaccounted are the runs with a reservation that has no retry charge.
	unaccounted map[string]bool
	// undo restores, last entry first, what the transaction has changed.
	undo []func()
}

// remembered bounds the entries of a ledger; past that they are read again.
const remembered = 100_000

// runEntry is what is remembered of a run.
type runEntry struct {
	created int64
	// unnoted counts the admissions since the note of the run.
	unnoted int64
	// current says that the rest is known too: it can change without a new
	// row, so it does not outlive another connection's commit.
	current bool
	limits  schema.Limits
	usage   schema.Usage
}

// taskEntry is what is remembered of a task's admissions.
type taskEntry struct {
	generation, rework, charged int64
	// unnoted counts the admissions since the note of the task.
	unnoted int64
}

func (l *ledger) forget() { *l = ledger{} }

// drop forgets everything in the middle of a transaction. What it has changed
// so far stays to be undone, so that the marks of open savepoints still hold.
func (l *ledger) drop() { *l = ledger{undo: l.undo} }

// settled makes the changes of the transaction final.
func (l *ledger) settled() { l.undo = l.undo[:0] }

// rollback undoes the changes since the mark, which is a length of undo. Once
// that has dropped everything, there is nothing left to restore.
func (l *ledger) rollback(mark int) {
	for len(l.undo) > mark {
		last := len(l.undo) - 1
		undo := l.undo[last]
		l.undo = l.undo[:last]
		if l.known {
			undo()
		}
	}
}

func (l *ledger) setRun(run string, entry runEntry) {
	before, existed := l.runs[run]
	l.undo = append(l.undo, func() { restore(l.runs, run, before, existed) })
	l.runs[run] = entry
}

func (l *ledger) setTask(task int64, entry taskEntry) {
	before, existed := l.tasks[task]
	l.undo = append(l.undo, func() { restore(l.tasks, task, before, existed) })
	l.tasks[task] = entry
}

func (l *ledger) setLast(row int64, id string) {
	beforeRow, beforeID := l.row, l.id
	l.undo = append(l.undo, func() { l.row, l.id = beforeRow, beforeID })
	l.row, l.id = row, id
}

func restore[K comparable, V any](m map[K]V, key K, before V, existed bool) {
	if existed {
		m[key] = before
	} else {
		delete(m, key)
	}
}

// learn fills an empty ledger in the middle of a transaction, whose own rows it
// then holds; so it is emptied again if they are undone.
func (l *ledger) learn(ctx context.Context, c *conn) error {
	if l.known {
		return nil
	}
	l.undo = append(l.undo, l.drop)
	return l.begin(ctx, c)
}

// inserted counts a row that the transaction itself has added.
func (l *ledger) inserted(row int64, r *schema.Reservation, c schema.RetryCharge) {
	l.setLast(row, r.ReservationID)
	if entry, ok := l.runs[r.RunID]; ok {
		if r.Kind == schema.New {
			entry.created++
		}
		entry.unnoted++
		entry.usage.Active++
		if r.Mode == schema.Write {
			entry.usage.Writers++
		}
		l.setRun(r.RunID, entry)
	}
	if entry, ok := l.tasks[r.TaskID]; ok {
		l.setTask(r.TaskID, entry.plus(r.Generation, c.ReworkGeneration, c.RetryCharge))
	}
}

// moved counts a change of a reservation's state by the transaction itself.
func (l *ledger) moved(r *schema.Reservation, from, to schema.State) {
	entry, ok := l.runs[r.RunID]
	if !ok || from == to {
		return
	}
	if from == schema.Unknown {
		entry.usage.Unknown--
	}
	switch to {
	case schema.Unknown:
		entry.usage.Unknown++
	case schema.Settled:
		entry.usage.Active--
		if r.Mode == schema.Write {
			entry.usage.Writers--
		}
	}
	l.setRun(r.RunID, entry)
}

// catchUp reads what other connections have committed since the ledger was
// last used. It runs before anything of a transaction does.
func (l *ledger) catchUp(ctx context.Context, c *conn) error {
	if l.known && len(l.unaccounted) == 0 && len(l.runs)+len(l.tasks) <= remembered {
		same, err := l.readLater(ctx, c)
		if err != nil || same {
			return err
		}
	}
	l.forget()
	return l.begin(ctx, c)
}

// begin learns the last row and which runs have reservations without a charge.
func (l *ledger) begin(ctx context.Context, c *conn) error {
	l.runs, l.tasks, l.unaccounted = map[string]runEntry{}, map[int64]taskEntry{}, map[string]bool{}
	const last = "SELECT rowid, reservation_id FROM governor_reservation ORDER BY rowid DESC LIMIT 1"
	if _, err := c.scan(ctx, last, nil, &l.row, &l.id); err != nil {
		return err
	}
	l.known = true
	if charged, err := c.everyoneCharged(ctx); err != nil || charged {
		return err
	}
	return l.findUnaccounted(ctx, c)
}

func (l *ledger) findUnaccounted(ctx context.Context, c *conn) error {
	const query = "SELECT DISTINCT run_id FROM governor_reservation r WHERE NOT EXISTS (SELECT 1 FROM governor_retry_charge c WHERE c.reservation_id = r.reservation_id)"
	stmt, err := c.stmt(ctx, query)
	if err != nil {
		return err
	}
	rows, err := stmt.query(ctx, nil)
	if err != nil {
		return err
	}
	defer rows.close()
	for rows.Next() {
		var run string
		if err := rows.Scan(&run); err != nil {
			return err
		}
		l.unaccounted[run] = true
	}
	return rows.Err()
}

// laterRow is a reservation row with its charge, as far as it has one.
type laterRow struct {
	row              int64
	id, run          string
	task, generation int64
	kind             schema.Kind
	accounted        bool
	rework, charge   int64
}

// readLater counts the rows after the last known one. It reports false if that
// one has changed.
func (l *ledger) readLater(ctx context.Context, c *conn) (same bool, err error) {
	const query = "SELECT r.rowid, r.reservation_id, r.run_id, r.task_id, r.generation, r.kind, c.reservation_id IS NOT NULL, coalesce(c.rework_generation, 0), coalesce(c.retry_charge, 0) FROM governor_reservation r LEFT JOIN governor_retry_charge c USING (reservation_id) WHERE r.rowid >= ? ORDER BY r.rowid"
	stmt, err := c.stmt(ctx, query)
	if err != nil {
		return false, err
	}
	rows, err := stmt.query(ctx, []any{l.row})
	if err != nil {
		return false, err
	}
	defer rows.close()
	same = l.row == 0
	for rows.Next() {
		var r laterRow
		if err := rows.Scan(&r.row, &r.id, &r.run, &r.task, &r.generation, &r.kind, &r.accounted, &r.rework, &r.charge); err != nil {
			return false, err
		}
		if !same {
			if same = r.row == l.row && r.id == l.id; !same {
				return false, nil
			}
			continue
		}
		l.count(r)
	}
	l.expire()
	return same, rows.Err()
}

// count adds a committed row of another connection.
func (l *ledger) count(r laterRow) {
	l.row, l.id = r.row, r.id
	if entry, ok := l.runs[r.run]; ok {
		if r.kind == schema.New {
			entry.created++
		}
		entry.unnoted++
		l.runs[r.run] = entry
	}
	if entry, ok := l.tasks[r.task]; ok {
		l.tasks[r.task] = entry.plus(r.generation, r.rework, r.charge)
	}
	if !r.accounted {
		l.unaccounted[r.run] = true
	}
}

func (e taskEntry) plus(generation, rework, charge int64) taskEntry {
	return taskEntry{max(e.generation, generation), max(e.rework, rework), e.charged + charge, e.unnoted + 1}
}

// expire forgets what another connection may have changed without a new row.
func (l *ledger) expire() {
	for run, entry := range l.runs {
		if entry.current {
			l.runs[run] = runEntry{created: entry.created, unnoted: entry.unnoted}
		}
	}
}
