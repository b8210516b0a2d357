// Reads the document that the sidecar serves about itself, checks it against
// OpenRPC's own meta-schema, and calls every method by what the document says:
// results and errors must be as described.
import assert from 'node:assert/strict'
import { createInterface } from 'node:readline'
import { jsonSchema } from '@json-schema-tools/meta-schema'
import { openrpcDocument as metaSchema } from '@open-rpc/meta-schema'
import Ajv from 'ajv'
import Ajv2020 from 'ajv/dist/2020.js'
import { JSONRPCClient } from 'json-rpc-2.0'
import { live, withSidecar } from './host.mjs'

const ids = { task_id: 1, id: 99 }

/** A value that the schema accepts: the smallest, but for ids and strings. */
function sample(schema, document, name) {
  if (schema.$ref) return sample(document.components.schemas[schema.$ref.split('/').pop()], document, name)
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.oneOf) return sample(schema.oneOf[0], document, name)
  switch (schema.type) {
    case 'object':
      return Object.fromEntries((schema.required ?? []).map((key) => [key, sample(schema.properties[key], document, key)]))
    case 'array':
      return Array.from({ length: schema.minItems ?? 0 }, () => sample(schema.items, document, name))
    case 'integer':
      return ids[name] ?? schema.minimum ?? 0
    case 'string':
      return name === 'method' ? 'task.list' : 'peer run'
    default:
      return {}
  }
}

await withSidecar('open-rpc', async (sidecar) => {
  const client = new JSONRPCClient((request) => void sidecar.stdin.write(`${JSON.stringify(request)}\n`))
  createInterface({ input: sidecar.stdout }).on('line', (line) => client.receive(JSON.parse(line)))
  const call = (method, params) => client.request(method, params)
  const document = await call('rpc.discover')

  const meta = new Ajv({ strict: false, validateFormats: false, validateSchema: false })
  meta.addSchema(jsonSchema, 'https://meta.json-schema.tools')
  // One of its references points into that schema; what it finds there is a URI reference.
  const text = JSON.stringify(metaSchema).replaceAll('https://meta.json-schema.tools/#/definitions/JSONSchemaObject/properties/$ref', '#/definitions/uriReference')
  const whole = JSON.parse(text)
  whole.definitions.uriReference = { type: 'string' }
  const judge = meta.compile(whole)
  assert.ok(judge(document), JSON.stringify(judge.errors?.slice(0, 3)))

  await live(call)
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema(document, 'document')
  let results = 0
  let refusals = 0
  for (const method of document.methods) {
    if (!method.result || method.name === 'shutdown') continue // notifications, and what ends the session
    const params = Object.fromEntries(method.params.filter((p) => p.required).map((p) => [p.name, sample(p.schema, document, p.name)]))
    const answer = await call(method.name, params).then((result) => ({ result }), (error) => ({ error }))
    if (answer.error) {
      refusals++
      const { code } = answer.error.data
      assert.ok(method.errors.some((e) => e.$ref.endsWith(`/${code}`)), `${method.name} answered ${code}, which it does not declare`)
      assert.ok(ajv.validate('document#/components/schemas/ErrorData', answer.error.data), `${method.name}: ${ajv.errorsText()}`)
      continue
    }
    results++
    const at = document.methods.indexOf(method)
    assert.ok(ajv.validate(`document#/methods/${at}/result/schema`, answer.result), `${method.name}: ${ajv.errorsText()}`)
  }
  assert.ok(results > 15, `only ${results} methods answered with a result, ${refusals} refused`)
})
