package sqlite

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/dsh-taskforce/sidecar/schema"
)

// rule is a promise that the governor keeps in every transaction, as a query
// for whatever breaks it.
type rule struct {
	name string
	// level is how bad a breach is.
	level Level
	// promise is said if nothing breaks it; breach what it means that something does.
	promise, breach string
	// offenders is a query for the names of what breaks it.
	offenders string
}

func (r rule) check() check {
	return check{r.name, func(e *examination) (Level, string, error) {
		offenders, err := e.list(r.offenders)
		if err != nil || len(offenders) == 0 {
			return Fine, r.promise, err
		}
		return r.level, r.breach + ": " + some(offenders), nil
	}}
}

// ledgerChecks are the questions about the rows.
func ledgerChecks() []check {
	var checks []check
	for _, r := range rules {
		checks = append(checks, r.check())
	}
	return append(checks, check{"holds_complete", (*examination).holdsComplete})
}

var rules = []rule{
	{"reservation_rows", Fault, "every reservation is in a state that the contract knows", "reservations in no state of the contract",
		`SELECT reservation_id FROM governor_reservation
		WHERE state NOT IN ('reserved', 'running', 'unknown', 'settled') OR mode NOT IN ('read', 'write') OR kind NOT IN ('new', 'reuse', 'retry')
			OR generation < 1 OR NOT json_valid(payload) OR (state = 'settled') != (settlement IS NOT NULL)
			OR (state = 'running' AND session_id IS NULL) OR (state = 'reserved' AND session_id IS NOT NULL)`},
	{"reservation_task", Fault, "every reservation has its task, in its own run", "reservations that nothing can settle, because their task is gone or in another run",
		`SELECT reservation_id FROM governor_reservation r LEFT JOIN task k ON k.id = r.task_id WHERE k.run_id IS NOT r.run_id`},
	{"one_active", Fault, "no task has two active admissions", "tasks with more than one active admission",
		`SELECT task_id FROM governor_reservation WHERE state != 'settled' GROUP BY task_id HAVING count(*) > 1`},
	{"generations", Fault, "the admission generations of every task run from 1 without a gap", "tasks that have lost or doubled an admission",
		`SELECT task_id FROM governor_reservation GROUP BY task_id
		HAVING min(generation) != 1 OR max(generation) != count(*) OR count(DISTINCT generation) != count(*)`},

	{"limit_active", Fault, "no run has more active work than its limit", "runs over their limit of active work", overLimit("state != 'settled'", "max_active")},
	{"limit_writers", Fault, "no run has more active writers than its limit", "runs over their limit of writers", overLimit("state != 'settled' AND mode = 'write'", "max_writers")},
	{"limit_new", Fault, "no run has created more than its limit", "runs over their limit of new executions", overLimit("kind = 'new'", "max_created")},
	{"limit_retries", Fault, "no task has been admitted past its limit of retries", "admissions past the limit of retries", overRetried},
	{"limit_values", Fault, "every limit is positive", "runs with a limit that admits nothing",
		`SELECT run_id FROM governor_run WHERE min(max_active, max_writers, max_created, max_retries) < 1`},

	{"accounting", Warning, "every reservation has its retry accounting", "reservations that the next sidecar has to charge before their runs go on",
		`SELECT reservation_id FROM governor_reservation WHERE reservation_id NOT IN (SELECT reservation_id FROM governor_retry_charge)`},
	{"charge_reservation", Fault, "every retry charge has its reservation", "retry charges whose reservation is gone",
		`SELECT reservation_id FROM governor_retry_charge WHERE reservation_id NOT IN (SELECT reservation_id FROM governor_reservation)`},
	{"charge_values", Fault, "every retry charge fits its task", "retry charges below zero, or for rework that the task has not seen",
		`SELECT c.reservation_id FROM governor_retry_charge c JOIN governor_reservation r USING (reservation_id) JOIN task k ON k.id = r.task_id
		WHERE c.retry_charge < 0 OR c.rework_generation < 0 OR c.rework_generation > k.evidence_generation`},

	{"audit_reservation", Fault, "every audit entry has its reservation", "audit entries whose reservation is gone",
		`SELECT id FROM governor_audit WHERE reservation_id IS NOT NULL AND reservation_id NOT IN (SELECT reservation_id FROM governor_reservation)`},
	{"audit_admission", Fault, "every admission is in the audit once", "admissions that the audit has not, or not once",
		`SELECT reservation_id FROM governor_reservation r LEFT JOIN governor_audit a USING (reservation_id)
		GROUP BY reservation_id HAVING sum(a.action = 'reserve') IS NOT 1`},

	{"holds_active", Fault, "every hold belongs to active work", "holds that nothing can release, because their reservation is settled or gone",
		`SELECT h.resource_key FROM governor_hold h LEFT JOIN governor_reservation r USING (reservation_id) WHERE coalesce(r.state, 'settled') = 'settled'`},
	{"holds_exclusive", Fault, "no resource has a writer and another holder", "resources with a writer and another holder",
		`SELECT resource_key FROM governor_hold GROUP BY resource_key HAVING count(*) > 1 AND sum(mode != 'read') > 0`},
}

// overLimit is the query for runs with more rows of a kind than a limit allows.
func overLimit(counted, limit string) string {
	return fmt.Sprintf("SELECT run_id FROM governor_reservation LEFT JOIN governor_run USING (run_id) GROUP BY run_id HAVING sum(%s) > coalesce(max(%s), %d)",
		counted, limit, defaultLimit[limit])
}

var defaultLimit = map[string]int64{
	"max_active":  schema.DefaultLimits().MaxActive,
	"max_writers": schema.DefaultLimits().MaxWriters,
	"max_created": schema.DefaultLimits().MaxCreated,
	"max_retries": schema.DefaultLimits().MaxRetries,
}

// overRetried is the query for ordinary admissions that were charged past the
// limit. Migration may charge past it, so its own rows are no offenders.
var overRetried = fmt.Sprintf(`SELECT reservation_id FROM (
		SELECT r.reservation_id, r.run_id, c.source, sum(c.retry_charge) OVER (PARTITION BY r.task_id ORDER BY r.generation) AS charged
		FROM governor_reservation r JOIN governor_retry_charge c USING (reservation_id))
	LEFT JOIN governor_run USING (run_id)
	WHERE source = 'admission' AND charged > coalesce(max_retries, %d)`, defaultLimit["max_retries"])

// holdsComplete compares the holds of active work with what it was admitted
// for. Here and not in SQL, whose JSON functions cut a key at a NUL character.
func (e *examination) holdsComplete() (Level, string, error) {
	held, err := e.holds()
	if err != nil {
		return "", "", err
	}
	rows, err := e.conn.c.QueryContext(e.ctx, "SELECT reservation_id, mode, payload FROM governor_reservation WHERE state != 'settled'")
	if err != nil {
		return "", "", err
	}
	defer rows.Close()
	var offenders []string
	for rows.Next() {
		var id, mode, payload string
		if err := rows.Scan(&id, &mode, &payload); err != nil {
			return "", "", err
		}
		if !maps.Equal(held[id], admitted(mode, payload)) {
			offenders = append(offenders, id)
		}
	}
	if len(offenders) > 0 {
		return Fault, "active work that does not hold what it was admitted for: " + some(offenders), nil
	}
	return Fine, "active work holds what it was admitted for", rows.Err()
}

// holds returns for every reservation the resources that it holds, each with its mode.
func (e *examination) holds() (map[string]map[string]string, error) {
	rows, err := e.conn.c.QueryContext(e.ctx, "SELECT reservation_id, resource_key, mode FROM governor_hold")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	held := map[string]map[string]string{}
	for rows.Next() {
		var id, key, mode sql.NullString
		if err := rows.Scan(&id, &key, &mode); err != nil {
			return nil, err
		}
		if held[id.String] == nil {
			held[id.String] = map[string]string{}
		}
		held[id.String][key.String] = mode.String
	}
	return held, rows.Err()
}

// admitted returns the resources of a payload, each with the reservation's
// mode; none for a payload that is not JSON, which is another rule's affair.
func admitted(mode, payload string) map[string]string {
	var request struct {
		Resources []string `json:"resources"`
	}
	_ = json.Unmarshal([]byte(payload), &request)
	resources := map[string]string{}
	for _, key := range request.Resources {
		resources[key] = mode
	}
	return resources
}
