package sqlite

import (
	"database/sql"
	"fmt"
	"strings"

	"github.com/dsh-taskforce/sidecar/schema"
)

// rule is a promise that one query can check.
type rule struct {
	*promise
	table string
	// query returns the key of each row that breaks the promise, and what the
	// explanation needs besides.
	query       string
	explanation string
}

func (r rule) pass() pass {
	return pass{[]*promise{r.promise}, func(v *verification) error {
		return v.each(r.query, func(rows *sql.Rows) error {
			columns, err := rows.Columns()
			if err != nil {
				return err
			}
			values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				return err
			}
			var details []any
			for _, value := range values[1:] {
				details = append(details, value.String)
			}
			v.breach(r.promise, r.table, values[0].String, r.explanation, details...)
			return nil
		})
	}}
}

var rules = []rule{
	{&promise{"task_rows", Warning, "every task has a status and times that the contract knows", "tasks in no status of the contract"}, "task",
		`SELECT id, status FROM task WHERE status NOT IN ('open', 'claimed', 'submitted', 'rejected', 'accepted', 'cancelled', 'done', 'partial', 'failed')
			OR typeof(evidence_generation) != 'integer' OR evidence_generation < 0 OR ` + noTime("created_at") + ` OR ` + noTime("updated_at"),
		"its status %q, a time or its evidence generation is none that the contract knows"},
	{&promise{"event_rows", Fault, "every event says what, who, from and to in the contract's words", "events that say nothing known"}, "task_event",
		`SELECT id FROM task_event WHERE action NOT IN ('open', 'claim', 'submit', 'accept', 'reject', 'cancel') OR role NOT IN ('lead', 'worker')
			OR (action = 'open') != (from_status IS NULL) OR typeof(evidence_generation) != 'integer' OR evidence_generation < 0 OR ` + noTime("created_at"),
		"its action, role, former status, evidence generation or time is none that a sidecar writes"},
	{&promise{"event_task", Fault, "every event has its task, in its own run", "events whose task is gone or in another run"}, "task_event",
		`SELECT e.id, e.task_id, e.run_id FROM task_event e LEFT JOIN task k ON k.id = e.task_id WHERE k.run_id IS NOT e.run_id`,
		"there is no task %s in the run %q"},
	{&promise{"event_evidence", Fault, "no rejection of a task is forgotten", "tasks with fewer rejections than their events tell"}, "task",
		`SELECT k.id, k.evidence_generation, max(e.evidence_generation) FROM task_event e JOIN task k ON k.id = e.task_id
			GROUP BY k.id HAVING max(e.evidence_generation) > k.evidence_generation`,
		"its evidence generation is %s, but an event has seen %s"},
	// The other writer changes tasks without leaving events, so a difference is
	// one only if the task says that it was last changed by the event.
	{&promise{"event_latest", Warning, "every task is as its last event left it, unless the other writer has changed it since", "tasks that were changed without an event"}, "task",
		`SELECT k.id, k.status, k.evidence_generation, e.to_status, e.evidence_generation FROM task k
			JOIN (SELECT task_id, to_status, evidence_generation, created_at, max(id) FROM task_event GROUP BY task_id) e ON e.task_id = k.id
			WHERE k.updated_at = e.created_at AND (k.status != e.to_status OR k.evidence_generation != e.evidence_generation)`,
		"it is %s with evidence generation %s, but its last event left it %s with %s"},

	{&promise{"reservation_rows", Fault, "every reservation is in a state that the contract knows", "reservations in no state of the contract"}, "governor_reservation",
		`SELECT reservation_id, state, mode, kind, generation FROM governor_reservation
			WHERE state NOT IN ('reserved', 'running', 'unknown', 'settled') OR mode NOT IN ('read', 'write') OR kind NOT IN ('new', 'reuse', 'retry')
				OR typeof(generation) != 'integer' OR generation < 1 OR typeof(task_id) != 'integer'`,
		"its state %q, mode %q, kind %q or generation %s is none that the contract knows"},
	{uniqueKeys, "governor_reservation", "SELECT reservation_id FROM governor_reservation NOT INDEXED GROUP BY 1 HAVING count(*) > 1 OR reservation_id IS NULL",
		"several reservations have this id"},
	{uniqueKeys, "governor_reservation", "SELECT max(reservation_id), operation_key, run_id FROM governor_reservation NOT INDEXED GROUP BY 2, 3 HAVING count(*) > 1",
		"another reservation has the operation key %q in the run %q too"},
	{uniqueKeys, "governor_retry_charge", "SELECT reservation_id FROM governor_retry_charge NOT INDEXED GROUP BY 1 HAVING count(*) > 1",
		"the reservation is charged more than once"},
	{uniqueKeys, "governor_hold", "SELECT reservation_id, resource_key FROM governor_hold NOT INDEXED GROUP BY 1, 2 HAVING count(*) > 1",
		"it holds %q more than once"},
	{uniqueKeys, "governor_run", "SELECT run_id FROM governor_run NOT INDEXED GROUP BY 1 HAVING count(*) > 1",
		"the run has more than one row of limits"},

	{&promise{"limit_active", Fault, "no run has more active work than its limit", "runs over their limit of active work"}, "governor_run",
		overLimit("state != 'settled'", "max_active"), "%s admissions are active, its limit is %s"},
	{&promise{"limit_writers", Fault, "no run has more active writers than its limit", "runs over their limit of writers"}, "governor_run",
		overLimit("state != 'settled' AND mode = 'write'", "max_writers"), "%s writers are active, its limit is %s"},
	{&promise{"limit_new", Fault, "no run has created more than its limit", "runs over their limit of new executions"}, "governor_run",
		overLimit("kind = 'new'", "max_created"), "%s admissions were new, its limit is %s"},
	{&promise{"limit_values", Fault, "every limit is a positive number", "runs with a limit that admits nothing"}, "governor_run",
		fmt.Sprintf(`SELECT run_id FROM governor_run WHERE NOT (typeof(max_active) || typeof(max_writers) || typeof(max_created) || typeof(max_retries) = 'integerintegerintegerinteger'
			AND min(max_active, max_writers, max_created, max_retries) >= 1 AND max(max_active, max_writers, max_created, max_retries) <= %d)`, int64(schema.MaxInteger)),
		"one of its limits is not a positive number of the wire"},

	{&promise{"accounting", Warning, "every reservation has its retry accounting", "reservations that the next sidecar has to charge before their runs go on"}, "governor_reservation",
		`SELECT reservation_id FROM governor_reservation WHERE reservation_id NOT IN (SELECT reservation_id FROM governor_retry_charge)`,
		"an older writer left it without retry accounting; the next sidecar charges it"},
	// The sidecar notes now and then that every reservation so far has a charge.
	{&promise{"charge_lost", Fault, "no retry charge that was noted is gone", "reservations whose retry charge was noted and is gone"}, "governor_reservation",
		`SELECT reservation_id FROM governor_reservation WHERE reservation_id NOT IN (SELECT reservation_id FROM governor_retry_charge)
			AND rowid <= (SELECT n.rowid FROM governor_reservation n JOIN sidecar_meta ON n.reservation_id = value WHERE key = 'charged_up_to')`,
		"its retry charge was noted, and no sidecar looks for it again"},
	{&promise{"run_counts", Fault, "every noted count of a run's new executions agrees with its rows", "runs whose noted count of new executions is wrong"}, "sidecar_run_count",
		`SELECT n.run_id, n.created, (SELECT coalesce(sum(r.kind = 'new'), 0) FROM governor_reservation r WHERE r.run_id = n.run_id AND r.rowid <= l.rowid) AS counted
			FROM sidecar_run_count n JOIN governor_reservation l USING (reservation_id) WHERE n.created != counted`,
		"%s executions are noted as new, but %s are"},
	{&promise{"task_counts", Fault, "every noted sum of a task's admissions agrees with its rows", "tasks whose noted admissions are wrong"}, "sidecar_task_count",
		`SELECT n.task_id, n.generation, n.rework_generation, n.charged FROM sidecar_task_count n
			LEFT JOIN governor_reservation r ON r.task_id = n.task_id AND r.generation <= n.generation
			LEFT JOIN governor_retry_charge c ON c.reservation_id = r.reservation_id
			GROUP BY n.task_id HAVING max(r.generation) IS NOT n.generation OR max(c.rework_generation) IS NOT n.rework_generation OR sum(c.retry_charge) IS NOT n.charged`,
		"generation %s, rework generation %s and %s charges are noted, which is not what its rows tell"},
	{&promise{"charge_reservation", Fault, "every retry charge has its reservation", "retry charges whose reservation is gone"}, "governor_retry_charge",
		`SELECT reservation_id FROM governor_retry_charge WHERE reservation_id NOT IN (SELECT reservation_id FROM governor_reservation)`,
		"there is no such reservation"},

	{&promise{"holds_active", Fault, "every hold belongs to active work", "holds that nothing can release, because their reservation is settled or gone"}, "governor_hold",
		`SELECT h.reservation_id, h.resource_key, coalesce(r.state, 'gone') FROM governor_hold h LEFT JOIN governor_reservation r USING (reservation_id)
			WHERE coalesce(r.state, 'settled') = 'settled'`,
		"it holds %q, but is %s"},
	{&promise{"holds_exclusive", Fault, "no resource has a writer and another holder", "resources with a writer and another holder"}, "governor_hold",
		`SELECT resource_key, count(*), sum(mode != 'read') FROM governor_hold GROUP BY resource_key HAVING count(*) > 1 AND sum(mode != 'read') > 0`,
		"this resource has %s holders, of whom %s may write"},

	{&promise{"audit_rows", Fault, "every audit entry says what, who and when in the contract's words", "audit entries that say nothing known"}, "governor_audit",
		`SELECT id FROM governor_audit WHERE action NOT IN ('reserve', 'bind', 'markUnknown', 'settle', 'extendBudget') OR role NOT IN ('lead', 'worker')
			OR trim(session_id) = ''
			OR (action = 'extendBudget') != (reservation_id IS NULL) OR ` + noTime("created_at"),
		"its action, role, session or time is none that the governor writes"},
	{&promise{"audit_reservation", Fault, "every audit entry has its reservation, in its own run", "audit entries whose reservation is gone"}, "governor_audit",
		`SELECT a.id, a.action, a.reservation_id FROM governor_audit a LEFT JOIN governor_reservation r USING (reservation_id)
			WHERE a.reservation_id IS NOT NULL AND r.run_id IS NOT a.run_id`,
		"it is a %s of the reservation %q, which is gone or in another run"},
	{auditAdmission, "governor_reservation",
		`SELECT r.reservation_id, count(a.id) FROM governor_reservation r LEFT JOIN governor_audit a ON a.reservation_id = r.reservation_id AND a.action = 'reserve'
			GROUP BY r.reservation_id HAVING count(a.id) != 1`,
		"its admission is in the audit %s times"},
}

var (
	uniqueKeys = &promise{"unique_keys", Fault, "no key names two rows", "keys that name more than one row"}
	// auditAdmission is kept by the details of the entry too (verify_replay.go).
	auditAdmission = &promise{"audit_admission", Fault, "every admission is in the audit once, as it was made", "admissions that the audit has not, or otherwise"}
)

// overLimit is the query for runs with more rows of a kind than a limit allows.
func overLimit(counted, limit string) string {
	return fmt.Sprintf(`SELECT run_id, sum(%[1]s), coalesce(max(%[2]s), %[3]d) FROM governor_reservation LEFT JOIN governor_run USING (run_id)
		GROUP BY run_id HAVING sum(%[1]s) > coalesce(max(%[2]s), %[3]d)`, counted, limit, defaultLimit[limit])
}

var defaultLimit = map[string]int64{
	"max_active":  schema.DefaultLimits().MaxActive,
	"max_writers": schema.DefaultLimits().MaxWriters,
	"max_created": schema.DefaultLimits().MaxCreated,
}

// noTime is the condition that a column is not a time as both writers spell it.
func noTime(column string) string {
	const pattern = "dddd-dd-ddTdd:dd:dd.dddZ"
	return fmt.Sprintf("%s NOT GLOB '%s'", column, strings.ReplaceAll(pattern, "d", "[0-9]"))
}

var (
	auditComplete  = &promise{"audit_complete", Fault, "no entry of the audit is missing", "entries of the audit are missing"}
	eventsComplete = &promise{"events_complete", Fault, "no event is missing", "events are missing"}
)

// numbering looks for entries that were taken out: both tables count from 1,
// only ever grow, and remember the last number that they have given. Those that a
// copied ledger lacked were counted when it was copied ([Store.Import]).
func (v *verification) numbering() error {
	for _, numbered := range []struct {
		*promise
		table string
	}{{auditComplete, "governor_audit"}, {eventsComplete, "task_event"}} {
		known, err := v.conn.hasTable(v.ctx, numbered.table)
		if err != nil {
			return err
		}
		if !known {
			continue // the file has none yet, and what is seen is a shadow
		}
		var count, gaps, last, given int64
		query := fmt.Sprintf("SELECT count(*), coalesce((SELECT CAST(value AS INTEGER) FROM sidecar_meta WHERE key = 'gaps_in_%[1]s'), 0), coalesce(max(id), 0), coalesce((SELECT seq FROM main.sqlite_sequence WHERE name = '%[1]s'), 0) FROM main.%[1]s", numbered.table)
		if err := v.scan(query, &count, &gaps, &last, &given); err != nil {
			return err
		}
		if count+gaps != last || last != given {
			v.breach(numbered.promise, numbered.table, fmt.Sprint(last), "there are %d rows, the last one has the number %d, and %d numbers were given", count, last, given)
		}
	}
	return nil
}
