// Compares answers with the expectations of a transcript; clients/testdata/README.md has the rules.
const NAME = /^\$r\d+$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Replaces names by what they are bound to, at any depth. */
export function fill(value, names) {
  if (typeof value === 'string') return names.get(value) ?? value;
  if (Array.isArray(value)) return value.map((item) => fill(item, names));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, names)]));
}

/** Says where an answer differs from the expectation, or nothing; binds the names that are new. */
export function difference(want, got, names, path = '') {
  if (want === '$any') return undefined;
  const text = typeof got === 'string';
  if (want === '$time' && text && TIME.test(got)) return undefined;
  if (text && NAME.test(want) && !names.has(want)) names.set(want, got);
  if (typeof want === 'string' && (names.get(want) ?? want) === got) return undefined;
  if (Array.isArray(want) && Array.isArray(got)) return ofLists(want, got, names, path);
  if (isObject(want) && isObject(got)) return ofObjects(want, got, names, path);
  if (Object.is(want, got)) return undefined;
  return `${path}: want ${JSON.stringify(want)}, got ${JSON.stringify(got)}`;
}

function ofLists(want, got, names, path) {
  if (want.length !== got.length) return `${path}: want ${want.length} items, got ${got.length}`;
  return first(want.keys(), (i) => difference(want[i], got[i], names, `${path}/${i}`));
}

function ofObjects({ $more: more, ...want }, got, names, path) {
  const extra = Object.keys(got).find((key) => !more && !Object.hasOwn(want, key));
  if (extra) return `${path}/${extra}: is not expected: ${JSON.stringify(got[extra])}`;
  return first(Object.keys(want).sort(), (key) =>
    Object.hasOwn(got, key)
      ? difference(want[key], got[key], names, `${path}/${key}`)
      : `${path}/${key}: is missing`,
  );
}

function first(keys, differ) {
  for (const key of keys) {
    const found = differ(key);
    if (found) return found;
  }
  return undefined;
}

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
