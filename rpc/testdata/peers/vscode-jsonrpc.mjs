// vscode-jsonrpc speaks Content-Length framing, as language servers do.
import assert from 'node:assert/strict'
import { CancellationTokenSource, createMessageConnection, StreamMessageReader, StreamMessageWriter } from 'vscode-jsonrpc/node'
import { live, withSidecar } from './host.mjs'

await withSidecar('vscode-jsonrpc', async (sidecar) => {
  const connection = createMessageConnection(new StreamMessageReader(sidecar.stdout), new StreamMessageWriter(sidecar.stdin))
  const changed = new Promise((resolve) => connection.onNotification('governor.changed', resolve))
  connection.listen()
  assert.equal((await connection.sendRequest('initialize', { protocol: 1 })).protocol, 1)
  await connection.sendRequest('governor.watch', { runId: 'peer run' })
  await live((method, params) => connection.sendRequest(method, params))
  assert.deepEqual(await changed, { runId: 'peer run' })

  // By position, and a cancellation that comes too late or in time: there is one answer.
  await connection.sendRequest('governor.summary', 'peer run')
  const cancelled = new CancellationTokenSource()
  const asked = connection.sendRequest('governor.snapshot', { runId: 'peer run' }, cancelled.token)
  cancelled.cancel()
  await asked.then(
    (snapshot) => assert.equal(snapshot.run_id, 'peer run'),
    (error) => assert.equal(error.code, -32800),
  )
  await connection.sendRequest('shutdown')
  const refused = await connection.sendRequest('ping').catch((error) => error)
  assert.equal(refused.data.code, 'E_SHUTTING_DOWN')
  connection.dispose()
})
