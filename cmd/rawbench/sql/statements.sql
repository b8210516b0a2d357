-- What a governor has to ask and write that remembers nothing between calls and
-- scans no history. Both baselines, in Go and in JavaScript, prepare these.
-- A comment of one word names the statement below it.

-- openTask
INSERT INTO task (title, status, owner, owner_session, run_id, created_at, updated_at) VALUES (?, 'claimed', ?, ?, ?, ?, ?);
-- openRun
INSERT INTO governor_run (run_id, max_active, max_writers, max_created, max_retries) VALUES (?, ?, ?, ?, ?);

-- Every call: the task, for its run, its owner and whether it is terminal.

-- task
SELECT run_id, status, owner_session, evidence_generation FROM task WHERE id = ?;

-- reserve: is it a replay, is the generation current, is the task free, is there
-- room in each budget, is the resource free. With `task`, nine in all.

-- replay
SELECT reservation_id, payload, state, owner_session FROM governor_reservation WHERE run_id = ? AND operation_key = ?;
-- generation
SELECT coalesce(max(generation), 0) AS latest FROM governor_reservation WHERE task_id = ?;
-- admitted
SELECT reservation_id FROM governor_reservation WHERE task_id = ? AND state != 'settled';
-- limits
SELECT max_active, max_writers, max_created, max_retries FROM governor_run WHERE run_id = ?;
-- active
SELECT count(*) AS total, coalesce(sum(mode = 'write'), 0) AS writers FROM governor_reservation WHERE run_id = ? AND state IN ('reserved', 'running', 'unknown');
-- created
SELECT count(*) AS total FROM governor_reservation WHERE run_id = ? AND kind = 'new';
-- retries
SELECT coalesce(max(c.rework_generation), 0) AS rework, coalesce(sum(c.retry_charge), 0) AS charged FROM governor_reservation r JOIN governor_retry_charge c USING (reservation_id) WHERE r.task_id = ?;
-- holders
SELECT reservation_id, mode FROM governor_hold WHERE resource_key = ? AND (mode = 'write' OR ? = 'write');

-- Then the four rows of an admission.

-- addReservation
INSERT INTO governor_reservation (reservation_id, run_id, task_id, operation_key, payload, generation, mode, kind, state, owner_session) VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'reserved', ?);
-- addCharge
INSERT INTO governor_retry_charge (reservation_id, rework_generation, retry_charge, source) VALUES (?, ?, ?, 'admission');
-- addHold
INSERT INTO governor_hold (reservation_id, resource_key, mode) VALUES (?, ?, ?);
-- addAudit
INSERT INTO governor_audit (run_id, reservation_id, action, role, session_id, details, created_at) VALUES (?, ?, ?, ?, ?, ?, ?);

-- bind and settle: the reservation, its task and the task's generation; bind
-- also asks for the rework generation that was charged.

-- reservation
SELECT run_id, task_id, generation, state, owner_session, session_id, mode, kind, payload, settlement FROM governor_reservation WHERE reservation_id = ?;
-- charged
SELECT rework_generation, source FROM governor_retry_charge WHERE reservation_id = ?;
-- saveBound
UPDATE governor_reservation SET state = 'running', owner_session = ?, session_id = ? WHERE reservation_id = ?;
-- saveSettled
UPDATE governor_reservation SET state = 'settled', settlement = ? WHERE reservation_id = ?;
-- release
DELETE FROM governor_hold WHERE reservation_id = ?;
