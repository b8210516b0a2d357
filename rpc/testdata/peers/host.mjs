// What every peer does: start a sidecar on a store of its own, and lead one
// task through the contract by whatever client is handed in.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const lead = { role: 'lead', sessionId: 'peer' }

/** Runs `use` with a fresh sidecar, then ends its input and expects an orderly end. */
export async function withSidecar(name, use) {
  const root = mkdtempSync(join(tmpdir(), 'peer-'))
  const sidecar = spawn(process.env.TASKFORCE_BINARY ?? 'taskforce', ['serve', '--root', root], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exit = once(sidecar, 'exit')
  try {
    await use(sidecar)
    sidecar.stdin.end()
    const [status] = await exit
    assert.equal(status, 0, 'exit status at the end of input')
    console.log(`ok ${name}`)
  } finally {
    sidecar.kill('SIGKILL')
    rmSync(root, { recursive: true, force: true })
  }
}

/** Opens, claims, reserves, is refused, binds and settles. `call` resolves with a result or rejects. */
export async function live(call) {
  const run = 'peer run'
  const { task_id } = await call('task.open', { input: { title: 'try a client' }, runId: run, authority: lead })
  await call('task.claim', { input: { task_id, owner: 'peer', owner_session: 'agent' }, runId: run, authority: lead })
  const wanted = { operation_key: 'k', task_id, generation: 0, mode: 'write', kind: 'new', resources: ['é\u2028😀'] }
  const reservation = await call('governor.reserve', { input: wanted, runId: run, authority: lead })
  assert.deepEqual(reservation.resources, wanted.resources)
  const again = await call('governor.reserve', { input: wanted, runId: run, authority: lead })
  assert.equal(again.reservation_id, reservation.reservation_id, 'a replay finds the reservation')
  const refusal = await call('governor.reserve', {
    input: { ...wanted, operation_key: 'other' },
    runId: run,
    authority: lead,
  }).then(() => assert.fail('a stale generation was admitted'), (error) => error)
  assert.equal(refusal.code, -32002)
  assert.equal(refusal.data.code, 'E_GOVERNOR_FENCE')
  const { reservation_id, generation } = reservation
  const fence = { reservation_id, generation }
  await call('governor.bind', { input: { ...fence, session_id: 'agent' }, runId: run, authority: lead })
  const proof = { kind: 'terminal', outcome: 'succeeded', quiescent: true, evidence: 'seen' }
  const settled = await call('governor.settle', { input: { ...fence, proof }, runId: run, authority: lead })
  assert.equal(settled.state, 'settled')
  const snapshot = await call('governor.snapshot', { runId: run })
  assert.equal(snapshot.audit.length, 3)
}
