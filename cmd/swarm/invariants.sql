-- The promise of the sidecar in plain SQL, for any SQLite. Each query prints
-- one line for each violation, and the first one "ok" if the file is intact.

PRAGMA integrity_check;

-- No run is over a limit of active work, of writers or of new executions after
-- any entry of the audit. A limit never decreases, so the one in force is the
-- largest so far.
WITH entry AS (
  SELECT a.id, a.run_id, a.action, r.mode, r.kind,
    CASE a.action WHEN 'extendBudget' THEN a.details ->> '$.after.max_active' ELSE 6 END AS max_active,
    CASE a.action WHEN 'extendBudget' THEN a.details ->> '$.after.max_writers' ELSE 2 END AS max_writers,
    CASE a.action WHEN 'extendBudget' THEN a.details ->> '$.after.max_created' ELSE 3 END AS max_created,
    CASE a.action WHEN 'reserve' THEN 1 WHEN 'settle' THEN -1 ELSE 0 END AS step
  FROM governor_audit a LEFT JOIN governor_reservation r USING (reservation_id)
), total AS (
  SELECT id, run_id,
    sum(step) OVER past AS active, max(max_active) OVER past AS max_active,
    sum(CASE mode WHEN 'write' THEN step ELSE 0 END) OVER past AS writers, max(max_writers) OVER past AS max_writers,
    sum(action = 'reserve' AND kind = 'new') OVER past AS created, max(max_created) OVER past AS max_created
  FROM entry WINDOW past AS (PARTITION BY run_id ORDER BY id)
)
SELECT 'audit ' || id || ': ' || run_id || ' has ' || active || ' active of ' || max_active || ', ' || writers || ' writers of '
  || max_writers || ', ' || created || ' new of ' || max_created
FROM total WHERE active > max_active OR writers > max_writers OR created > max_created;

-- No task is over its retries after any admission.
WITH entry AS (
  SELECT a.id, a.run_id, r.task_id, CASE a.action WHEN 'extendBudget' THEN a.details ->> '$.after.max_retries' ELSE 2 END AS max_retries,
    CASE a.action WHEN 'reserve' THEN a.details ->> '$.retry_charge' ELSE 0 END AS charge
  FROM governor_audit a LEFT JOIN governor_reservation r USING (reservation_id)
), allowed AS (
  SELECT id, task_id, charge, max(max_retries) OVER (PARTITION BY run_id ORDER BY id) AS max_retries FROM entry
), total AS (
  SELECT id, task_id, max_retries, sum(charge) OVER (PARTITION BY task_id ORDER BY id) AS charged FROM allowed WHERE task_id IS NOT NULL
)
SELECT 'audit ' || id || ': task ' || task_id || ' has ' || charged || ' retries of ' || max_retries FROM total WHERE charged > max_retries;

-- Nobody holds what another writes, nor writes what another holds, from the
-- admission to the settlement.
WITH hold AS (
  SELECT resource.value AS resource, r.mode, opened.id AS since, coalesce(closed.id, 1 << 62) AS until
  FROM governor_reservation r
    JOIN governor_audit opened ON opened.reservation_id = r.reservation_id AND opened.action = 'reserve'
    LEFT JOIN governor_audit closed ON closed.reservation_id = r.reservation_id AND closed.action = 'settle'
    JOIN json_each(r.payload, '$.resources') resource
), earlier AS (
  SELECT resource, mode, since, max(until) OVER past AS held, max(until) FILTER (WHERE mode = 'write') OVER past AS written
  FROM hold WINDOW past AS (PARTITION BY resource ORDER BY since ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
)
SELECT 'audit ' || since || ': ' || resource || ' is taken to ' || mode || ' while another has it' FROM earlier
WHERE written > since OR mode = 'write' AND held > since;

-- The generations of a task have neither gaps nor doubles, and follow each other.
SELECT 'task ' || task_id || ' has ' || count(*) || ' admissions up to generation ' || max(generation) FROM governor_reservation
GROUP BY task_id HAVING count(*) != max(generation) OR count(DISTINCT generation) != count(*) OR min(generation) != 1;

WITH admission AS (
  SELECT r.task_id, r.generation, a.id, lag(r.generation, 1, 0) OVER (PARTITION BY r.task_id ORDER BY a.id) AS before
  FROM governor_audit a JOIN governor_reservation r USING (reservation_id) WHERE a.action = 'reserve'
)
SELECT 'audit ' || id || ': task ' || task_id || ' goes from generation ' || before || ' to ' || generation FROM admission
WHERE generation != before + 1;

-- A task has one active admission at any time: the one before is settled first.
WITH step AS (
  SELECT a.id, r.task_id, sum(CASE a.action WHEN 'reserve' THEN 1 WHEN 'settle' THEN -1 ELSE 0 END) OVER (PARTITION BY r.task_id ORDER BY a.id) AS active
  FROM governor_audit a JOIN governor_reservation r USING (reservation_id)
)
SELECT 'audit ' || id || ': task ' || task_id || ' has ' || active || ' active admissions' FROM step WHERE active NOT IN (0, 1);

-- The audit is complete, and agrees with the rows.
-- (A ledger that was copied from a server says how many numbers it never had.)
SELECT 'the audit has ' || count(*) || ' entries up to ' || max(id) FROM governor_audit
HAVING count(*) + coalesce((SELECT CAST(value AS INTEGER) FROM sidecar_meta WHERE key = 'gaps_in_governor_audit'), 0) != coalesce(max(id), 0);

WITH told AS (
  SELECT reservation_id, sum(action = 'reserve') AS reserved, sum(action = 'bind') AS bound, sum(action = 'markUnknown') AS doubted, sum(action = 'settle') AS settled
  FROM governor_audit WHERE reservation_id IS NOT NULL GROUP BY reservation_id
)
SELECT 'reservation ' || coalesce(r.reservation_id, t.reservation_id) || ' is ' || coalesce(r.state, 'absent') || ', and the audit says otherwise'
FROM told t FULL JOIN governor_reservation r USING (reservation_id)
WHERE r.reservation_id IS NULL OR t.reservation_id IS NULL OR t.reserved != 1 OR t.bound > 1 OR t.doubted > 1
  OR (r.session_id IS NOT NULL) != t.bound OR (r.state = 'settled') != t.settled OR (r.settlement IS NOT NULL) != t.settled
  OR r.state = 'unknown' AND t.doubted = 0 OR r.state = 'running' AND (t.bound = 0 OR t.doubted = 1) OR r.state = 'reserved' AND t.bound + t.doubted > 0;

SELECT 'the admission ' || a.reservation_id || ' was audited as another one' FROM governor_audit a JOIN governor_reservation r USING (reservation_id)
WHERE a.action = 'reserve' AND (a.run_id != r.run_id OR a.details ->> '$.operation_key' != r.operation_key OR a.details ->> '$.task_id' != r.task_id
  OR a.details ->> '$.generation' + 1 != r.generation OR a.details ->> '$.mode' != r.mode OR a.details ->> '$.kind' != r.kind
  OR a.details -> '$.resources' != r.payload -> '$.resources');

-- Every reservation has the charge that was audited.
SELECT 'reservation ' || reservation_id || ' has another charge than was audited' FROM governor_reservation r
  LEFT JOIN governor_retry_charge c USING (reservation_id) LEFT JOIN governor_audit a USING (reservation_id)
WHERE a.action = 'reserve' AND (c.retry_charge IS NOT a.details ->> '$.retry_charge' OR c.rework_generation IS NOT a.details ->> '$.rework_generation');

-- What is not settled holds its resources, and nothing else does.
WITH due AS (
  SELECT r.reservation_id, resource.value AS resource_key, r.mode FROM governor_reservation r JOIN json_each(r.payload, '$.resources') resource WHERE r.state != 'settled'
)
SELECT 'the hold of ' || reservation_id || ' on ' || resource_key || ' is amiss' FROM (
  SELECT * FROM (SELECT * FROM due EXCEPT SELECT reservation_id, resource_key, mode FROM governor_hold)
  UNION ALL SELECT * FROM (SELECT reservation_id, resource_key, mode FROM governor_hold EXCEPT SELECT * FROM due));

-- The limits of every run are those that the audit came to.
SELECT run_id || ' has other limits than were audited' FROM governor_run r
WHERE json_array(max_active, max_writers, max_created, max_retries) IS NOT (
  SELECT json_array(details ->> '$.after.max_active', details ->> '$.after.max_writers', details ->> '$.after.max_created', details ->> '$.after.max_retries')
  FROM governor_audit a WHERE a.run_id = r.run_id AND a.action = 'extendBudget' ORDER BY a.id DESC LIMIT 1);
