// The alternative to a sidecar: a governor inside the host, on `node:sqlite`. It is as good as such
// a loop can be: every statement is prepared once, history is never scanned, each call is one
// transaction with the contract's own checks, and it has no indexes but the contract's.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

import { numbers } from './measure.mjs';
import { LIMITS, RUN_TASKS } from './workload.mjs';

const read = (name) => {
  const url = new URL(`../../../cmd/rawbench/sql/${name}.sql`, import.meta.url);
  return readFileSync(url, 'utf8');
};

export class InProcessGovernor {
  #database;
  #sql = {};

  constructor(file) {
    this.#database = new DatabaseSync(file);
    this.#database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
    this.#database.exec(read('schema'));
    for (const [, name, text] of read('statements').matchAll(/^-- (\w+)\n([^;]+);/gm)) {
      this.#sql[name] = this.#database.prepare(text);
    }
    this.#sql.begin = this.#database.prepare('BEGIN IMMEDIATE');
    this.#sql.commit = this.#database.prepare('COMMIT');
  }

  close() {
    this.#database.close();
  }

  openTasks(name, count) {
    const sql = this.#sql;
    return this.#commit(() =>
      numbers(count).map((i) => {
        const runId = `${name}-${Math.floor(i / RUN_TASKS)}`;
        if (i % RUN_TASKS === 0) sql.openRun.run(runId, ...Object.values(LIMITS));
        const session = `session-${i}`;
        const opened = sql.openTask.run(`task ${i}`, 'worker', session, runId, now(), now());
        return { runId, task_id: opened.lastInsertRowid, session };
      }),
    );
  }

  reserve(input, runId, authority) {
    const sql = this.#sql;
    const { operation_key, task_id, generation, mode, kind, resources } = input;
    const payload = { task_id, generation, mode, kind, resources: [...new Set(resources)].sort() };
    return this.#commit(() => {
      const task = this.#task(task_id, runId);
      must(!sql.replay.get(runId, operation_key));
      must(sql.generation.get(task_id).latest === generation);
      must(!sql.admitted.get(task_id));
      const limits = sql.limits.get(runId);
      const active = sql.active.get(runId);
      must(active.total < limits.max_active && active.writers < limits.max_writers);
      must(sql.created.get(runId).total < limits.max_created);
      const { rework, charged } = sql.retries.get(task_id);
      const charge = Math.max(task.evidence_generation - rework, 0);
      must(charged + charge <= limits.max_retries);
      for (const key of payload.resources) must(!sql.holders.get(key, mode));

      const id = randomUUID();
      const next = generation + 1;
      const text = JSON.stringify(payload);
      const owner = task.owner_session;
      sql.addReservation.run(id, runId, task_id, operation_key, text, next, mode, kind, owner);
      sql.addCharge.run(id, task.evidence_generation, charge);
      for (const key of payload.resources) sql.addHold.run(id, key, mode);
      const rework_generation = task.evidence_generation;
      const details = { operation_key, ...payload, rework_generation, retry_charge: charge };
      this.#audit(runId, id, 'reserve', authority, details);
      return { reservation_id: id, generation: next };
    });
  }

  bind({ reservation_id, generation, session_id }, runId, authority) {
    const sql = this.#sql;
    this.#commit(() => {
      const { state, task } = this.#latest(reservation_id, generation, runId);
      const { rework_generation } = sql.charged.get(reservation_id);
      must(rework_generation === task.evidence_generation && task.owner_session === session_id);
      must(state === 'reserved');
      sql.saveBound.run(session_id, session_id, reservation_id);
      this.#audit(runId, reservation_id, 'bind', authority, { generation, session_id });
    });
  }

  settle({ reservation_id, generation, proof }, runId, authority) {
    const sql = this.#sql;
    this.#commit(() => {
      const { state } = this.#latest(reservation_id, generation, runId);
      must(state !== 'settled');
      sql.saveSettled.run(JSON.stringify(proof), reservation_id);
      sql.release.run(reservation_id);
      this.#audit(runId, reservation_id, 'settle', authority, { generation, proof });
    });
  }

  #commit(work) {
    this.#sql.begin.run();
    const result = work();
    this.#sql.commit.run();
    return result;
  }

  #task(task_id, runId) {
    const task = this.#sql.task.get(task_id);
    must(task.run_id === runId && task.status === 'claimed');
    return task;
  }

  /** A reservation that is its task's latest admission, with the task. */
  #latest(reservation_id, generation, runId) {
    const found = this.#sql.reservation.get(reservation_id);
    must(found.run_id === runId && found.generation === generation);
    const task = this.#task(found.task_id, runId);
    must(this.#sql.generation.get(found.task_id).latest === generation);
    return { ...found, task };
  }

  #audit(runId, id, action, { role, sessionId }, details) {
    this.#sql.addAudit.run(runId, id, action, role, sessionId, JSON.stringify(details), now());
  }
}

const now = () => new Date().toISOString();

/** The workload breaks no rule; that it does not has to be checked all the same. */
function must(holds) {
  if (!holds) throw new Error('the in-process governor refused');
}
