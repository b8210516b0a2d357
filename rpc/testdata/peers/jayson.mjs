// jayson makes requests and batches, and reads the replies to both.
import assert from 'node:assert/strict'
import { createInterface } from 'node:readline'
import Client from 'jayson/promise/lib/client/browser/index.js'
import { lead, live, withSidecar } from './host.mjs'

await withSidecar('jayson', async (sidecar) => {
  const lines = createInterface({ input: sidecar.stdout })[Symbol.asyncIterator]()
  // One question at a time: the next line is its answer.
  const client = new Client(async (request) => {
    sidecar.stdin.write(`${request}\n`)
    return (await lines.next()).value
  })
  await live(async (method, params) => {
    const reply = await client.request(method, params)
    if (reply.error) throw reply.error
    return reply.result
  })

  const open = (title) => client.request('task.open', { input: { title }, runId: 'batch', authority: lead }, undefined, false)
  const [first, second, unknown] = await client.request([
    await open('first'),
    await open('second'),
    await client.request('no.such.method', {}, undefined, false),
  ])
  assert.equal(first.result.title, 'first')
  assert.equal(second.result.task_id, first.result.task_id + 1, 'a batch takes effect in order')
  assert.equal(unknown.error.code, -32601)
})
