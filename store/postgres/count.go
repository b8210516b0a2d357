package postgres

import (
	"maps"
	"sync"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// count is what derives from a run's reservations up to the one in row, all of
// which have their charge. They are only ever appended, one after another under
// the lock of the run, so that whoever sees that one sees all before it.
type count struct {
	row         int64
	reservation string
	created     int64
}

// counted is what a process remembers, so that an admission costs the same
// whatever the run retains. What is not there is counted from the beginning.
type counted struct {
	mu   sync.Mutex
	runs map[string]count
}

// remembered bounds the runs and reservations that a process remembers.
const remembered = 100_000

func (c *counted) get(run string) count {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[run]
}

// keep remembers what a committed transaction has learnt.
func (c *counted) keep(learnt map[string]count) {
	if len(learnt) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs == nil || len(c.runs) > remembered {
		c.runs = map[string]count{}
	}
	maps.Copy(c.runs, learnt)
}

const activeOfRun = "SELECT count(*), count(*) FILTER (WHERE mode = 'write'), count(*) FILTER (WHERE state = 'unknown') FROM @governor_reservation WHERE run_digest = $1 AND state <> 'settled'"

// Usage implements [store.Tx].
func (t *tx) Usage(run string) (u store.Usage, err error) {
	known, ok := t.counted[run]
	if !ok {
		known = t.store.counted.get(run)
	}
	if _, err := t.one(activeOfRun, []any{digest(run)}, &u.Active, &u.Writers, &u.Unknown); err != nil {
		return u, err
	}
	later, err := t.countLater(run, known)
	if err == nil && later.gone { // this state does not have what was counted
		later, err = t.countLater(run, count{})
	}
	u.Created, u.Unaccounted = later.created, later.unaccounted
	if err == nil && !later.unaccounted && !later.gone {
		t.counted[run] = later.count
	}
	return u, err
}

// counting is a count with what keeps it from being remembered.
type counting struct {
	count
	unaccounted, gone bool
}

const laterOfRun = `SELECT NOT ($2 = 0 OR EXISTS (SELECT 1 FROM @governor_reservation WHERE seq = $2 AND reservation_id = $3)),
			count(*) FILTER (WHERE r.kind = 'new'), coalesce(bool_or(c.reservation_id IS NULL), false),
			max(r.seq), (array_agg(r.reservation_id ORDER BY r.seq DESC))[1]
		FROM @governor_reservation r LEFT JOIN @governor_retry_charge c USING (reservation_id)
		WHERE r.run_digest = $1 AND r.seq > $2`

// countLater goes on with a count from the row where it ended.
func (t *tx) countLater(run string, known count) (c counting, err error) {
	var row *int64
	var last *string
	c.count = known
	var created int64
	_, err = t.one(laterOfRun, []any{digest(run), known.row, known.reservation}, &c.gone, &created, &c.unaccounted, &row, &last)
	c.created += created
	if row != nil && last != nil {
		c.row, c.reservation = *row, *last
	}
	return c, err
}

// covers refuses a change of a run that the write's scope does not name: its
// lock is not held, so the change could meet another.
func (t *tx) covers(run string) error {
	if t.scope != nil {
		for _, named := range t.scope.Runs {
			if named == run {
				return nil
			}
		}
		return schema.Errorf(schema.ErrInternal, "a write left its scope")
	}
	return nil
}
