package postgres

import (
	"maps"
	"slices"
	"sync"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// What derives from retained rows is counted once: a process remembers how far
// it has counted and reads only what came later, so that an admission costs the
// same whatever the run retains. The rows of a run are only ever appended, one
// after another under its lock, so whoever sees the last one that was counted
// sees all before it; who does not, counts from the beginning. Rows that lack
// their charge are not remembered, because it is still to come.

// runCount is what is remembered of a run's reservations up to one.
type runCount struct {
	row         int64
	reservation string
	created     int64
}

// taskCount is what is remembered of a task's admissions up to one.
type taskCount struct {
	reservation string
	store.Admissions
}

// counts are by run and by task.
type counts struct {
	runs  map[string]runCount
	tasks map[int64]taskCount
}

func newCounts() counts { return counts{map[string]runCount{}, map[int64]taskCount{}} }

func (c counts) clone() counts { return counts{maps.Clone(c.runs), maps.Clone(c.tasks)} }

// counted is what the process remembers.
type counted struct {
	mu sync.Mutex
	counts
}

// remembered bounds the runs, tasks and reservations that a process remembers.
const remembered = 100_000

func (c *counted) run(run string) runCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[run]
}

func (c *counted) task(task int64) taskCount {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tasks[task]
}

// keep remembers what a committed transaction has learnt.
func (c *counted) keep(learnt counts) {
	if len(learnt.runs)+len(learnt.tasks) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs == nil || len(c.runs)+len(c.tasks) > remembered {
		c.counts = newCounts()
	}
	maps.Copy(c.runs, learnt.runs)
	maps.Copy(c.tasks, learnt.tasks)
}

const activeOfRun = "SELECT count(*), count(*) FILTER (WHERE mode = 'write'), count(*) FILTER (WHERE state = 'unknown') FROM @governor_reservation WHERE run_digest = $1 AND state <> 'settled'"

// Usage implements [store.Tx].
func (t *tx) Usage(run string) (u store.Usage, err error) {
	known, ok := t.counts.runs[run]
	if !ok {
		known = t.store.counted.run(run)
	}
	if _, err := t.one(activeOfRun, []any{digest(run)}, &u.Active, &u.Writers, &u.Unknown); err != nil {
		return u, err
	}
	now, gone, unaccounted, err := t.countRun(run, known)
	if err == nil && gone {
		now, _, unaccounted, err = t.countRun(run, runCount{})
	}
	u.Created, u.Unaccounted = now.created, unaccounted
	if err == nil && !unaccounted {
		t.counts.runs[run] = now
	}
	return u, err
}

const laterOfRun = `SELECT NOT ($2 = 0 OR EXISTS (SELECT 1 FROM @governor_reservation WHERE seq = $2 AND reservation_id = $3)),
		count(*) FILTER (WHERE r.kind = 'new'), coalesce(bool_or(c.reservation_id IS NULL), false),
		max(r.seq), (array_agg(r.reservation_id ORDER BY r.seq DESC))[1]
	FROM @governor_reservation r LEFT JOIN @governor_retry_charge c USING (reservation_id)
	WHERE r.run_digest = $1 AND r.seq > $2`

// countRun goes on with a count from where it ended. gone says that this state
// does not have what was counted.
func (t *tx) countRun(run string, known runCount) (now runCount, gone, unaccounted bool, err error) {
	var row *int64
	var last *string
	var created int64
	_, err = t.one(laterOfRun, []any{digest(run), known.row, known.reservation}, &gone, &created, &unaccounted, &row, &last)
	now = known
	now.created += created
	if row != nil && last != nil {
		now.row, now.reservation = *row, *last
	}
	return now, gone, unaccounted, err
}

// Admissions implements [store.Tx].
func (t *tx) Admissions(task int64) (store.Admissions, error) {
	known, ok := t.counts.tasks[task]
	if !ok {
		known = t.store.counted.task(task)
	}
	now, gone, unaccounted, err := t.countTask(task, known)
	if err == nil && gone {
		now, _, unaccounted, err = t.countTask(task, taskCount{})
	}
	if err == nil && !unaccounted {
		t.counts.tasks[task] = now
	}
	return now.Admissions, err
}

const laterOfTask = `SELECT NOT ($2 = 0 OR EXISTS (SELECT 1 FROM @governor_reservation WHERE task_id = $1 AND generation = $2 AND reservation_id = $3)),
		coalesce(bool_or(c.reservation_id IS NULL), false),
		max(r.generation), (array_agg(r.reservation_id ORDER BY r.generation DESC))[1],
		coalesce(max(c.rework_generation), 0), coalesce(sum(c.retry_charge), 0)::bigint
	FROM @governor_reservation r LEFT JOIN @governor_retry_charge c USING (reservation_id)
	WHERE r.task_id = $1 AND r.generation > $2`

// countTask is countRun for a task.
func (t *tx) countTask(task int64, known taskCount) (now taskCount, gone, unaccounted bool, err error) {
	var generation *int64
	var last *string
	var rework, charged int64
	_, err = t.one(laterOfTask, []any{task, known.Generation, known.reservation}, &gone, &unaccounted, &generation, &last, &rework, &charged)
	now = known
	now.ReworkGeneration = max(now.ReworkGeneration, rework)
	now.Charged += charged
	if generation != nil && last != nil {
		now.Generation, now.reservation = *generation, *last
	}
	return now, gone, unaccounted, err
}

// covers refuses a change of a run that the write's scope does not name: its
// lock is not held, so the change could meet another.
func (t *tx) covers(run string) error {
	if t.scope == nil || slices.Contains(t.scope.Runs, run) {
		return nil
	}
	return schema.Errorf(schema.ErrInternal, "a write left its scope")
}
