// The packed program, of a small project that has the places of ours: packed it does what its
// sources do, and sources that have changed are not run as they were.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync } from 'node:fs'
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import type { Test } from 'tap'
import { pack, packedMain } from '../../tools/start/packed.mjs'

const WORKER =
  "import { parentPort } from 'node:worker_threads'\nimport { word } from '../../word.ts'\n"

const SOURCES: Readonly<Record<string, string>> = {
  'package.json': '{"type": "module"}',
  'package-lock.json': '{}',
  'node/word.ts': "export const word: string = 'first'\n",
  'node/behaviours.ts': 'export const behaviours = (): number => 1\n',
  'node/indexing/embedded/index-worker.ts': `${WORKER}parentPort!.postMessage([word, import.meta.url])\n`,
  'node/graph/plans/reader-worker.ts': 'export {}\n',
  'node/membership/beat-worker.ts': 'export {}\n',
  'node/indexing/embedded/thread.ts': `
    import { once } from 'node:events'
    import { Worker } from 'node:worker_threads'
    export async function ask(): Promise<unknown> {
      const worker = new Worker(new URL('./index-worker.ts', import.meta.url))
      return (await once(worker, 'message'))[0]
    }
  `,
  'node/main.ts': `
    import { ask } from './indexing/embedded/thread.ts'
    import { word } from './word.ts'
    const here: string = import.meta.dirname
    const table = new URL('./behaviours.ts', import.meta.url).href
    const { behaviours } = (await import(table)) as { behaviours: () => number }
    const beside = new URL('../package.json', import.meta.url).pathname
    console.log(JSON.stringify({ word, here, one: behaviours(), beside, told: await ask() }))
  `,
}

function project(t: Test): { root: string; put: (file: string, text: string) => void } {
  const root = mkdtempSync(join(tmpdir(), 'kontor-packed-'))
  t.teardown(() => rmSync(root, { recursive: true, force: true }))
  const put = (file: string, text: string): void => {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), text)
  }
  for (const [file, text] of Object.entries(SOURCES)) put(file, text)
  return { root, put }
}

interface Said {
  readonly word: string
  readonly here: string
  readonly one: number
  readonly beside: string
  readonly told: readonly [string, string]
}

function run(url: string): Said {
  const args = ['--disable-warning=ExperimentalWarning', fileURLToPath(url)]
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout) as Said
}

t.test('packed it does what its sources do, its threads too', async (t) => {
  const { root } = project(t)
  t.equal(packedMain(root), null)
  t.equal(await pack(root), null)
  const main = packedMain(root)!
  t.match(main, /node_modules\/\.cache\/.*\/node\/main\.js$/)
  const { told, ...said } = run(main)
  t.strictSame(said, {
    ...{ word: 'first', here: join(root, 'node'), one: 1 },
    beside: join(root, 'package.json'),
  })
  t.equal(told[0], 'first')
  const worker = dirname(fileURLToPath(main)) + '/indexing/embedded/index-worker.js'
  t.ok(existsSync(worker))
  t.notMatch(readFileSync(worker, 'utf8'), /word: string/)
})

t.test('what has changed is not run as it was', async (t) => {
  const { root, put } = project(t)
  await pack(root)
  const before = packedMain(root)
  await pack(root)
  t.equal(packedMain(root), before, 'it is packed once')
  put('node/word.ts', "export const word: string = 'other'\n")
  t.equal(packedMain(root), null)
  await pack(root)
  t.equal(run(packedMain(root)!).word, 'other')
  put('package-lock.json', '{"packages": {}}')
  t.equal(packedMain(root), null, 'packages are part of it')
  put('package-lock.json', '{}')
  t.not(packedMain(root), null)
  rmSync(join(root, 'node/word.ts'))
  t.equal(packedMain(root), null)
})

t.test('old ones go, but not those that nodes may run from', async (t) => {
  const { root, put } = project(t)
  for (let i = 0; i < 5; i++) {
    put('node/word.ts', `export const word: string = '${i}'\n`)
    t.equal(await pack(root), null)
  }
  const folder = join(fileURLToPath(packedMain(root)!), '..', '..', '..')
  const kept = readdirSync(folder, { withFileTypes: true }).filter((one) => one.isDirectory())
  t.equal(kept.length, 3)
  t.equal(run(packedMain(root)!).word, '4')
})

t.test('what can not be packed is said', async (t) => {
  const { root, put } = project(t)
  put('node/word.ts', 'export const word: string = ')
  t.match(await pack(root), /word\.ts/)
  t.equal(packedMain(root), null)
})
