package governor_test

import (
	"fmt"
	"testing"

	"github.com/dsh-taskforce/sidecar/schema"
	"github.com/dsh-taskforce/sidecar/store/storetest/reference"
)

// Files as a writer without retry accounting left them.

// legacyRow is a reservation without retry accounting.
type legacyRow struct {
	id         string
	task       int64
	generation int64 // of the admission, from 1
	kind       schema.Kind
	state      schema.State
}

// legacyFile makes a file with one task for each evidence generation, owned by "s", and the reservations.
func legacyFile(t *testing.T, evidence []int64, rows ...legacyRow) (root string) {
	t.Helper()
	root = t.TempDir()
	statements := []string{reference.Schema}
	for i, generation := range evidence {
		statements = append(statements, fmt.Sprintf(
			"INSERT INTO task (id, title, status, owner, owner_session, run_id, created_at, updated_at, evidence_generation) VALUES (%d, 't', 'claimed', 'o', 's', 'run-1', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', %d)",
			i+1, generation))
	}
	for _, row := range rows {
		statements = append(statements, row.statements()...)
	}
	reference.Create(t, root, statements...)
	return root
}

func (r legacyRow) statements() []string {
	payload := fmt.Sprintf(`{"task_id":%d,"generation":%d,"mode":"write","kind":"%s","resources":["key of %s"]}`, r.task, r.generation-1, r.kind, r.id)
	settlement := "NULL"
	if r.state == schema.Settled {
		settlement = `'{"kind":"never_started"}'`
	}
	statements := []string{fmt.Sprintf(
		"INSERT INTO governor_reservation VALUES ('%s', 'run-1', %d, 'op %s', '%s', %d, 'write', '%s', '%s', 's', NULL, %s)",
		r.id, r.task, r.id, payload, r.generation, r.kind, r.state, settlement)}
	if r.state != schema.Settled {
		statements = append(statements, fmt.Sprintf("INSERT INTO governor_hold VALUES ('%s', 'key of %s', 'write')", r.id, r.id))
	}
	return statements
}

// asked is the request that made the row.
func (r legacyRow) asked() asking {
	return ask("op "+r.id, r.task).after(r.generation - 1).as(r.kind).writing("key of " + r.id)
}

func (r legacyRow) reservation() *schema.Reservation {
	return &schema.Reservation{ReservationID: r.id, Generation: r.generation}
}
