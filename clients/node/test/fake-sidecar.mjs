#!/usr/bin/env node
// A sidecar that misbehaves in the way that its last argument names.
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const behaviour = process.argv.at(-1);

const initialized = {
  protocol: 1,
  server: { name: 'fake', version: '0' },
  engine: { name: 'none' },
  store: { id: 'fake', schema_version: 1, location: 'nowhere' },
  capabilities: { max_frame_bytes: 4096, max_in_flight: 8, watch: true },
  pinned: null,
};

const behaviours = {
  // Separators that are not newlines, CRLF and blank lines, one byte a write.
  async bytes({ id }) {
    const result = JSON.stringify({ text: 'a\u2028b\u2029c\u0085d\u{1f680}e\nf' });
    await writeBytes(`\r\n\n{"jsonrpc":"2.0","id":${id},"result":${result}}\r\n\n`);
  },
  // Two replies and half of a third in one write.
  async lumps({ id }) {
    lumps.push(`{"jsonrpc":"2.0","id":${id},"result":{"id":${id}}}\n`);
    if (lumps.length < 3) return;
    const text = lumps.join('');
    process.stdout.write(text.slice(0, -10));
    setImmediate(() => process.stdout.write(text.slice(-10)));
  },
  newer: ({ id }) => reply(id, { result: {} }),
  refusing: ({ id }) => reply(id, { result: {} }),
  garbage: () => process.stdout.write('Hello! This is not a sidecar.\n'),
  silent: () => {},
  'no-id': () =>
    reply(null, { error: { code: -32700, message: 'not strict JSON', data: { code: 'E_PARSE' } } }),
  // Drops its first call when asked to; the second had begun.
  cancelled({ id, method, params }) {
    if (method !== '$/cancelRequest') return console.error(`received ${id}`);
    if (params.id > 1) return reply(params.id, { result: { text: 'it had begun' } });
    const data = { code: 'E_CANCELLED', retryable: false };
    reply(params.id, { error: { code: -32800, message: 'cancelled', data } });
  },
  // Dies of its first call, then is told to drop it.
  'dies-once'(message) {
    const marker = process.argv.at(-2);
    if (existsSync(marker)) return behaviours.cancelled(message);
    writeFileSync(marker, '');
    behaviours.dies();
  },
  dies: () => process.kill(process.pid, 'SIGKILL'),
  'no-data': ({ id }) => reply(id, { error: { code: -32010, message: 'busy' } }),
  noisy: ({ id }) => {
    // Far more than a pipe holds, and the last line without its end.
    process.stderr.write(`${'noise\n'.repeat(100_000)}the last words`, () =>
      reply(id, { result: {} }),
    );
  },
};
const lumps = [];

async function writeBytes(text) {
  for (const byte of Buffer.from(text)) {
    await new Promise((resolve) => process.stdout.write(Buffer.of(byte), resolve));
  }
}

function reply(id, message) {
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...message })}\n`);
}

function initialize(id) {
  const supported = { code: 'E_INPUT', retryable: false, reason: 'protocol', supported: [7, 8] };
  if (behaviour === 'newer') reply(id, { result: { ...initialized, protocol: 2 } });
  else if (behaviour === 'refusing')
    reply(id, { error: { code: -32602, message: 'no', data: supported } });
  else if (behaviour === 'garbage') behaviours.garbage();
  else if (behaviour !== 'silent') reply(id, { result: initialized });
}

// `FILE notes-start BEHAVIOUR` appends the time of each start to a file.
if (process.argv.at(-2) === 'notes-start') appendFileSync(process.argv.at(-3), `${Date.now()}\n`);
if (behaviour === 'exits') {
  console.error('cannot open the store: it is on fire');
  process.exit(3);
}
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  if (message.method === 'initialize') initialize(message.id);
  else await behaviours[behaviour](message);
}
