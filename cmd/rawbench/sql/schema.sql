-- The tables and indexes of the contract's own JavaScript store, and nothing
-- that a sidecar adds: fewer indexes make the baselines' writes cheaper.
CREATE TABLE IF NOT EXISTS task (
  id INTEGER PRIMARY KEY, title TEXT NOT NULL, note TEXT, status TEXT NOT NULL DEFAULT 'open',
  owner TEXT, owner_session TEXT, run_id TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
  evidence_policy TEXT NOT NULL DEFAULT 'legacy', verification_files TEXT, verification_command TEXT,
  verification_cwd TEXT, evidence_generation INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS idx_task_run_status ON task (run_id, status);
CREATE TABLE IF NOT EXISTS governor_run (
  run_id TEXT PRIMARY KEY,
  max_active INTEGER NOT NULL, max_writers INTEGER NOT NULL,
  max_created INTEGER NOT NULL, max_retries INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS governor_reservation (
  reservation_id TEXT PRIMARY KEY, run_id TEXT NOT NULL, task_id INTEGER NOT NULL,
  operation_key TEXT NOT NULL, payload TEXT NOT NULL, generation INTEGER NOT NULL,
  mode TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
  owner_session TEXT, session_id TEXT, settlement TEXT,
  UNIQUE(run_id, operation_key), UNIQUE(task_id, generation)
);
CREATE INDEX IF NOT EXISTS idx_governor_run ON governor_reservation(run_id, state);
CREATE UNIQUE INDEX IF NOT EXISTS idx_governor_active_task ON governor_reservation(task_id) WHERE state != 'settled';
CREATE TABLE IF NOT EXISTS governor_retry_charge (
  reservation_id TEXT PRIMARY KEY, rework_generation INTEGER NOT NULL,
  retry_charge INTEGER NOT NULL, source TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS governor_hold (
  reservation_id TEXT NOT NULL, resource_key TEXT NOT NULL, mode TEXT NOT NULL,
  PRIMARY KEY(reservation_id, resource_key)
);
CREATE INDEX IF NOT EXISTS idx_governor_resource ON governor_hold(resource_key);
CREATE TABLE IF NOT EXISTS governor_audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT, run_id TEXT NOT NULL,
  reservation_id TEXT, action TEXT NOT NULL, role TEXT NOT NULL,
  session_id TEXT NOT NULL, details TEXT NOT NULL, created_at TEXT NOT NULL
);
