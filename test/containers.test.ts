// The files for containers, as far as they can be judged without an engine for them: compose gives
// nodes only settings that there are, engines only settings that are safe, and the image holds what
// the program imports. (PROTOCOL 3.1, CONTRACT 0 "Settings")

import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, cpSync, existsSync, linkSync, lstatSync, mkdirSync } from 'node:fs'
import { mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { keepOwnBinary } from '../tools/set-up/lean.mjs'
import { loadSettings } from '../config/load.ts'
import { until } from './harness/patience.ts'

const ROOT = join(import.meta.dirname, '..')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

interface Service {
  readonly image: string
  readonly command?: string | readonly string[]
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
  readonly networks: {
    readonly default: { readonly ipam: { readonly config: readonly { readonly subnet: string }[] } }
  }
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
    const loaded = loadSettings(environment, [], () => 'a password')
    if ('problems' in loaded) t.fail(loaded.problems.join('\n'))
    else {
      const { memberId, storageDriver, cluster } = loaded.ok
      t.equal(memberId, name)
      t.equal(storageDriver, 'cluster')
      t.match(cluster.redisUrls, ['redis://redis:6379'])
      t.equal(cluster.redis.credentials?.password, 'a password')
      t.equal(cluster.cassandra.credentials?.password, 'a password')
      t.match(cluster.elasticsearch.auth, { password: 'a password' })
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

/** The script of a service, as its shell gets it. */
function scriptOf(name: string): string {
  return (COMPOSE.services[name]!.command as readonly string[])[0]!.replaceAll('$$', '$')
}

t.test('engines want passwords, which the first start makes and keeps', async (t) => {
  const { redis, cassandra, elasticsearch, ...others } = COMPOSE.services
  t.match(redis!.command, '--aclfile /secrets/redis.acl')
  const authenticator = '-Dcassandra.settings.authenticator.class_name=PasswordAuthenticator'
  t.ok(cassandra!.environment!['JVM_EXTRA_OPTS']!.split(' ').includes(authenticator))
  t.match(elasticsearch!.environment, {
    'xpack.security.enabled': 'true',
    ELASTIC_PASSWORD_FILE: '/secrets/elasticsearch',
  })
  for (const service of [redis!, elasticsearch!, ...Object.values(others)]) {
    if (!service.volumes?.includes('secrets:/secrets:ro')) continue
    t.equal(service.depends_on?.['secrets']?.condition, 'service_completed_successfully')
  }
  const dir = mkdtempSync(join(tmpdir(), 'kontor-secrets-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const make = (): Record<string, string> => {
    // Whoever runs this test can't give files away.
    const script = `chown() { :; }\n${scriptOf('secrets').replace('/secrets', dir)}`
    const { status, stderr } = spawnSync('sh', ['-euc', script], { encoding: 'utf8' })
    t.equal(status, 0, stderr)
    return Object.fromEntries(
      readdirSync(dir).map((name) => [name, readFileSync(join(dir, name), 'latin1')]),
    )
  }
  const { 'redis.acl': acl, ...passwords } = make()
  t.strictSame(Object.keys(passwords).sort(), [...ENGINES].sort())
  for (const [name, password] of Object.entries(passwords)) {
    t.match(password, /^[0-9a-f]{48}$/)
    t.equal(statSync(join(dir, name)).mode & 0o777, 0o400, 'Elasticsearch refuses any other')
  }
  t.equal(new Set(Object.values(passwords)).size, ENGINES.length)
  const digest = createHash('sha256').update(passwords['redis']!).digest('hex')
  t.equal(acl, `user default on #${digest} ~* &* +@all\n`)
  t.strictSame(make(), { 'redis.acl': acl, ...passwords }, 'the next start finds them')
  const checked = spawnSync('bash', ['-n', '-c', scriptOf('cassandra-login')], { encoding: 'utf8' })
  t.equal(checked.stderr, '')
  t.equal(checked.status, 0)
})

t.test('the proxy knows every node, and HAProxy its settings', async (t) => {
  const { content } = COMPOSE.configs['proxy']!
  for (const [name] of NODES) {
    t.equal(content.split(`server ${name} ${name}:8080 check`).length, 3, name)
  }
  t.match(content, 'option httpchk GET /health/ready')
  t.match(content, /del-header X-Forwarded-For\n +option forwardfor\n/, 'it alone says who calls')
  const network = COMPOSE.networks.default.ipam.config[0]!.subnet
  for (const [name, { environment }] of NODES) {
    t.equal(environment?.['KONTOR_HTTP_FORWARDED_FROM'], network, name)
  }
  const dir = mkdtempSync(join(tmpdir(), 'kontor-proxy-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  const file = join(dir, 'haproxy.cfg')
  writeFileSync(file, content)
  const checked = spawnSync('haproxy', ['-c', '-f', file], { encoding: 'utf8' })
  // Only where it is installed: it is part of no set-up here.
  if (checked.error === undefined) t.equal(checked.status, 0, 'haproxy -c')
})

/** What the Dockerfile copies out of this folder. */
function copied(): string[] {
  const lines = [...read('Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)]
  return lines.flatMap(([, from]) => from!.split(' '))
}

t.test('the image holds what the program imports', async (t) => {
  const letThrough = read('.dockerignore').split('\n')
  const paths = copied()
  const parts = ['protocol', 'config', 'commerce', 'storage', 'cluster', 'node', 'tools', 'cli']
  for (const folder of parts) t.ok(paths.includes(folder), folder)
  for (const path of paths) {
    t.ok(existsSync(join(ROOT, path)), path)
    t.ok(letThrough.includes(`!${path}`), path)
  }
  t.match(read('Dockerfile'), /^FROM node:22\.\S+-bookworm-slim AS build$/m)
  // The C library that the binaries were made for.
  t.match(read('Dockerfile'), /^FROM debian:bookworm-slim$/m)
})

/** Packages of the lock file that only tests and checks need. */
function development(): Set<string> {
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { dev?: boolean; name?: string }>
  }
  return new Set(Object.keys(packages).filter((path) => packages[path]!.dev === true))
}

/** The packages that run, as links, so that a copy of them costs nothing. */
function linkPackages(to: string): void {
  const left = development()
  const link = (path: string): void => {
    mkdirSync(join(to, path), { recursive: true })
    for (const entry of readdirSync(join(ROOT, path), { withFileTypes: true })) {
      const inner = `${path}/${entry.name}`
      if (left.has(inner) || entry.name === '.cache') continue
      if (entry.isDirectory()) link(inner)
      else if (entry.isFile()) linkOrCopy(join(ROOT, inner), join(to, inner))
    }
  }
  link('node_modules')
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch {
    copyFileSync(from, to)
  }
}

function bytesIn(dir: string): number {
  let bytes = 0
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += lstatSync(join(entry.parentPath, entry.name)).size
  }
  return bytes
}

const MB = 1_000_000
/** debian:bookworm-slim, unpacked. */
const BASE_BYTES = 75 * MB

t.test('the image is packed, is small, and serves', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-image-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  for (const path of copied()) {
    cpSync(join(ROOT, path), join(dir, path), {
      recursive: true,
      filter: (file) => !/\.test\.ts$|[\\/](testing|conformance)$/.test(file),
    })
  }
  linkPackages(dir)
  const run = (...args: string[]) =>
    spawnSync(process.execPath, args, { cwd: dir, encoding: 'utf8' })
  const [, steps = ''] = /^RUN (node tools\/start\/packed\.mjs .*)$/m.exec(read('Dockerfile'))!
  for (const step of steps.split(' && ')) {
    const { stderr, status } = run(...step.replace(/^node /, '').split(' '))
    t.strictSame([stderr, status], ['', 0], step)
  }
  const uws = readdirSync(join(dir, 'node_modules/uWebSockets.js/dist/bin'))
  t.strictSame(uws, [`uws_${process.platform}_${process.arch}_${process.versions.modules}.node`])
  t.notOk(existsSync(join(dir, 'node_modules/tap')))
  const total = BASE_BYTES + statSync(process.execPath).size + bytesIn(dir)
  t.ok(total < 250 * MB, `${Math.round(total / MB)} MB`)
  t.match(run('cli/node.mjs', '--help').stdout, /KONTOR_DATA_DIR/)
  t.match(run('cli/verify-log.ts', '--help').stdout, /--data/, 'and its commands')

  const data = join(dir, 'data')
  const env = { PATH: process.env['PATH'], KONTOR_HTTP_PORT: '0', KONTOR_DATA_DIR: data }
  const child = spawn(process.execPath, ['cli/node.mjs'], { cwd: dir, env })
  t.teardown(() => child.kill('SIGKILL'))
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => void (said += bytes.toString()))
  }
  const port = (): string => /is up at http:\/\/[^:]+:(\d+)/.exec(said)?.[1] ?? ''
  await until('it is up', () => port() !== '' || child.exitCode !== null)
  await until('it is ready', async () => {
    const answer = await fetch(`http://127.0.0.1:${port()}/health/ready`).catch(() => null)
    await answer?.arrayBuffer()
    return answer?.status === 200 || child.exitCode !== null
  })
  t.equal(child.exitCode, null, said)
  for (const [path, count] of [
    ['/graphiql', 7],
    ['/live', 2],
  ] as const) {
    const page = `http://127.0.0.1:${port()}${path}`
    const text = await (await fetch(page)).text()
    const files = [...text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, file]) => file!)
    t.equal(files.length, count)
    for (const file of files) t.equal((await fetch(new URL(file, page))).status, 200, file)
  }
})

t.test('what running needs is under 450 MB', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-packages-'))
  t.teardown(() => rmSync(dir, { recursive: true }))
  linkPackages(dir)
  keepOwnBinary(dir)
  const bytes = bytesIn(dir)
  t.ok(bytes < 450 * MB, `${Math.round(bytes / MB)} MB`)
  t.match(read('tools/set-up/set-up.mjs'), "['--omit=dev']")
})
