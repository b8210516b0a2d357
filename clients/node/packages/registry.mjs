// A package registry that serves the archives of a release from this machine, so that package managers
// choose among them as they would from the public one.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

/** Reads the packages that pack.mjs wrote to a folder. */
export function readPackages(folder) {
  return readdirSync(join(folder, 'packages')).map((name) => {
    const text = readFileSync(join(folder, 'packages', name, 'package.json'), 'utf8');
    const description = JSON.parse(text);
    const file = `${description.name.replace('@', '').replace('/', '-')}-${description.version}.tgz`;
    return { description, file, archive: readFileSync(join(folder, file)) };
  });
}

/** Serves the packages; `close` ends it. */
export async function startRegistry(packages) {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url.slice(1));
    const found = packages.find(({ description, file }) => [description.name, file].includes(path));
    if (!found) return response.writeHead(404).end('{}');
    if (path === found.file) return response.end(found.archive);
    return response.end(JSON.stringify(describe(found, `http://${request.headers.host}`)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${server.address().port}/`, close };
}

function describe({ description, file, archive }, origin) {
  const { name, version } = description;
  const digest = (algorithm, encoding) => createHash(algorithm).update(archive).digest(encoding);
  const dist = {
    tarball: `${origin}/${file}`,
    shasum: digest('sha1', 'hex'),
    integrity: `sha512-${digest('sha512', 'base64')}`,
  };
  return {
    name,
    'dist-tags': { latest: version },
    versions: { [version]: { ...description, dist } },
  };
}
