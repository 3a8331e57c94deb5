// Engines that several processes share: the first starts them, all find the same server, and the
// last takes them along, also when it was killed.

import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { until } from '../harness/patience.ts'
import { engine, ownEngine } from '../harness/engines.ts'
import { CannotRun } from '../../tools/engines/fetch.mjs'
import {
  answers,
  birthOf,
  launchDetached,
  start,
  stop,
} from '../../tools/engines/server-process.mjs'
import { leave, use, writeFailure } from '../../tools/engines/users.mjs'

const isUp = (port: number) => answers(port, 'PING\r\n', () => true)

const shared = await engine('redis')
const skip = 'skipped' in shared ? shared.skipped : false

t.test('all find the same server', { skip }, async (t) => {
  t.strictSame(await engine('redis'), shared)
  const { port } = shared as { port: number }
  t.ok(await isUp(port))
})

t.test('an engine of its own keeps port and data over kill and start', { skip }, async (t) => {
  const own = await ownEngine(t, 'redis')
  if ('skipped' in own) throw new Error(own.skipped)
  const { port } = own
  const send = (text: string, expected: string) =>
    answers(port, text, (answer) => answer.toString().startsWith(expected))
  t.ok(await send('SET a 1\r\n', '+OK'))
  t.not(port, (shared as { port: number }).port)
  await own.stop()
  t.notOk(await isUp(port))
  await own.start()
  t.equal(own.port, port)
  t.ok(await send('GET a\r\n', '$1\r\n1'))
  await own.kill()
  t.notOk(await isUp(port))
})

const SHARED = "(await users.use(dir, 'redis')).port"
const OWN = `(await server.start(ENGINES.redis, { dir: await users.ownFolder(dir) + '/redis' })).port`

/** Uses a Redis in that folder, in a process of its own, until it is killed. */
function startUser(dir: string, port = SHARED) {
  const at = (path: string) => new URL(path, new URL('../../tools/engines/', import.meta.url)).href
  const code = `const dir = '${dir}'
    const users = await import('${at('./users.mjs')}')
    const server = await import('${at('./server-process.mjs')}')
    const { ENGINES } = await import('${at('./engines.mjs')}')
    console.log(${port})
    setInterval(() => undefined, 1_000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    env: { ...process.env, ENGINES_IDLE_MS: '1' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const told = new Promise<number>((resolve) => {
    child.stdout.once('data', (text: Buffer) => resolve(Number(text.toString())))
  })
  return { child, port: told }
}

function runFolder(t: Test): string {
  const parent = mkdtempSync(join(tmpdir(), 'kontor-users-'))
  t.teardown(() => rmSync(parent, { recursive: true, force: true }))
  return join(parent, 'run')
}

t.test('servers end with their last user, who may be killed', { skip }, async (t) => {
  const dir = runFolder(t)
  const [one, two] = [startUser(dir), startUser(dir)]
  const port = await one.port
  t.equal(await two.port, port, 'the second finds what the first has started')
  one.child.kill('SIGKILL')
  t.ok(await isUp(port), 'one user is left')
  two.child.kill('SIGKILL')
  await until('the server has ended', async () => !(await isUp(port)))
  await until('nothing is left of it', () => !existsSync(dir))
})

t.test('what a killed user had for itself ends, too', { skip }, async (t) => {
  const dir = runFolder(t)
  const [one, two] = [startUser(dir), startUser(dir, OWN)]
  const [ports, port] = [await one.port, await two.port]
  t.not(port, ports)
  two.child.kill('SIGKILL')
  await until('its server has ended', async () => !(await isUp(port)))
  t.ok(await isUp(ports), 'that of the other has not')
  one.child.kill('SIGKILL')
  await until('nothing is left', () => !existsSync(dir))
})

t.test('a server that was never noted is found by its folder', { skip }, async (t) => {
  const dir = runFolder(t)
  const user = startUser(dir)
  const port = await user.port
  rmSync(join(dir, 'redis', 'redis.json'))
  user.child.kill('SIGKILL')
  await until('the server has ended', async () => !(await isUp(port)))
  await until('nothing is left of it', () => !existsSync(dir))
})

t.test('who leaves ends the servers that nobody else uses', { skip }, async (t) => {
  const dir = runFolder(t)
  const other = startUser(dir)
  const port = await other.port
  t.equal((await use(dir, 'redis')).port, port)
  await leave(dir)
  t.ok(await isUp(port), 'the other is still there')
  other.child.kill('SIGKILL')
  await new Promise((resolve) => void other.child.once('exit', resolve))
  await leave(dir)
  t.notOk(await isUp(port))
})

t.test('what can not run is told at once, and not tried again', { skip }, async (t) => {
  const dir = runFolder(t)
  writeFailure(dir, 'redis', 'there is no Redis')
  await t.rejects(use(dir, 'redis'), /there is no Redis/)
  await leave(dir)
})

t.test('a process is known by more than its number', async (t) => {
  t.equal(birthOf(process.pid), birthOf(process.pid))
  t.not(birthOf(1), birthOf(process.pid))
  const child = spawn('true')
  const pid = child.pid!
  await new Promise((resolve) => void child.once('exit', resolve))
  t.equal(birthOf(pid), '', 'an ended process')
})

/** A server that is ready at once, but ends at its first `failures` starts. */
function fickle(failures: number) {
  const ports: number[] = []
  const engine = {
    name: 'fickle',
    program: 'sh',
    prepare: async () => undefined,
    async launch({ dir, port }: { dir: string; port: number }) {
      ports.push(port)
      const does = ports.length > failures ? 'sleep 60' : 'echo the port is taken; exit 3'
      const log = { cwd: dir, logFile: join(dir, 'log') }
      const launched = launchDetached(['sh', '-c', does], log)
      await until('it has ended', () => ports.length > failures || launched.problem() !== null)
      return { ...launched, version: '1' }
    },
    isReady: async () => ports.length > failures,
  }
  return { engine, ports }
}

t.test('a server whose port was taken meanwhile gets another', async (t) => {
  const dir = runFolder(t)
  const { engine, ports } = fickle(2)
  t.teardown(() => stop(engine, dir))
  const { port } = await start(engine, { dir })
  t.equal(ports.length, 3)
  t.equal(port, ports[2])
  t.equal(new Set(ports).size, 3)
  t.ok(
    ports.every((one) => one < 32_768),
    'none that whoever connects may be given',
  )
})

t.test('one that goes on ending is given up, and its log is told', async (t) => {
  const dir = runFolder(t)
  const { engine, ports } = fickle(Infinity)
  await t.rejects(start(engine, { dir }), new CannotRun(), 'as a machine that can not run it')
  await t.rejects(start(engine, { dir }), /exit code 3.*ends: .*the port is taken/)
  t.equal(ports.length, 6, 'three tries each')
})
