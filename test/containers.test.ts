// The files for containers, as far as they can be judged without an engine for them: compose gives
// nodes only settings that there are, engines only settings that are safe, and the image holds what
// the program imports. (PROTOCOL 3.1, CONTRACT 0 "Settings")

import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs'
import { readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { loadSettings } from '../config/load.ts'

const ROOT = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

interface Service {
  readonly image: string
  readonly command?: string
  readonly environment?: Record<string, string>
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly depends_on?: Record<string, { readonly condition: string }>
  readonly volumes?: readonly string[]
  readonly configs?: readonly { readonly source: string }[]
}

interface Compose {
  readonly services: Record<string, Service>
  readonly configs: Record<string, { readonly content: string }>
  readonly volumes: Record<string, unknown>
}

/** As compose reads it, with nothing set in its environment. */
const COMPOSE = parse(
  read('docker-compose.yml').replaceAll(/\$\{\w+:-([^}]*)\}/g, (_, initial: string) => initial),
  { merge: true },
) as Compose
const NODES = Object.entries(COMPOSE.services).filter(([name]) => name.startsWith('kontor-'))
const ENGINES = ['redis', 'cassandra', 'elasticsearch'] as const

t.test('three nodes, each by its name, with settings that there are', async (t) => {
  t.equal(NODES.length, 3)
  const ids = new Set<string>()
  for (const [name, { environment = {}, depends_on }] of NODES) {
    const loaded = loadSettings(environment, [], () => '')
    if ('problems' in loaded) t.fail(loaded.problems.join('\n'))
    else {
      const { memberId, storageDriver, cluster } = loaded.ok
      t.equal(memberId, name)
      t.equal(storageDriver, 'cluster')
      t.match(cluster.redisUrls, ['redis://redis:6379'])
      t.match(cluster.cassandra.contactPoints, ['cassandra:9042'])
      t.match(cluster.elasticsearch.urls, [/^http:\/\/elasticsearch:9200\/?$/])
      ids.add(memberId)
    }
    for (const engine of ENGINES) t.equal(depends_on?.[engine]?.condition, 'service_healthy')
  }
  t.equal(ids.size, 3)
})

t.test('the image is restarted when it is dead, not when it is not ready', async (t) => {
  const check = read('Dockerfile').match(/^HEALTHCHECK [^]*?CMD (\[.*\])$/m)?.[1]
  t.strictSame(JSON.parse(check ?? '[]'), ['node', 'cli/is-alive.mjs'])
  t.match(read('cli/is-alive.mjs'), "path: '/health/live'")
})

t.test('engines are watched, keep their data, and keep what they acknowledge', async (t) => {
  for (const engine of ENGINES) {
    const { healthcheck, volumes } = COMPOSE.services[engine]!
    t.ok(healthcheck)
    t.ok(volumes?.[0]?.startsWith(`${engine}:`))
    t.ok(engine in COMPOSE.volumes)
  }
  const { environment } = COMPOSE.services['cassandra']!
  const options = environment!['JVM_EXTRA_OPTS']!.split(' ')
  for (const setting of ['commitlog_sync=group', 'commitlog_sync_period=0ms', 'paxos_variant=v2']) {
    t.ok(options.includes(`-Dcassandra.settings.${setting}`), setting)
  }
  t.ok(options.includes('-Dcassandra.config.allow_system_properties=true'))
  t.match(COMPOSE.services['redis']!.command, /--maxmemory-policy noeviction/)
})

t.test('the proxy knows every node, and HAProxy its settings', async (t) => {
  const { content } = COMPOSE.configs['proxy']!
  for (const [name] of NODES) {
    t.equal(content.split(`server ${name} ${name}:8080 check`).length, 3, name)
  }
  t.match(content, 'option httpchk GET /health/ready')
  const dir = mkdtempSync(join(tmpdir(), 'kontor-proxy-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'haproxy.cfg')
  writeFileSync(file, content)
  const checked = spawnSync('haproxy', ['-c', '-f', file], { encoding: 'utf8' })
  // Only where it is installed: it is part of no set-up here.
  if (checked.error === undefined) t.equal(checked.status, 0, 'haproxy -c')
})

t.test('the image holds what the program imports', async (t) => {
  const dockerfile = read('Dockerfile')
  const letThrough = read('.dockerignore').split('\n')
  for (const folder of ['protocol', 'config', 'commerce', 'storage', 'cluster', 'node']) {
    t.match(dockerfile, `COPY ${folder} ${folder}\n`)
    t.ok(letThrough.includes(`!${folder}`), folder)
  }
  for (const [, from] of dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)) {
    for (const path of from!.split(' ')) {
      t.ok(existsSync(join(ROOT, path)), path)
      t.ok(letThrough.includes(`!${path}`), path)
    }
  }
  t.match(dockerfile, /^FROM node:22\./m)
})

t.test('what the image holds can be packed', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-image-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const [, last] = read('Dockerfile').split(/^FROM .*bookworm-slim$/m)
  for (const [, from] of last!.matchAll(/^COPY (?!--from)(.+) \S+$/gm)) {
    for (const path of from!.split(' ')) {
      cpSync(join(ROOT, path), join(dir, path), {
        recursive: true,
        filter: (file) => !/\.test\.ts$|[\\/](testing|conformance)$/.test(file),
      })
    }
  }
  mkdirSync(join(dir, 'node_modules'))
  for (const name of readdirSync(join(ROOT, 'node_modules'))) {
    if (name !== '.cache')
      symlinkSync(join(ROOT, 'node_modules', name), join(dir, 'node_modules', name))
  }
  const packed = spawnSync(process.execPath, ['cli/packed.mjs'], { cwd: dir, encoding: 'utf8' })
  t.equal(packed.stderr, '')
  t.equal(packed.status, 0)
  t.match(read('Dockerfile'), /^RUN node cli\/packed\.mjs /m)
  const help = spawnSync(process.execPath, ['cli/node.mjs', '--help'], {
    cwd: dir,
    encoding: 'utf8',
  })
  t.match(help.stdout, /KONTOR_DATA_DIR/)
})
