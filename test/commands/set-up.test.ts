// The set-up on a made-up folder with a made-up npm: when it installs, that it does so once however
// many start, and what becomes of a lock whose holder died.

import { execFile, spawn } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'

const HERE = join(import.meta.dirname, '../../tools/set-up')
const run = promisify(execFile)

/** A process number that nobody has: above the highest that Linux gives. */
const NOBODY = 4_194_305

const FLAGS = '--ignore-scripts --loglevel=error --no-audit --no-fund'

const LOCK = {
  packages: {
    '': {},
    'node_modules/a': { version: '1.0.0' },
    'node_modules/b': { version: '1.0.0', dev: true },
    'node_modules/c': { version: '1.0.0', optional: true, os: ['nowhere'], cpu: ['none'] },
    'node_modules/d': {
      version: '1.0.0',
      optional: true,
      os: [process.platform],
      cpu: [process.arch],
    },
  },
}

/** Without what only tests need. */
const { 'node_modules/b': _dev, ...RUNS } = LOCK.packages

/** npm ci: slow enough for others to come in between; writes a line for every run. */
const NPM = `#!/usr/bin/env node
const { appendFileSync, copyFileSync, mkdirSync, rmSync, existsSync } = require('node:fs')
appendFileSync('npm-runs', process.argv.slice(2).join(' ') + '\\n')
if (existsSync('npm-running')) appendFileSync('npm-runs', 'AT THE SAME TIME\\n')
mkdirSync('npm-running')
setTimeout(() => {
  mkdirSync('node_modules', { recursive: true })
  const installed = process.argv[2] === 'install' ? 'installed-on-22.json' : 'installed.json'
  copyFileSync(installed, 'node_modules/.package-lock.json')
  rmSync('npm-running', { recursive: true })
}, 200)
`

/** A clone with a lock file and an npm that installs `installed`. */
function folder(t: Test, installed: unknown = LOCK): string {
  const root = t.testdir({
    'package-lock.json': JSON.stringify(LOCK),
    'installed.json': JSON.stringify(installed),
    'installed-on-22.json': JSON.stringify(LOCK),
    bin: { npm: NPM, 'package.json': '{}' },
  })
  chmodSync(join(root, 'bin', 'npm'), 0o755)
  return root
}

function environment(root: string): NodeJS.ProcessEnv {
  const path = [join(root, 'bin'), dirname(process.execPath), process.env['PATH']].join(delimiter)
  const { npm_execpath: _outer, ...env } = process.env
  return { ...env, PATH: path }
}

/** Runs the set-up in a process of its own, as a start does. */
function setUp(root: string, dev = false) {
  const code = `
    import { setUp } from ${JSON.stringify(join(HERE, 'set-up.mjs'))}
    const { node } = await setUp(${JSON.stringify({ root, dev })})
    process.stdout.write(node)`
  return run(process.execPath, ['--input-type=module', '-e', code], { env: environment(root) })
}

function npmRuns(root: string): string[] {
  const path = join(root, 'npm-runs')
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
}

t.test('several starts install once, a later one not at all', async (t) => {
  const root = folder(t)
  const starts = await Promise.all([setUp(root), setUp(root), setUp(root)])
  t.strictSame(npmRuns(root), [`ci --omit=dev ${FLAGS}`])
  for (const { stdout } of starts) t.equal(stdout, process.execPath, 'this Node is a Node 22')
  await setUp(root)
  t.equal(npmRuns(root).length, 1)
})

t.test('a changed lock file is installed', async (t) => {
  const root = folder(t)
  await setUp(root)
  const changed = JSON.stringify(LOCK).replaceAll('1.0.0', '1.0.1')
  writeFileSync(join(root, 'package-lock.json'), changed)
  writeFileSync(join(root, 'installed.json'), changed)
  await setUp(root)
  t.equal(npmRuns(root).length, 2)
})

t.test('what somebody else installed counts, development packages or not', async (t) => {
  for (const packages of [LOCK.packages, RUNS]) {
    const root = folder(t)
    mkdirSync(join(root, 'node_modules'))
    const path = join(root, 'node_modules', '.package-lock.json')
    writeFileSync(path, JSON.stringify({ packages }))
    await setUp(root)
    t.strictSame(npmRuns(root), [])
  }
})

t.test('a package of this platform that npm leaves out in silence is told', async (t) => {
  const { 'node_modules/d': _native, ...packages } = LOCK.packages
  const root = folder(t, { packages })
  await t.rejects(setUp(root), /npm ci left out node_modules\/d\. Is the registry in reach\?/)
})

t.test('what npm leaves out on an old Node is installed on the packaged one', async (t) => {
  const { 'node_modules/d': _native, ...packages } = LOCK.packages
  const root = folder(t, { packages })
  const folderOfNode = `node_modules/node-${process.platform}-${process.arch}/bin`
  mkdirSync(join(root, folderOfNode), { recursive: true })
  symlinkSync(process.execPath, join(root, folderOfNode, 'node'))
  await setUp(root)
  t.strictSame(npmRuns(root), [`ci --omit=dev ${FLAGS}`, `install --no-save --omit=dev ${FLAGS}`])
})

/** The program that builds tap for its plugins. */
function withTap(root: string): void {
  const folder = join(root, 'node_modules/tap/dist/esm')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'run.mjs'), '')
}

t.test('what runs is installed by a start, what tests need is added by a test', async (t) => {
  const root = folder(t, { packages: RUNS })
  await setUp(root)
  withTap(root)
  await setUp(root, true)
  const added = [`ci --omit=dev ${FLAGS}`, `install --no-save ${FLAGS}`]
  t.strictSame(npmRuns(root), added, 'a node that runs from the folder keeps what it has')
  await setUp(root, true)
  await setUp(root)
  t.equal(npmRuns(root).length, 2)
})

t.test('who has what tests need keeps it when the lock file changes', async (t) => {
  const root = folder(t)
  withTap(root)
  await setUp(root, true)
  const changed = JSON.stringify(LOCK).replaceAll('1.0.0', '1.0.1')
  writeFileSync(join(root, 'package-lock.json'), changed)
  writeFileSync(join(root, 'installed.json'), changed)
  await setUp(root)
  t.strictSame(npmRuns(root), [`ci ${FLAGS}`, `ci ${FLAGS}`])
})

t.test(
  'of the binaries for all systems only ours stays, and another one is not ours',
  async (t) => {
    const root = folder(t)
    const own = `uws_${process.platform}_${process.arch}_127.node`
    const bin = join(root, 'node_modules/uWebSockets.js/dist/bin')
    mkdirSync(bin, { recursive: true })
    for (const name of [own, 'uws_nowhere_x64_127.node', 'uws_nowhere_x64_115.node']) {
      writeFileSync(join(bin, name), '')
    }
    await setUp(root)
    t.strictSame(readdirSync(bin), [own])

    renameSync(join(bin, own), join(bin, 'uws_nowhere_x64_127.node'))
    const elsewhere = JSON.stringify(LOCK).replaceAll('1.0.0', '1.0.2')
    writeFileSync(join(root, 'package-lock.json'), elsewhere)
    writeFileSync(join(root, 'node_modules/.package-lock.json'), elsewhere)
    await t.rejects(setUp(root), /left out node_modules\/uWebSockets\.js/)
    t.equal(npmRuns(root).length, 2, 'it is installed anew')
  },
)

t.test('an install that fails is told, and tried again by the next start', async (t) => {
  const root = folder(t)
  writeFileSync(join(root, 'bin', 'npm'), '#!/bin/sh\nexit 3\n')
  await t.rejects(setUp(root), /npm ci .*: exit code 3/)
  writeFileSync(join(root, 'bin', 'npm'), NPM)
  await setUp(root)
  t.equal(npmRuns(root).length, 1)
})

t.test('a lock whose holder died is taken over by one of those that wait', async (t) => {
  const root = folder(t)
  mkdirSync(join(root, '.set-up'))
  const dead = { token: 'old', host: hostname(), pids: [NOBODY] }
  writeFileSync(join(root, '.set-up', 'lock'), JSON.stringify(dead))
  await Promise.all([setUp(root), setUp(root), setUp(root)])
  t.equal(npmRuns(root).length, 1)
  t.notOk(existsSync(join(root, '.set-up', 'lock')))
})

t.test('a lock is held as long as what its holder started lives', async (t) => {
  const root = folder(t)
  const path = join(root, '.set-up', 'lock')
  mkdirSync(join(root, '.set-up'))
  const orphan = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: 'pipe' })
  t.teardown(() => orphan.kill())
  const held = { token: 'old', host: hostname(), pids: [NOBODY, orphan.pid] }
  writeFileSync(path, JSON.stringify(held))
  const start = setUp(root)
  await told(start.child.stderr!, /Waiting for another start/)
  t.strictSame(npmRuns(root), [])
  orphan.kill()
  await start
  t.equal(npmRuns(root).length, 1)
})

t.test('a start that is killed leaves its npm to end before another begins', async (t) => {
  const root = folder(t)
  const killed = setUp(root)
  const death = t.rejects(killed)
  const deadline = Date.now() + 10_000
  while (npmRuns(root).length === 0 && Date.now() < deadline) await turn()
  killed.child.kill('SIGKILL')
  await setUp(root)
  await death
  t.strictSame(npmRuns(root).length, 1, 'neither at the same time nor again')
})

t.test('a lock of another host is void once it has been silent for a minute', async (t) => {
  const root = folder(t)
  const path = join(root, '.set-up', 'lock')
  mkdirSync(join(root, '.set-up'))
  writeFileSync(path, JSON.stringify({ token: 'x', host: 'elsewhere', pids: [process.pid] }))
  const start = setUp(root)
  await told(start.child.stderr!, /Waiting for another start/)
  const longAgo = new Date(Date.now() - 61_000)
  utimesSync(path, longAgo, longAgo)
  await start
  t.equal(npmRuns(root).length, 1)
})

/** Resolves when a stream has said this. */
function told(stream: NodeJS.ReadableStream, what: RegExp): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = ''
    stream.on('data', (chunk) => {
      text += String(chunk)
      if (what.test(text)) resolve()
    })
    stream.on('end', () => reject(new Error(`ended with ${text}`)))
  })
}

t.test('run.mjs passes on arguments, environment, signals and the exit code', async (t) => {
  const dir = t.testdir({
    'program.ts': `
      const words: string[] = process.argv.slice(2)
      if (words.includes('--stay')) {
        process.on('SIGTERM', () => process.exit(7))
        process.stdin.resume()
      } else process.exitCode = 5
      console.log(JSON.stringify({ words, set: process.env['KONTOR_TEST'], node: process.version }))`,
  })
  const start = (...words: string[]) =>
    spawn(process.execPath, [join(HERE, '../run.mjs'), join(dir, 'program.ts'), ...words], {
      env: { ...process.env, KONTOR_TEST: 'set' },
    })
  const ends = start('--a', 'b c')
  await told(ends.stdout, /\{"words":\["--a","b c"\],"set":"set","node":"v22\.\d+\.\d+"\}\n/)
  t.equal(await exitCode(ends), 5)

  const stays = start('--stay')
  await told(stays.stdout, /--stay/)
  stays.kill('SIGTERM')
  t.equal(await exitCode(stays), 7)
})

function exitCode(child: ReturnType<typeof spawn>): Promise<number | null> {
  return new Promise((resolve) => child.on('close', (code) => resolve(code)))
}
