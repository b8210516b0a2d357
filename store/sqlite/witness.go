package sqlite

import (
	"context"

	"github.com/dsh-taskforce/sidecar/schema"
)

// mark names the last entries of the two histories that a transaction has added:
// its audit entry and its task event, with their times. Histories only grow, so
// a ledger that no longer has them is not the one that they were added to.
type mark struct {
	audit, event     int64
	auditAt, eventAt string
}

// witness remembers what the process has acknowledged last.
func (s *Store) witness(m mark) {
	last := mark{}
	if before := s.acknowledged.Load(); before != nil {
		last = *before
	}
	if m.audit > 0 {
		last.audit, last.auditAt = m.audit, m.auditAt
	}
	if m.event > 0 {
		last.event, last.eventAt = m.event, m.eventAt
	}
	s.acknowledged.Store(&last)
}

// recognize refuses a ledger that is not the one that was opened, or has lost
// what the process has acknowledged: another was restored over the file. Whoever
// did that is asked to let the sidecars end, so that no host goes on unaware.
func (c *conn) recognize(ctx context.Context, id string, last *mark) error {
	s := c.store
	if known := s.identity.ID; known != "" && id != known {
		return schema.Errorf(schema.ErrStoreReplaced, "another store was restored over the database %s", s.path)
	}
	if last == nil {
		return nil
	}
	var audit, event bool
	const query = "SELECT ?1 = 0 OR EXISTS (SELECT 1 FROM governor_audit WHERE id = ?1 AND created_at = ?2), ?3 = 0 OR EXISTS (SELECT 1 FROM task_event WHERE id = ?3 AND created_at = ?4)"
	if _, err := c.scan(ctx, query, []any{last.audit, last.auditAt, last.event, last.eventAt}, &audit, &event); err != nil {
		return err
	}
	if !audit || !event {
		return schema.Errorf(schema.ErrStoreReplaced, "the database %s has lost what was acknowledged: an older state was restored over it", s.path)
	}
	return nil
}
