// json-rpc-2.0 leaves the transport to its user; here it is one JSON text a line.
import { createInterface } from 'node:readline'
import { JSONRPCClient } from 'json-rpc-2.0'
import { live, withSidecar } from './host.mjs'

await withSidecar('json-rpc-2.0', async (sidecar) => {
  const client = new JSONRPCClient((request) => void sidecar.stdin.write(`${JSON.stringify(request)}\n`))
  createInterface({ input: sidecar.stdout }).on('line', (line) => client.receive(JSON.parse(line)))
  await live((method, params) => client.request(method, params))
})
