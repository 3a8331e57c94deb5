// A small embedded store to do harm to, and what it is afterwards: refused, or all of it. For the
// tests of damage.

import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { encodeEntry, joinEntries, type Entry } from '../../../protocol/entry/entry.ts'
import { COUNTER_SUFFIX, type DerivedRow, type Journal } from '../../journal.ts'
import { freshUuid, group } from '../../conformance/journal-samples.ts'
import { JournalDamage } from '../../damage.ts'
import { LOG_FOLDER, openEmbeddedJournal, type EmbeddedJournalOptions } from '../journal/journal.ts'
import { verifyLog } from '../verify/store.ts'
import { journalOptions, optionsIn } from './journal-options.ts'

export const SHARDS = 2

/** Numbers that are the same in every run. */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 0x1_0000_0000
  }
}

/** Entries are so large at least that the files of a small store fill up. */
const ENTRY_TEXT_BYTES = 85

export function entryOf(actorId: string, n: number, size: number): Buffer {
  const entry: Entry = {
    y: 'order',
    p: actorId,
    v: n - 1,
    n,
    r: [
      { type: 'changed', data: `entry ${n} of ${actorId} ${'x'.repeat(ENTRY_TEXT_BYTES + size)}` },
    ] as never,
    m: 'f'.repeat(32),
    l: 0,
    a: { type: 'create', success: true },
    t: 1_700_000_000_000,
    c: n,
    b: 'bootstrap',
  }
  return encodeEntry(entry)
}

/** One group of each shard, by shard and offset of its last entry. */
export interface Placed {
  readonly shard: number
  /** Last offset before it, and its own last one. */
  readonly head: number
  readonly offset: number
  /** A piece of text that only this group's body holds. */
  readonly text: string
}

export interface Filled {
  readonly dir: string
  readonly heads: readonly number[]
  readonly groups: readonly Placed[]
}

export interface Filling {
  /** Starts of the store, with so many groups in each shard; each begins a segment file. */
  readonly starts: number
  readonly groups: number
  /** Derived rows go up to the head, as they are written before the flush offset moves. */
  readonly isAhead: boolean
  /** Bytes by which entries differ. */
  readonly step: number
  readonly segmentBytes: number
  /** Left as after a kill: nothing says where the log ends. */
  readonly isKilled: boolean
}

/** Groups of one to three entries in both shards, each shard flushed up to about half. */
async function fill(
  journal: Journal,
  filling: Filling,
  rowsOf: readonly DerivedRow[][],
): Promise<Placed[]> {
  const placed: Placed[] = []
  const claims = [await journal.log.claim(0), await journal.log.claim(1)]
  for (const [shard, { epoch, head: from }] of claims.entries()) {
    const rows = rowsOf[shard]!
    let head = from
    for (let i = 0; i < filling.groups; i++) {
      const bodies: Buffer[] = []
      const first = freshUuid()
      for (let j = 0; j <= i % 3; j++) {
        const offset = head + j + 1
        const actorId = j === 0 ? first : freshUuid()
        const body = entryOf(actorId, 1, filling.step * (i % 12))
        bodies.push(body)
        rows.push({ kind: 'entry', actorId, n: 1, offset, body })
        const row = { keyType: 'order', key: `${shard}-${offset}`, claims: [] }
        rows.push({ kind: 'alias', offset, row })
      }
      const { length: count } = bodies
      const body = joinEntries(bodies)
      const [outcome] = await journal.log.append([group({ shard, epoch, head, count, body })])
      if (outcome !== 'committed') throw new Error(`group ${i} of shard ${shard}: ${outcome}`)
      placed.push({ shard, head, offset: head + count, text: `entry 1 of ${first}` })
      head += count
    }
    const counter = { keyType: `order${COUNTER_SUFFIX}`, key: `${shard}/O`, claims: [] }
    rows.push({ kind: 'alias', offset: head, row: counter })
    const flush = Math.floor((from + head) / 2)
    const flushed = rows.filter((row) => filling.isAhead || row.offset <= flush)
    flushed.push({ kind: 'consumer', consumer: 'flush', offset: flush })
    await journal.derived.write(shard, epoch, flushed)
  }
  return placed
}

export function smallSegments(dir: string): EmbeddedJournalOptions {
  return { ...optionsIn(dir), segmentBytes: [16 * 1024] }
}

const STORE = { segmentBytes: 16 * 1024, isKilled: false }

export async function filledStore(t: Test, how: Partial<Filling> = {}): Promise<Filled> {
  const filling = { starts: 2, groups: 15, isAhead: false, step: 100, ...STORE, ...how }
  const { dir } = journalOptions(t)
  let kept = dir
  const groups: Placed[] = []
  const rows: DerivedRow[][] = [[], []]
  for (let start = 0; start < filling.starts; start++) {
    const segmentBytes = [filling.segmentBytes]
    const options = { ...optionsIn(dir), shards: SHARDS, segmentBytes }
    const journal = await openEmbeddedJournal(options)
    groups.push(...(await fill(journal, filling, rows)))
    if (filling.isKilled && start === filling.starts - 1) {
      kept = journalOptions(t).dir
      cpSync(dir, kept, { recursive: true })
    }
    await journal.close()
  }
  const heads = [0, 1].map((shard) => groups.findLast((one) => one.shard === shard)!.offset)
  return { dir: kept, heads, groups }
}

/** A copy of the store to do harm to. */
export async function withCopy<T>(dir: string, work: (copy: string) => Promise<T>): Promise<T> {
  const copy = mkdtempSync(join(tmpdir(), 'kontor-damage-'))
  try {
    cpSync(dir, copy, { recursive: true })
    return await work(copy)
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

export type Opening = { journal: Journal } | { damage: JournalDamage }

export async function openingOf(options: EmbeddedJournalOptions): Promise<Opening> {
  try {
    return { journal: await openEmbeddedJournal(options) }
  } catch (error) {
    if (error instanceof JournalDamage) return { damage: error }
    throw error
  }
}

/** The start's refusal; throws when it wasn't one. */
export async function damageOf(options: EmbeddedJournalOptions): Promise<JournalDamage> {
  const opened = await openingOf(options)
  if ('damage' in opened) return opened.damage
  await opened.journal.close()
  throw new Error('it was opened')
}

export async function findingsIn(dir: string): Promise<string[]> {
  const lines: string[] = []
  const report = await verifyLog(dir, (line) => lines.push(line))
  if (report.findings !== lines.length) throw new Error('a finding was not printed')
  return lines
}

/** Paths of the segment files, the oldest first. */
export function segmentsIn(dir: string): string[] {
  const names = readdirSync(join(dir, LOG_FOLDER)).filter((name) => name.endsWith('.seg'))
  return names.sort().map((name) => join(dir, LOG_FOLDER, name))
}

/** Flips a bit `at` bytes behind where the text stands in the newest segment file that has it. */
export function flipText(dir: string, text: string | Buffer, at = 0): string {
  for (const path of segmentsIn(dir).reverse()) {
    const bytes = readFileSync(path)
    const place = bytes.indexOf(text)
    if (place < 0) continue
    bytes[place + at]! ^= 0x04
    writeFileSync(path, bytes)
    return path
  }
  throw new Error(`${String(text)} is in no segment file`)
}

export interface Contents {
  readonly log: readonly unknown[]
  readonly derived: readonly unknown[]
}

/** All that a store answers, as far as it was filled. Throws JournalDamage. */
export async function contentsOf({ log, derived }: Journal): Promise<Contents> {
  const shards = [...Array(SHARDS).keys()]
  const found: unknown[] = []
  const rows: unknown[] = []
  for (const shard of shards) {
    const { head, lastCommit } = await log.status(shard)
    found.push({ shard, head, lastCommit })
    for (const row of await log.read(shard, 0, 1e9)) found.push({ ...row, body: hex(row.body) })
    const flush = await derived.consumer(shard, 'flush')
    if (flush !== null) rows.push({ shard, flush })
    for (let offset = 1; offset <= head; offset++) {
      const alias = await derived.alias('order', `${shard}-${offset}`)
      if (alias !== null) rows.push(alias)
    }
  }
  for (const actorId of await derived.actors(null, 1e4)) {
    const range = { order: 'ascending', after: 0, bytesMax: 1e9 } as const
    for (const row of await derived.entries(actorId, range)) {
      rows.push({ actorId, ...row, body: hex(row.body) })
    }
  }
  return { log: found, derived: rows }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
