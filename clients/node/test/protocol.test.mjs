// What the client makes of a sidecar that misbehaves.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openFake } from './support.mjs';

test('replies survive being cut into bytes', async (t) => {
  const store = openFake(t, 'bytes');
  const result = await store.discover();
  assert.deepEqual(result, { text: 'a\u2028b\u2029c\u0085d\u{1f680}e\nf' });
});

test('replies survive arriving in lumps', async (t) => {
  const store = openFake(t, 'lumps');
  const results = await Promise.all([store.ping(), store.ping(), store.ping()]);
  assert.deepEqual(results, [{ id: 1 }, { id: 2 }, { id: 3 }]);
});

test('a sidecar of another protocol is refused with both versions', async (t) => {
  const expected = { code: 'E_PROTOCOL', message: 'the sidecar speaks protocol 2, this client 1' };
  await assert.rejects(openFake(t, 'newer').ping(), expected);
});

test('a sidecar that refuses our protocol is reported with both versions', async (t) => {
  await assert.rejects(openFake(t, 'refusing').ping(), (error) => {
    assert.equal(error.code, 'E_PROTOCOL');
    assert.equal(error.message, 'the sidecar speaks protocol 7, 8, this client 1');
    assert.deepEqual(error.details.supported, [7, 8]);
    return true;
  });
});

test('a program that is no sidecar is named as such', async (t) => {
  const message = /wrote to stdout what is not a message: Hello!/;
  await assert.rejects(openFake(t, 'garbage').ping(), { code: 'E_SIDECAR_START', message });
});

test('a sidecar that does not start in time is given up', async (t) => {
  const store = openFake(t, 'silent', { startTimeoutMs: 200 });
  const message = /did not answer initialize within 200 ms/;
  await assert.rejects(store.ping(), { code: 'E_SIDECAR_START', message });
});

test('a sidecar that exits at once is reported with its log', async (t) => {
  const message = /exited with 3; the end of its log:\n {2}cannot open the store: it is on fire/;
  await assert.rejects(openFake(t, 'exits').ping(), { code: 'E_SIDECAR_START', message });
});

test('a binary that cannot be executed is reported', async (t) => {
  const store = openFake(t, 'x', { binary: '/dev/null' });
  await assert.rejects(store.ping(), { code: 'E_BINARY_NOT_FOUND', message: /not a file/ });
});

test('an answer without an id does not leave its call waiting', async (t) => {
  const expected = { code: 'E_SIDECAR_LOST', message: /could not read a call: not strict JSON/ };
  await assert.rejects(openFake(t, 'no-id').ping(), expected);
});

test('a sidecar that keeps dying is given up', async (t) => {
  await assert.rejects(openFake(t, 'dies').ping(), (error) => {
    assert.equal(error.code, 'E_SIDECAR_LOST');
    assert.equal(error.details.outcome, 'unknown');
    assert.match(error.message, /was killed by SIGKILL/);
    return true;
  });
});

test('an error without data is recognised by its number', async (t) => {
  await assert.rejects(openFake(t, 'no-data').ping(), { code: 'E_STORE_BUSY' });
});

test('the log is read to its end and handed on', async (t) => {
  const lines = [];
  const store = openFake(t, 'noisy', { onLog: (line) => lines.push(line) });
  await store.ping();
  await store.close();
  assert.equal(lines.length, 100_001);
  assert.equal(lines.at(-1), 'the last words');
});

test('what the sidecar could not answer is refused before it is sent', async (t) => {
  const store = openFake(t, 'bytes');
  const nested = JSON.parse('['.repeat(80) + ']'.repeat(80));
  await assert.rejects(store.task.open({ title: '\ud800' }, 'run', {}), { code: 'E_PARSE' });
  await assert.rejects(store.call('governor.nativeAdapter', nested), { code: 'E_PARSE' });
  const long = store.task.open({ title: 'x'.repeat(4096) }, 'run', {});
  await assert.rejects(long, { code: 'E_INVALID_REQUEST', message: /reads at most 4096/ });
  assert.ok(await store.task.open({ title: '\\ud800 \u{1f680} "[[{"' }, 'run', {}));
});

test('a closed store stays closed', async (t) => {
  const store = openFake(t, 'bytes');
  await store.close();
  await assert.rejects(store.ping(), { code: 'E_STORE_CLOSED' });
  assert.equal(store.pid, undefined);
});
