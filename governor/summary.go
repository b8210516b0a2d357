package governor

import (
	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store"
)

// Summary returns the bounded view of a run: it grows with the active work and
// not with the history.
func Summary(tx store.Tx, p *schema.RunParams) (*schema.Summary, error) {
	limits, err := tx.Limits(p.RunID)
	if err != nil {
		return nil, err
	}
	usage, err := tx.Usage(p.RunID)
	if err != nil {
		return nil, err
	}
	s := &schema.Summary{RunID: p.RunID, Limits: limits, Used: usage.Usage, Remaining: remaining(limits, usage.Usage)}
	if s.Executions, err = tx.Executions(p.RunID); err != nil {
		return nil, err
	}
	for _, e := range s.Executions {
		admissions, err := tx.Admissions(e.TaskID)
		if err != nil {
			return nil, err
		}
		s.Retries = append(s.Retries, schema.TaskRetries{
			TaskID: e.TaskID, Charged: admissions.Charged, Remaining: max(limits.MaxRetries-admissions.Charged, 0),
		})
	}
	s.Holds, err = tx.Holds(p.RunID)
	return s, err
}

// remaining is what is left of each limit. Migration can leave less than nothing; that reads as 0.
func remaining(l schema.Limits, u schema.Usage) schema.Remaining {
	return schema.Remaining{
		Active: max(l.MaxActive-u.Active, 0), Writers: max(l.MaxWriters-u.Writers, 0), Created: max(l.MaxCreated-u.Created, 0),
	}
}
