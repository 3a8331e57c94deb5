// Bytes of a small store are changed, one at a time, in every file of it: verify-log names the
// file and the place, or the store is whole; where it opens it is never read short or otherwise.
// Source: PROTOCOL 3.16, F22.

import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { JournalDamage } from '../../damage.ts'
import { DERIVED_TABLES, openEnvironment } from '../../lmdb/environment.ts'
import {
  contentsOf,
  filledStore,
  findingsIn,
  openingOf,
  randomFrom,
  segmentsIn,
  smallSegments,
  withCopy,
} from '../testing/damaged-store.ts'

// Some hundred stores are opened, on a machine that may be busy with other tests.
t.setTimeout(120_000)

/** Runs with a bit of a file flipped, and flips it back. */
async function flipped<T>(path: string, at: number, work: () => Promise<T>): Promise<T> {
  const fd = openSync(path, 'r+')
  const byte = Buffer.alloc(1)
  const flip = (): void => {
    readSync(fd, byte, 0, 1, at)
    byte[0]! ^= 1 << (at % 8)
    writeSync(fd, byte, 0, 1, at)
  }
  flip()
  try {
    return await work()
  } finally {
    flip()
    closeSync(fd)
  }
}

/** What comes of a store: all that it answers, or where it is damaged. */
async function outcomeOf(dir: string): Promise<{ contents: string } | { damage: string }> {
  const opened = await openingOf(smallSegments(dir))
  if ('damage' in opened) return { damage: opened.damage.message }
  try {
    return { contents: JSON.stringify(await contentsOf(opened.journal)) }
  } catch (error) {
    if (error instanceof JournalDamage) return { damage: error.message }
    throw error
  } finally {
    await opened.journal.close()
  }
}

void t.test('any byte of the log and of what says which store it is', async (t) => {
  const { dir } = await filledStore(t, { groups: 6, step: 20, segmentBytes: 6_144 })
  const whole = await withCopy(dir, outcomeOf)
  const random = randomFrom(3)
  const counts = { found: 0, nothing: 0, opened: 0 }
  const names = [...segmentsIn(dir), join(dir, 'log', 'manifest.json'), join(dir, 'store.json')]
  t.ok(names.length > 4)
  for (const name of names) {
    const bytes = readFileSync(name)
    for (let at = 0; at < bytes.length; at += 1 + Math.floor(random() * 90)) {
      const found = await flipped(name, at, () => findingsIn(dir))
      const isNamed = found.some(
        (line) => line.startsWith(`${name}: `) && /position|offset/.test(line),
      )
      if (found.length > 0 && !isNamed) t.fail(`${basename(name)}, byte ${at}: ${found.join('\n')}`)
      counts[isNamed ? 'found' : 'nothing']++
      // Every one that verify-log doesn't see, and some of the others.
      if (isNamed && at % 5 > 0) continue
      counts.opened++
      const copied = await flipped(name, at, () => withCopy(dir, outcomeOf))
      const isWhole = JSON.stringify(copied) === JSON.stringify(whole)
      const isRefused = 'damage' in copied && copied.damage.includes(basename(name))
      if (!isRefused && !isWhole) t.fail(`${basename(name)}, byte ${at}: other contents`)
    }
  }
  // Nothing: where nothing is written yet, and of spaces in store.json.
  t.ok(counts.found > 2 * counts.nothing && counts.found > 300, JSON.stringify(counts))
})

// LMDB has no checksum of its own pages: what flips there, and no row shows, may end the process.
void t.test('any row of the data file', async (t) => {
  const { dir } = await filledStore(t, { groups: 6, step: 20 })
  const name = join(dir, 'data.mdb')
  const bytes = readFileSync(name)
  const random = randomFrom(5)
  const env = openEnvironment(dir, true)
  const places: { at: number; isKey: boolean }[] = []
  for (const table of [...DERIVED_TABLES, 'meta', 'log', 'heads', 'lives', 'ended'] as const) {
    for (const { key, value } of env[table]!.getRange({})) {
      const row = Buffer.concat([key, value])
      const at = Math.floor(random() * row.length)
      // The same row may stand in pages of earlier transactions, too.
      for (let i = bytes.indexOf(row); i >= 0; i = bytes.indexOf(row, i + 1)) {
        places.push({ at: i + at, isKey: at < key.length })
      }
    }
  }
  await env.root.close()
  const whole = JSON.stringify(await withCopy(dir, outcomeOf))
  const counts = { found: 0, nothing: 0 }
  for (const { at, isKey } of places) {
    const found = await flipped(name, at, () => findingsIn(dir))
    counts[found.length > 0 ? 'found' : 'nothing']++
    if (found.length > 0) {
      const isNamed = found.some((line) => line.startsWith(`${name}: `))
      if (!isNamed) t.fail(`byte ${at}: ${found.join('\n')}`)
      // A row under another key is not found by who looks for it: verify-log alone sees that.
      if (isKey || at % 5 > 0) continue
    }
    const copied = await flipped(name, at, () => withCopy(dir, outcomeOf))
    const isRefused = 'damage' in copied && copied.damage.includes('data.mdb: table ')
    if (!isRefused && JSON.stringify(copied) !== whole) t.fail(`byte ${at}: other contents`)
  }
  t.ok(counts.found > 80, JSON.stringify(counts))
})
