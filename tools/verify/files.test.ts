// How test files are run: which, in which order, what reaches their processes, and what is said of
// those that are stopped.

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LONGEST, testFiles } from './files.ts'
import { readTap } from './tap.mjs'

// Each of the runners is several processes, on a machine that may be busy.
t.setTimeout(240_000)

const ROOT = join(import.meta.dirname, '../..')
const TAP = join(ROOT, 'node_modules/tap/dist/esm/index.js')

/** Runs files of these bodies, one after the other; `stop` may end the runner, given its output. */
async function run(
  t: Test,
  bodies: Readonly<Record<string, string>>,
  stop: (output: string) => boolean = () => false,
) {
  const dir = t.testdir(
    Object.fromEntries(
      Object.entries(bodies).map(([name, body]) => [
        `${name}.test.ts`,
        `import t from ${JSON.stringify(TAP)}\nt.test('x', async (t) => {\n${body}\n})\n`,
      ]),
    ),
  )
  const args = [join(import.meta.dirname, 'files.ts'), '--jobs', '1', dir]
  const env = Object.entries(process.env).filter(([name]) => !/^_?TAP|^NODE_OPTIONS$/.test(name))
  const child = spawn(process.execPath, args, { env: Object.fromEntries(env) })
  let output = ''
  const hear = (text: Buffer): void => {
    output += text.toString()
    if (stop(output)) child.kill('SIGTERM')
  }
  child.stdout.on('data', hear)
  child.stderr.on('data', hear)
  const code = await new Promise((resolve) => child.on('close', resolve))
  return { code, output, ...readTap(output) }
}

t.test('all files of folders, those that take longest first', async (t) => {
  const dir = t.testdir({
    'a.test.ts': '',
    b: { 'long.test.ts': '', 'c.test.ts': '', 'c.ts': '', node_modules: { 'd.test.ts': '' } },
    'z.faults.ts': '',
  })
  const place = (path: string) => `${dir}/${path}`
  const longest = [place('b/long.test.ts'), place('nowhere.test.ts')]
  t.strictSame(
    testFiles([dir], longest),
    ['b/long.test.ts', 'a.test.ts', 'b/c.test.ts'].map(place),
    'of a folder',
  )
  const named = [place('z.faults.ts'), place('b'), place('b/c.test.ts')]
  const found = ['b/long.test.ts', 'b/c.test.ts', 'z.faults.ts'].map(place)
  t.strictSame(testFiles(named, longest), found, 'each once, named ones whatever they are called')
})

t.test('the files that take longest are there', async (t) => {
  const missing = LONGEST.filter((file) => !existsSync(join(ROOT, file)))
  t.strictSame(missing, [])
})

t.test('what tests start is started without hooks of the runner', async (t) => {
  const hooks = "[process.env.NODE_OPTIONS, ...process.execArgv].join(' ').trim() || 'none'"
  const tell = `t.comment('told: ' + (${hooks}))`
  const { code, passed, told } = await run(t, { a: `${tell}\nt.pass('fine')` })
  t.equal(code, 0)
  t.equal(passed, 1)
  t.strictSame(
    told.filter((line) => !line.startsWith('longest')),
    ['none'],
  )
})

t.test('a failure fails, the others are run; no file fails too', async (t) => {
  const found = await run(t, { a: "t.equal(1, 2, 'one is two')", b: "t.pass('fine')" })
  t.match(found, { code: 1, passed: 1, failed: 1 })
  t.match(found.failures, [/one is two/])
  t.match(await run(t, {}), { code: 1, failed: 1 })
})

t.test('stopped, it says what was under way, and begins no other', async (t) => {
  const forEver = "t.comment('begun')\nawait new Promise((r) => setTimeout(r, 60_000))"
  const bodies = { a: forEver, b: "t.pass('never')" }
  const { code, output, failures } = await run(t, bodies, (said) => said.includes('# begun'))
  t.not(code, 0)
  t.match(failures[0], /a\.test\.ts[^]*not ok/)
  t.notMatch(output, 'b.test.ts')
})
