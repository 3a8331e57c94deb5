// Damage to the data file, of real files: whatever is cut or flipped is refused with its place, or
// changes nothing that is in use; it is never served short. Source: PROTOCOL 3.16, F22.

import {
  copyFileSync,
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { encodeEntry, joinEntries, type Entry } from '../../protocol/entry.ts'
import { COUNTER_SUFFIX } from '../journal.ts'
import type { DerivedRow, Journal } from '../journal.ts'
import { freshUuid, group } from '../conformance/journal-samples.ts'
import { JournalDamage } from './journal-damage.ts'
import { openEmbeddedJournal, type EmbeddedJournalOptions } from './journal.ts'
import { journalOptions, optionsIn } from './testing/journal-options.ts'
import { verifyLog } from './verify-log.ts'

const SHARDS = 2

/** Numbers that are the same in every run. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 0x1_0000_0000
  }
}

function entryOf(actorId: string, n: number, size: number): Buffer {
  const entry: Entry = {
    y: 'order',
    p: actorId,
    v: n - 1,
    n,
    r: [{ type: 'changed', data: `entry ${n} of ${actorId} ${'x'.repeat(size)}` }] as never,
    m: 'f'.repeat(32),
    l: 0,
    a: { type: 'create', success: true },
    t: 1_700_000_000_000,
    c: n,
    b: 'bootstrap',
  }
  return encodeEntry(entry)
}

interface Filled {
  readonly heads: readonly number[]
  /** A piece of text that only this group's row holds, by shard and offset. */
  readonly texts: ReadonlyMap<string, string>
}

/**
 * Groups in both shards, flushed up to about half; `ahead`: with derived rows up to the head, as
 * they are written before the flush offset moves.
 */
async function fill(journal: Journal, ahead: boolean): Promise<Filled> {
  const texts = new Map<string, string>()
  const heads: number[] = []
  for (let shard = 0; shard < SHARDS; shard++) {
    const { epoch } = await journal.log.claim(shard)
    const rows: DerivedRow[] = []
    let head = 0
    for (let i = 0; i < 30; i++) {
      const bodies: Buffer[] = []
      for (let j = 0; j <= i % 3; j++) {
        const offset = head + j + 1
        const actorId = freshUuid()
        const body = entryOf(actorId, 1, 200 * (i % 12))
        bodies.push(body)
        rows.push({ kind: 'entry', actorId, n: 1, offset, body })
        rows.push({
          kind: 'alias',
          offset,
          row: { keyType: 'order', key: `${shard}-${offset}`, claims: [] },
        })
        texts.set(`${shard}:${offset}`, `entry 1 of ${actorId}`)
      }
      const body = joinEntries(bodies)
      const outcome = await journal.log.append([
        group({ shard, epoch, head, count: bodies.length, body }),
      ])
      if (outcome[0] !== 'committed') throw new Error(`group ${i} of shard ${shard}: ${outcome[0]}`)
      head += bodies.length
    }
    const counter = { keyType: `order${COUNTER_SUFFIX}`, key: `${shard}/O`, claims: [] }
    rows.push({ kind: 'alias', offset: head, row: counter })
    const flush = Math.floor(head / 2)
    const flushed = rows.filter((row) => ahead || row.offset <= flush)
    flushed.push({ kind: 'consumer', consumer: 'flush', offset: flush })
    await journal.derived.write(shard, epoch, flushed)
    heads.push(head)
  }
  return { heads, texts }
}

async function filledStore(t: Test, ahead = false): Promise<{ dir: string; filled: Filled }> {
  const options = { ...journalOptions(t), shards: SHARDS }
  const journal = await openEmbeddedJournal(options)
  const filled = await fill(journal, ahead)
  await journal.close()
  return { dir: options.dir, filled }
}

/** A copy of the store to do harm to. */
async function withCopy<T>(dir: string, work: (copy: string) => Promise<T>): Promise<T> {
  const copy = mkdtempSync(join(tmpdir(), 'kontor-damage-'))
  try {
    cpSync(dir, copy, { recursive: true })
    return await work(copy)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

async function openingOf(
  options: EmbeddedJournalOptions,
): Promise<{ journal: Journal } | { damage: JournalDamage }> {
  try {
    return { journal: await openEmbeddedJournal(options) }
  } catch (error) {
    if (error instanceof JournalDamage) return { damage: error }
    throw error
  }
}

async function findingsIn(dir: string): Promise<string[]> {
  const lines: string[] = []
  const report = await verifyLog(dir, (line) => lines.push(line))
  if (report.findings !== lines.length) throw new Error('a finding was not printed')
  return lines
}

/**
 * Flips a bit of the byte `at` behind every place where `text` stands, or of those that `isMeant`;
 * how many there are.
 */
function flip(
  file: string,
  text: string | Buffer,
  at = 0,
  isMeant: (bytes: Buffer, place: number) => boolean = () => true,
): number {
  const bytes = readFileSync(file)
  let places = 0
  for (let i = bytes.indexOf(text); i >= 0; i = bytes.indexOf(text, i + 1)) {
    if (!isMeant(bytes, i)) continue
    bytes[i + at]! ^= 0x04
    places++
  }
  writeFileSync(file, bytes)
  return places
}

void t.test('a whole store opens and verifies', async (t) => {
  const { dir, filled } = await filledStore(t)
  t.same(await findingsIn(dir), [])
  const lines: string[] = []
  const report = await verifyLog(dir, (line) => lines.push(line))
  t.equal(report.groups, 60)
  t.equal(report.entries, filled.heads[0]! + filled.heads[1]!)
  t.ok(report.derivedRows >= report.entries, 'an entry and an alias of about half')
  const journal = await openEmbeddedJournal(optionsIn(dir))
  t.same((await journal.log.status(1)).head, filled.heads[1])
  await journal.close()
})

void t.test('a data file cut at any length', async (t) => {
  const { dir, filled } = await filledStore(t)
  const { size } = statSync(join(dir, 'data.mdb'))
  const random = randomFrom(7)
  const cuts = Array.from({ length: 60 }, () => Math.floor(random() * size))
  let refused = 0
  for (const cut of [0, 1, 100, 8191, 8192, 16_384, size - 1, size - 8192, ...cuts]) {
    await withCopy(dir, async (copy) => {
      const file = join(copy, 'data.mdb')
      truncateSync(file, cut)
      const opened = await openingOf(optionsIn(copy))
      if ('damage' in opened) {
        refused++
        const { message, place } = opened.damage
        if (place.file !== file || !message.includes(file) || !/shard/.test(message)) {
          t.fail(`cut at ${cut}: ${message}`)
        }
        if (statSync(file).size !== cut) t.fail(`cut at ${cut}: the file was changed`)
        if ((await findingsIn(copy)).length === 0) t.fail(`cut at ${cut}: verify-log finds nothing`)
        return
      }
      // Only pages that nothing leads to were cut: everything is there.
      const { journal } = opened
      for (const [shard, head] of filled.heads.entries()) {
        const rows = await journal.log.read(shard, 0, 1e9)
        if (rows.at(-1)?.offset !== head) t.fail(`cut at ${cut}: served short`)
      }
      await journal.close()
    })
  }
  t.ok(refused > 50, `${refused} cuts were refused`)
})

void t.test('a bit flipped in any group', async (t) => {
  const { dir, filled } = await filledStore(t)
  for (const [place, text] of filled.texts) {
    const [shard, offset] = place.split(':').map(Number) as [number, number]
    const head = filled.heads[shard]!
    await withCopy(dir, async (copy) => {
      const file = join(copy, 'data.mdb')
      if (flip(file, text, 6) === 0) t.fail(`${place} is not in the file`)
      const found = await findingsIn(copy)
      if (found.length === 0) t.fail(`${place}: verify-log finds nothing`)
      const opened = await openingOf(optionsIn(copy))
      if ('damage' in opened) {
        const { shard: s, offset: o } = opened.damage.place
        const isNear = s === shard && o !== null && o <= offset && o > offset - 3
        if (!isNear) t.fail(`${place}: ${opened.damage.message}`)
        if (offset <= Math.floor(head / 2) - 3) t.fail(`${place} is flushed and was read`)
        return
      }
      // It lies below the flush offset: nobody needs it to start, and whoever reads it is told.
      if (offset > Math.floor(head / 2)) t.fail(`${place}: opened`)
      t.throws(() => opened.journal.log.read(shard, 0, 1e9), { name: 'JournalDamage' })
      await opened.journal.close()
    })
  }
  t.equal(filled.texts.size, filled.heads[0]! + filled.heads[1]!)
})

void t.test('a bit flipped in a head', async (t) => {
  const { dir, filled } = await filledStore(t)
  const journal = await openEmbeddedJournal(optionsIn(dir))
  const { lastCommit } = await journal.log.status(1)
  await journal.close()
  const id = Buffer.from(lastCommit!.replaceAll('-', ''), 'hex')
  // The commit id stands in the last group and in the head (and, of pages used before, where no row
  // is); of the head, each byte before it too: its other number. Before a group stands LMDB's own.
  const isRow = (bytes: Buffer, place: number) =>
    bytes.readUIntLE(place - 10, 6) === filled.heads[1]
  const isHead = (bytes: Buffer, place: number) =>
    isRow(bytes, place) && bytes.readUInt32LE(place - 4) > 3
  for (let at = -24; at < 20; at++) {
    await withCopy(dir, async (copy) => {
      const file = join(copy, 'data.mdb')
      if (at < -16) t.equal(flip(file, id, at, isHead), 1)
      else t.ok(flip(file, id, at, isRow) >= 2)
      const opened = await openingOf(optionsIn(copy))
      if ('journal' in opened) {
        t.fail(`byte ${at} of a head: opened`)
        return
      }
      t.equal(opened.damage.place.shard, 1)
      t.ok((await findingsIn(copy)).length > 0)
    })
  }
  t.equal(filled.heads.length, SHARDS)
})

void t.test('going on without what is lost', async (t) => {
  const { dir, filled } = await filledStore(t, true)
  const file = join(dir, 'data.mdb')
  const [, head] = filled.heads as [number, number]
  const [place, text] = [...filled.texts].filter(([at]) => at.startsWith('1:')).at(-6)!
  t.ok(flip(file, text, 3) > 0)
  const opened = await openingOf(optionsIn(dir))
  if ('journal' in opened) throw new Error('opened')
  const good = opened.damage.place.offset! - 1
  t.ok(good < Number(place.slice(2)) && good > head - 12)
  t.match(opened.damage.message, `--accept-loss 1:${good}`)
  const kept = `${file}.kept`
  copyFileSync(file, kept)

  const elsewhere = { ...optionsIn(dir), acceptLoss: [{ shard: 1, offset: good - 1 }] }
  await t.rejects(
    openEmbeddedJournal(elsewhere),
    { message: /--accept-loss/ },
    'only as it was named',
  )
  t.ok(readFileSync(file).equals(readFileSync(kept)), 'nothing was changed')

  const acceptLoss = [{ shard: 1, offset: good }]
  const journal = await openEmbeddedJournal({ ...optionsIn(dir), acceptLoss })
  const resumedAt = head + 1_000_000
  t.same(journal.identity.losses, [{ shard: 1, offset: good, resumedAt }])
  t.equal((await journal.log.status(1)).head, resumedAt)
  t.equal((await journal.log.status(0)).head, filled.heads[0])
  t.equal((await journal.log.read(1, 0, 1e9)).at(-1)?.offset, good)
  const hasKey = async (key: string) => (await journal.derived.alias('order', key)) !== null
  t.same([await hasKey(`1-${good}`), await hasKey(`1-${good + 1}`)], [true, false])
  t.same([await hasKey(`1-${head}`), await hasKey(`0-${filled.heads[0]}`)], [false, true])
  const counter = await journal.derived.alias(`order${COUNTER_SUFFIX}`, '1/O')
  t.not(counter, null, 'what is handed out from now on is above what was lost')
  t.equal((await journal.derived.actors(null, 1e4)).length, filled.heads[0]! + good)
  const { epoch } = await journal.log.claim(1)
  const body = joinEntries([entryOf(freshUuid(), 1, 10)])
  t.same(await journal.log.append([group({ shard: 1, epoch, head: resumedAt, body })]), [
    'committed',
  ])
  const { generation } = journal.identity
  await journal.close()

  t.same(await findingsIn(dir), [])
  const again = await openEmbeddedJournal({ ...optionsIn(dir), acceptLoss })
  t.equal(again.identity.generation, generation, 'the flag may stay: it is accepted once')
  t.same(
    (await again.log.read(1, good, 1e9)).map((row) => row.offset),
    [resumedAt + 1],
  )
  await again.close()
})

void t.test('another store than the configured one', async (t) => {
  const { dir } = await filledStore(t)
  const eight = openEmbeddedJournal({ ...optionsIn(dir), shards: 8 })
  await t.rejects(eight, { message: /made with 2 shards and 8 are configured/ })
  await t.rejects(openEmbeddedJournal({ ...journalOptions(t), shards: 6 }), {
    message: /power of two/,
  })
  const made = await openEmbeddedJournal(journalOptions(t))
  t.equal(made.identity.shards, 32)
  await made.close()
  rmSync(join(dir, 'data.mdb'))
  await t.rejects(
    openEmbeddedJournal(optionsIn(dir)),
    { name: 'JournalDamage' },
    'a file that is gone',
  )
  rmSync(join(dir, 'store.json'))
  const journal = await openEmbeddedJournal({ ...optionsIn(dir), shards: 4 })
  t.equal(journal.identity.shards, 4, 'and nothing at all is a new store')
  await journal.close()
})
