// What must be on the disk before the program goes on: each small file and its name, and what a
// backup says that it has, in the order that leaves a store at any moment. Source: PROTOCOL 3.16.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openEmbeddedJournal } from './journal/journal.ts'
import { backUp } from './backup.ts'
import { readIdentity, writeIdentity } from './journal/identity.ts'
import { copyMoved, writeMoved } from './moved-store.ts'
import { writeSynced } from './synced-file.ts'
import { filledStore, smallSegments } from './testing/damaged-store.ts'
import { fileCalls } from './testing/file-calls.ts'

/** A folder by the name `data`. */
function folder(t: Test): string {
  const parent = mkdtempSync(join(tmpdir(), 'kontor-synced-'))
  t.teardown(() => rmSync(parent, { recursive: true, force: true }))
  const dir = join(parent, 'data')
  mkdirSync(dir)
  return dir
}

t.test('a small file, and its name in the folder', async (t) => {
  const dir = folder(t)
  const synced = await fileCalls(() => writeSynced(join(dir, 'a'), 'text'))
  t.same(synced, ['write a', 'sync a'])
  await (await openEmbeddedJournal({ ...smallSegments(dir), shards: 1 })).close()
  const identity = readIdentity(dir)!
  t.same(await fileCalls(() => writeIdentity(dir, identity)), [
    'write store.json.new',
    'sync store.json.new',
    'rename store.json',
    'sync data',
  ])
  const word = { to: 'elsewhere', at: 'a time' }
  const moved = ['write moved.json', 'sync moved.json', 'sync data']
  t.same(await fileCalls(() => writeMoved(dir, word)), moved)
  const to = folder(t)
  t.same(await fileCalls(() => copyMoved(dir, to)), moved)
  rmSync(join(dir, 'moved.json'))
  t.same(await fileCalls(() => copyMoved(dir, to)), ['remove moved.json', 'sync data'])
})

t.test('a backup is a store at each of its steps', async (t) => {
  const { dir } = await filledStore(t)
  const to = folder(t)
  const back = () => backUp({ from: dir, to, pause: () => Promise.resolve() })
  const check = (calls: readonly string[]): string[] => {
    const files = calls.filter((one) => /^rename \d+\.seg$/.test(one)).map((one) => one.slice(7))
    for (const file of files) {
      const come = calls.indexOf(`rename ${file}`)
      t.ok(calls.indexOf(`sync ${file}`) < come && calls.includes(`sync ${file}`), 'whole, first')
      t.equal(calls[come + 1], 'sync log', 'and then it is there')
    }
    const manifest = calls.indexOf('rename manifest.json')
    const last = calls.findLastIndex((one) => one.startsWith('rename') && one.endsWith('.seg'))
    t.ok(last < manifest, 'the manifest names what is there')
    t.ok(
      calls.findIndex((one) => /^cut \d+\.seg$/.test(one)) > manifest,
      'only what a manifest names ends where it ends',
    )
    return files
  }
  const first = await fileCalls(back)
  const files = check(first)
  t.ok(files.length > 3, `${files.length} files`)
  const store = first.indexOf('rename store.json')
  t.ok(store >= 0 && store < first.indexOf(`rename ${files[0]}`), 'first what store it is')
  await (await openEmbeddedJournal(smallSegments(dir))).close()
  t.equal(check(await fileCalls(back)).length, 1, 'what the start has begun')
})
