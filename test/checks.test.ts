// The checks of tools/verify/steps.mjs, checked: on a small clean project each passes; on one with
// a planted fault for every rule each fails and names it. A check that can't fail is no check.

import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, posix } from 'node:path'
import t, { type Test } from 'tap'
import { runStep, STEPS } from '../tools/verify/steps.mjs'

const ROOT = join(import.meta.dirname, '..')
const TOOL_FILES = [
  '.dependency-cruiser.cjs',
  '.gitignore',
  '.oxfmtrc.json',
  '.oxlintrc.json',
  '.taprc',
  'knip.json',
  'package.json',
  'tsconfig.json',
]
const FOLDERS = [
  'protocol',
  'config',
  'commerce',
  'storage',
  'cluster',
  'node',
  'tools',
  'cli',
  'bench',
  'test',
  'examples',
]

const { CI: _ci, ...OUTER } = process.env
const ENV = {
  ...OUTER,
  PATH: [
    dirname(process.execPath),
    join(ROOT, 'node_modules', '.bin'),
    process.env['PATH'] ?? '',
  ].join(delimiter),
}

/** A step by its name, without what tap puts into the environment of all that a test starts. */
function stepNamed(name: string) {
  const step = STEPS.find((candidate) => candidate.name === name)!
  const ofTap = Object.keys(process.env).filter((variable) => /^_?TAP/.test(variable))
  const without = ['NODE_OPTIONS', ...ofTap].flatMap((variable) => ['-u', variable])
  return { ...step, command: ['env', ...without, ...step.command] }
}

type Files = Readonly<Record<string, string>>

/** A project that every check passes: what node/main.ts uses is used, and nothing else is there. */
const CLEAN: Files = {
  'protocol/fact.ts': '// A fact.\n\nexport const fact: number = 1\n',
  'node/main.ts':
    "// Tells it.\n\nimport { fact } from '../protocol/fact.ts'\n\nprocess.exitCode = fact\n",
  'test/fact.test.ts':
    "// Tests it.\n\nimport t from 'tap'\n" +
    "import { fact } from '../protocol/fact.ts'\n\nt.equal(fact, 1)\n",
}

// Every tool starts anew for every fault that has to be alone: seconds each on a busy machine.
t.setTimeout(280_000)

/** A project of its own with our tools and these files, outside the checkout; gone at the end. */
function project(t: Test, files: Files): string {
  const root = mkdtempSync(join(tmpdir(), 'kontor-checks-'))
  t.teardown(() => rmSync(root, { recursive: true, force: true }))
  for (const name of TOOL_FILES) cpSync(join(ROOT, name), join(root, name))
  for (const folder of FOLDERS) mkdirSync(join(root, folder))
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return root
}

/** What a step says of these files: whether it failed, and its output. */
async function check(t: Test, name: string, files: Files) {
  const { counts, shown } = await runStep(stepNamed(name), { cwd: project(t, files), env: ENV })
  return { counts, shown }
}

t.test('a clean project passes', async (t) => {
  for (const { name, tap } of STEPS) {
    // The tools of this project are no dependencies that the clean project uses.
    if (name === 'dead' || tap) continue
    const { counts, shown } = await check(t, name, CLEAN)
    t.strictSame(counts, { passed: 1, failed: 0, skipped: 0 }, `${name}: ${shown}`)
  }
  const { counts, shown } = await check(t, 'tests', CLEAN)
  t.strictSame(counts, { passed: 1, failed: 0, skipped: 0 }, shown)
})

t.test('a check that sees nothing fails', async (t) => {
  for (const name of ['lint', 'imports', 'tests']) {
    const { counts } = await check(t, name, {})
    t.equal(counts.failed, 1, name)
  }
})

t.test('types', async (t) => {
  const faults: Record<string, string> = {
    TS2322: 'export const wrong: string = 1\n',
    TS7006: 'export const loose = (x) => x\n',
    TS2532: 'export const first = (xs: { y: number }[]) => xs[0].y\n',
    TS1294: 'export enum Colour {\n  Red,\n}\n',
    TS2375: 'export const maybe: { a?: string } = { a: undefined as string | undefined }\n',
    TS6133: 'export function unused(): void {\n  const x = 1\n}\n',
    TS1484: "import { Kind } from './kind.ts'\n\nexport const kind: Kind = 1\n",
  }
  const files: Record<string, string> = { 'protocol/kind.ts': 'export type Kind = number\n' }
  for (const [code, text] of Object.entries(faults)) files[`protocol/${code}.ts`] = text
  // What runs before there is a Node 22 is plain JavaScript, with types in its comments.
  const plain = ['cli/plain.mjs', 'tools/plain.mjs', 'tools/set-up/plain.mjs']
  for (const path of plain) {
    files[path] = '/** @param {number} x */\nexport const wrong = (x) => x.length\n'
  }
  const { counts, shown } = await check(t, 'types', files)
  t.equal(counts.failed, 1)
  for (const code of Object.keys(faults)) t.match(shown, `protocol/${code}.ts(`, code)
  for (const code of Object.keys(faults)) t.match(shown, `error ${code}`)
  for (const path of plain) t.match(shown, `${path}(2,31): error TS2339`)
})

const LINT_FAULTS: Record<string, string> = {
  'import/no-cycle': "import { b } from './cycle.ts'\n\nexport const a = () => b\n",
  'eslint/max-lines': `export const x = 1\n${'// \n'.repeat(500)}`,
  'eslint/max-lines-per-function': `export function f() {\n${'  void 0\n'.repeat(71)}}\n`,
  'eslint/max-params': 'export const f = (...[]: []) => (a, b, c, d, e) => [a, b, c, d, e]\n',
  'eslint/eqeqeq': 'export const same = (a: unknown, b: unknown) => a == b\n',
  'eslint/no-console': "console.log('x')\n",
  'eslint/no-unused-vars': 'const x = 1\nexport {}\n',
  'typescript/no-explicit-any': 'export const x = (y: any) => [y]\n',
  'typescript/no-floating-promises': 'export const f = async () => 1\nf()\n',
  'typescript/no-misused-promises': 'export const f = async () => true\nif (f()) f\n',
  'typescript/await-thenable': 'export const f = async () => await 1\n',
  'typescript/only-throw-error': "export function f() {\n  throw 'text'\n}\n",
  'typescript/switch-exhaustiveness-check':
    "export function f(x: 'a' | 'b'): void {\n" +
    "  switch (x) {\n    case 'a':\n      void x\n  }\n}\n",
  'typescript/consistent-type-imports':
    "import { Kind } from './kind.ts'\n\nexport const kind: Kind = 1\n",
  'typescript/prefer-readonly':
    'export class C {\n  private x = 1\n  get y() {\n    return this.x\n  }\n}\n',
}

t.test('lint, with types', async (t) => {
  const files: Record<string, string> = {
    'node/kind.ts': 'export type Kind = number\n',
    'node/cycle.ts': "import { a } from './import-no-cycle.ts'\n\nexport const b = () => a\n",
  }
  for (const [rule, text] of Object.entries(LINT_FAULTS)) {
    files[`node/${rule.replace('/', '-')}.ts`] = text
  }
  const { counts, shown } = await check(t, 'lint', files)
  t.equal(counts.failed, 1)
  for (const rule of Object.keys(LINT_FAULTS)) {
    const [plugin, name] = rule.split('/')
    const found = shown.split('\n\n').some((fault) => {
      return fault.includes(`${plugin}(${name})`) && fault.includes(`node/${plugin}-${name}.ts:`)
    })
    t.ok(found, rule)
  }
})

t.test('tests may leave a promise of t.test floating', async (t) => {
  const text = "import t from 'tap'\n\nt.test('x', async (t) => {\n  t.equal(1, 1)\n})\n"
  const { counts, shown } = await check(t, 'lint', { 'node/x.test.ts': text })
  t.equal(counts.failed, 0, shown)
})

t.test('format', async (t) => {
  const { counts, shown } = await check(t, 'format', { 'node/x.ts': 'export const x = "y";\n' })
  t.equal(counts.failed, 1)
  t.match(shown, 'node/x.ts')
})

interface ImportRules {
  readonly forbidden: readonly { readonly name: string }[]
}

/** For each rule of the import direction a file that breaks it. */
const IMPORT_FAULTS: Record<string, readonly [path: string, imported: string]> = {
  'protocol-imports-up': ['protocol/x.ts', '../config/target.ts'],
  'config-imports-up': ['config/x.ts', '../commerce/target.ts'],
  'commerce-imports-up': ['commerce/x.ts', '../storage/target.ts'],
  'storage-imports-up': ['storage/x.ts', '../commerce/target.ts'],
  'cluster-imports-up': ['cluster/x.ts', '../node/target.ts'],
  'node-imports-up': ['node/x.ts', '../cli/target.ts'],
  'tools-imports-up': ['tools/x.ts', '../config/target.ts'],
  'cli-imports-up': ['cli/x.ts', '../config/target.ts'],
  'bench-imports-up': ['bench/x.ts', '../node/target.ts'],
  'examples-imports-up': ['examples/x.ts', '../node/target.ts'],
  'room-storage-segment-log': ['storage/segment-log/x.ts', '../lmdb/target.ts'],
  'room-storage-lmdb': ['storage/lmdb/x.ts', '../sqlite/target.ts'],
  'room-storage-sqlite': ['storage/sqlite/x.ts', '../lmdb/target.ts'],
  'room-storage-cassandra': ['storage/cassandra/x.ts', '../elastic/target.ts'],
  'room-storage-elastic': ['storage/elastic/x.ts', '../cassandra/target.ts'],
  'room-storage-memory': ['storage/memory/x.ts', '../sqlite/target.ts'],
  'room-storage-embedded': ['storage/embedded/log/x.ts', '../../sqlite/target.ts'],
  'room-commerce-actor': ['commerce/actor/y.ts', '../order/state/target.ts'],
  'room-commerce-order-state': ['commerce/order/state/x.ts', '../commands/target.ts'],
  'room-commerce-order-records': ['commerce/order/records/x.ts', '../messages/target.ts'],
  'room-commerce-order-totals': ['commerce/order/totals/x.ts', '../graph/target.ts'],
  'room-commerce-order-graph': ['commerce/order/graph/x.ts', '../commands/target.ts'],
  'room-cluster-sharding': ['cluster/sharding/turn/x.ts', '../../placement/target.ts'],
  'room-cluster-feed': ['cluster/feed/x.ts', '../sharding/target.ts'],
  'room-cluster-membership': ['cluster/membership/x.ts', '../placement/target.ts'],
  'room-cluster-memory': ['cluster/memory/x.ts', '../redis/target.ts'],
  'room-cluster-redis': ['cluster/redis/x.ts', '../routing/target.ts'],
  'room-cluster-log': ['cluster/log/x.ts', '../redis/target.ts'],
  'room-cluster-routing': ['cluster/routing/x.ts', '../placement/target.ts'],
  'room-node-queues': ['node/queues/x.ts', '../http/target.ts'],
  'room-node-http': ['node/http/x.ts', '../graph/target.ts'],
  'room-node-access': ['node/access/x.ts', '../registry/target.ts'],
  'room-node-access-oauth': ['node/access/oauth/x.ts', '../../registry/target.ts'],
  'room-node-access-external': ['node/access/external/x.ts', '../../registry/target.ts'],
  'room-node-access-oauth-pages': ['node/access/oauth/pages/x.ts', '../target.ts'],
  'room-node-graph': ['node/graph/plans/x.ts', '../../indexing/target.ts'],
  'room-node-indexing': ['node/indexing/embedded/x.ts', '../../registry/target.ts'],
  'room-node-actors': ['node/actors/x.ts', '../graph/target.ts'],
  'room-node-me': ['node/me/x.ts', '../registry/target.ts'],
  'room-node-access-administration': [
    'node/access/administration/x.ts',
    '../../registry/target.ts',
  ],
  'room-node-access-activity': ['node/access/activity/x.ts', '../../registry/target.ts'],
  'room-node-iam': ['node/iam/x.ts', '../registry/target.ts'],
  'room-node-registry': ['node/registry/x.ts', '../actors/target.ts'],
  'room-node-health': ['node/health/x.ts', '../graph/target.ts'],
  'room-node-live-socket': ['node/live/socket/x.ts', '../events/target.ts'],
  'room-node-live-events': ['node/live/events/x.ts', '../../graph/target.ts'],
  'room-node-live-graphql': ['node/live/graphql/x.ts', '../events/target.ts'],
  'room-node-live-queries': ['node/live/queries/x.ts', '../events/target.ts'],
  'actor-knows-no-type': ['commerce/actor/x.ts', '../target.ts'],
  'store-tools-open-stores': ['cli/verify-log.ts', '../node/target.ts'],
  'door-uWebSockets-js': ['node/access/y.ts', 'uWebSockets.js'],
  'door-lmdb': ['storage/memory/y.ts', 'lmdb'],
  'door-node-sqlite': ['storage/memory/z.ts', 'node:sqlite'],
  'door-ioredis': ['cluster/memory/y.ts', 'ioredis'],
  'door-cassandra-driver': ['storage/memory/a.ts', 'cassandra-driver'],
  'door-elastic-elasticsearch': ['storage/memory/b.ts', '@elastic/elasticsearch'],
  'door-isolated-vm': ['node/rules/y.ts', 'isolated-vm'],
  'door-graphql': ['node/graph/y.ts', 'graphql'],
  'door-graphql-ws': ['node/live/events/y.ts', 'graphql-ws'],
  'door-jose': ['node/http/y.ts', 'jose'],
  'door-oauth-webapi': ['node/me/y.ts', 'oauth4webapi'],
  'door-nodemailer': ['node/jobs/y.ts', 'nodemailer'],
  'door-cron-parser': ['node/rules/z.ts', 'cron-parser'],
  'no-cycle': ['node/cycle-a.ts', './cycle-b.ts'],
  'no-test-imports': ['node/y.ts', './target.test.ts'],
  resolvable: ['node/z.ts', './nowhere.ts'],
  declared: ['node/a.ts', 'typescript'],
}

t.test('import direction', async (t) => {
  const files: Record<string, string> = {
    'node/cycle-b.ts': "import './cycle-a.ts'\n",
    'node/target.test.ts': 'export {}\n',
    'node/orphan.ts': 'export {}\n',
  }
  for (const folder of FOLDERS) files[`${folder}/target.ts`] = 'export const x = 1\n'
  for (const [path, imported] of Object.values(IMPORT_FAULTS)) {
    files[path] = `import * as it from '${imported}'\n\nvoid it\n`
    const target = posix.join(posix.dirname(path), imported)
    if (target.endsWith('/target.ts')) files[target] = 'export const x = 1\n'
  }
  files['node/cycle-a.ts'] += "import './target.ts'\n"
  const { counts, shown } = await check(t, 'imports', files)
  t.equal(counts.failed, 1)
  for (const [rule, [path]] of Object.entries(IMPORT_FAULTS)) {
    const lines = shown.split('\n')
    t.ok(
      lines.some((line) => line.includes(`error ${rule}: ${path}`)),
      `${rule}: ${path}`,
    )
  }
  t.match(shown, 'error no-orphan: node/orphan.ts')

  const { forbidden } = createRequire(import.meta.url)('../.dependency-cruiser.cjs') as ImportRules
  const planted = [...Object.keys(IMPORT_FAULTS), 'no-orphan']
  t.strictSame(
    forbidden.map(({ name }) => name).filter((name) => !planted.includes(name)),
    [],
    'every rule has its fault',
  )
})

t.test('types count in the import direction too', async (t) => {
  const { shown } = await check(t, 'imports', {
    'protocol/x.ts': "import type { X } from '../config/x.ts'\n\nexport type Y = X\n",
    'config/x.ts': 'export type X = 1\n',
  })
  t.match(shown, 'error protocol-imports-up: protocol/x.ts')
})

t.test('dead code', async (t) => {
  const { counts, shown } = await check(t, 'dead', {
    ...CLEAN,
    'protocol/fact.ts': '// A fact.\n\nexport const fact = 1\nexport const fiction = 2\n',
    'commerce/nobody.ts': 'export const x = 1\n',
    'node/log/log.ts': "// Unlisted.\n\nimport 'left-pad'\n",
  })
  t.equal(counts.failed, 1)
  t.match(shown, /Unused files[^]*commerce\/nobody\.ts/)
  t.match(shown, /Unused exports[^]*fiction .*protocol\/fact\.ts/)
  t.match(shown, /Unused dependencies[^]*lmdb/)
})

t.test('tests: failures, skips, and files without a test', async (t) => {
  const of = (body: string) => `import t from 'tap'\n\nt.test('x', async (t) => {\n  ${body}\n})\n`
  const failing = await check(t, 'tests', {
    ...CLEAN,
    'node/x.test.ts': of("t.equal(1, 2, 'one is two')"),
    'node/y.test.ts': "throw new Error('at once')\n",
  })
  t.strictSame(failing.counts, { passed: 1, failed: 2, skipped: 0 })
  t.match(failing.shown, /not ok 1 - one is two/)
  t.match(failing.shown, /at once/)

  const step = stepNamed('tests')
  const cwd = project(t, { ...CLEAN, 'node/x.test.ts': of("t.skip('not here')") })
  const here = await runStep(step, { cwd, env: ENV })
  t.strictSame(here.counts, { passed: 1, failed: 0, skipped: 1 })
  const onCi = await runStep(step, { cwd, env: { ...ENV, CI: 'true' } })
  t.strictSame(onCi.counts, { passed: 1, failed: 1, skipped: 1 })
  t.match(onCi.shown, /not here/)
})
