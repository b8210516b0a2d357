package sqlite

import (
	"context"
	"fmt"

	"github.com/dsh-taskforce/sidecar/store"
)

// Now and then an admission notes what the rows up to its own amount to, so that
// a sidecar that starts reads only what came later, however much is retained:
//
//	sidecar_run_count   how many admissions of a run were new
//	sidecar_task_count  a task's generation, rework and charges
//	charged_up_to       in sidecar_meta: every reservation has a charge
//
// A note names its row by what never changes, and rows up to it only ever change
// in ways that it does not speak of. Without a note everything is read. Verify
// compares the notes with the rows.

// notedEvery is after how many admissions there is another note.
const notedEvery = 256

// firstNotes note what another writer has left in a file that is opened for the
// first time, if it kept retry accounting.
var firstNotes = []string{
	fmt.Sprintf(`INSERT OR REPLACE INTO sidecar_run_count (run_id, reservation_id, created)
		SELECT n.run_id, r.reservation_id, n.created FROM governor_reservation r
			JOIN (SELECT run_id, max(rowid) AS last, sum(kind = 'new') AS created FROM governor_reservation GROUP BY run_id HAVING count(*) >= %d) n
			ON r.rowid = n.last`, notedEvery),
	fmt.Sprintf(`INSERT OR REPLACE INTO sidecar_task_count (task_id, generation, rework_generation, charged)
		SELECT r.task_id, max(r.generation), max(c.rework_generation), sum(c.retry_charge)
			FROM governor_reservation r JOIN governor_retry_charge c USING (reservation_id)
			WHERE (SELECT count(*) FROM governor_reservation) = (SELECT count(*) FROM governor_retry_charge)
			GROUP BY r.task_id HAVING count(*) >= %d`, notedEvery),
}

// note makes the notes that are due, as part of an admission.
func (t *tx) note(r *store.Reservation) error {
	if err := t.noteCharged(r.Row, r.ReservationID); err != nil {
		return err
	}
	l := &t.conn.ledger
	if run, ok := l.runs[r.RunID]; ok && run.unnoted >= notedEvery {
		const query = "INSERT INTO sidecar_run_count (run_id, reservation_id, created) VALUES (?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET reservation_id = excluded.reservation_id, created = excluded.created"
		if err := t.exec(query, r.RunID, r.ReservationID, run.created); err != nil {
			return err
		}
		run.unnoted = 0
		l.setRun(r.RunID, run)
	}
	// What has no charge yet would not be counted when it gets one.
	if task, ok := l.tasks[r.TaskID]; ok && task.unnoted >= notedEvery && len(l.unaccounted) == 0 {
		const query = "INSERT INTO sidecar_task_count (task_id, generation, rework_generation, charged) VALUES (?, ?, ?, ?) ON CONFLICT (task_id) DO UPDATE SET generation = excluded.generation, rework_generation = excluded.rework_generation, charged = excluded.charged"
		if err := t.exec(query, r.TaskID, task.generation, task.rework, task.charged); err != nil {
			return err
		}
		task.unnoted = 0
		l.setTask(r.TaskID, task)
	}
	return nil
}

// countCreated counts the run's new admissions: those of its note, and those later.
func (t *tx) countCreated(run string) (entry runEntry, err error) {
	var noted, row int64
	const note = "SELECT n.created, r.rowid FROM sidecar_run_count n JOIN governor_reservation r USING (reservation_id) WHERE n.run_id = ?"
	if _, err := t.one(note, []any{run}, &noted, &row); err != nil {
		return entry, err
	}
	const later = "SELECT count(*), coalesce(sum(kind = 'new'), 0) FROM governor_reservation INDEXED BY sidecar_reservation_run WHERE run_id = ? AND rowid > ?"
	_, err = t.one(later, []any{run, row}, &entry.unnoted, &entry.created)
	entry.created += noted
	return entry, err
}

// countAdmissions is the same for a task.
func (t *tx) countAdmissions(task int64) (entry taskEntry, err error) {
	const query = `SELECT coalesce(n.generation, 0), coalesce(n.rework_generation, 0), coalesce(n.charged, 0),
			count(r.reservation_id), coalesce(max(r.generation), 0), coalesce(max(c.rework_generation), 0), coalesce(sum(c.retry_charge), 0)
		FROM (SELECT ?1 AS task_id) t LEFT JOIN sidecar_task_count n USING (task_id)
		LEFT JOIN governor_reservation r ON r.task_id = ?1 AND r.generation > coalesce(n.generation, 0)
		LEFT JOIN governor_retry_charge c ON c.reservation_id = r.reservation_id`
	var later taskEntry
	_, err = t.one(query, []any{task}, &entry.generation, &entry.rework, &entry.charged,
		&later.unnoted, &later.generation, &later.rework, &later.charged)
	later.generation = max(entry.generation, later.generation)
	later.rework = max(entry.rework, later.rework)
	later.charged += entry.charged
	return later, err
}

// noteCharged makes that note, as part of the admission in that row.
func (t *tx) noteCharged(row int64, reservation string) error {
	l := &t.conn.ledger
	if row%notedEvery != 0 || !l.known || len(l.unaccounted) > 0 {
		return nil
	}
	const query = "INSERT INTO sidecar_meta (key, value) VALUES ('charged_up_to', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
	return t.exec(query, reservation)
}

// everyoneCharged reports whether every reservation has a charge. What came
// after the note is looked at one by one. Without a note it compares two counts:
// a charge names its reservation by primary key, so equal counts mean that every
// reservation has one (verify reports a charge whose reservation is gone).
func (c *conn) everyoneCharged(ctx context.Context) (charged bool, err error) {
	var row int64
	const note = "SELECT rowid FROM governor_reservation WHERE reservation_id = (SELECT value FROM sidecar_meta WHERE key = 'charged_up_to')"
	found, err := c.scan(ctx, note, nil, &row)
	switch {
	case err != nil:
		return false, err
	case found:
		const later = "SELECT NOT EXISTS (SELECT 1 FROM governor_reservation r WHERE r.rowid > ? AND NOT EXISTS (SELECT 1 FROM governor_retry_charge c WHERE c.reservation_id = r.reservation_id))"
		_, err = c.scan(ctx, later, []any{row}, &charged)
	default:
		const counts = "SELECT (SELECT count(*) FROM governor_reservation) = (SELECT count(*) FROM governor_retry_charge)"
		_, err = c.scan(ctx, counts, nil, &charged)
	}
	return charged, err
}
