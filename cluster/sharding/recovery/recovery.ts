// Recovery of one shard: what a new owner reads before it serves. The log behind the flush offset
// is read, the shard's own memory is rebuilt from it, and what the derived rows lack of it is
// handed to the flusher, which writes it while the shard serves. Reads go together, bounded: a
// takeover waits for few round trips whatever the tail holds. A next owner that was announced reads
// most of it ahead. Source: PROTOCOL 3.5 (claim, step 3), 3.8, 3.12.

import { LIMITS } from '../../../config/limits.ts'
import type { EntryHead } from '../../../protocol/entry/entry.ts'
import { placeOfKey, shardOf } from '../../../protocol/ids.ts'
import { CREATE_KEY_SUFFIX } from '../../../storage/journal.ts'
import type { AliasRow, ClaimedShard, DerivedRow, Journal } from '../../../storage/journal.ts'
import { Activation } from '../turn/activation.ts'
import { EntriesMissing, load } from '../turn/loading.ts'
import type { LoadSource, LoadedEntry } from '../turn/loading.ts'
import type { ShardContext, ShardState } from '../core.ts'
import type { Flushable } from '../commit/flusher.ts'
import { idOf } from '../keys/keys.ts'
import type { KeyTable } from '../keys/keys.ts'
import type { Numbers } from '../keys/numbers.ts'
import { entriesBetween, entriesOfRow, lostBehind } from './log-tail.ts'
import type { Placed } from './log-tail.ts'
import { fewestToSpill, markRow } from '../turn/marks.ts'
import type { Mark, SpilledMarks } from '../turn/marks.ts'
import { NEW_SNAPSHOT, decodeShardSnapshot } from './shard-snapshot.ts'
import type { LastSnapshot, ShardSnapshot } from './shard-snapshot.ts'
import { isRelayed } from '../commit/outbox.ts'
import type { Outbox } from '../commit/outbox.ts'
import { DEAD_LETTERS } from '../turn/dead-letters.ts'
import type { DeadLetters } from '../turn/dead-letters.ts'

const READ_BYTES = 1024 * 1024
const AHEAD_ENTRIES_MAX = 4 * LIMITS.sharding.flushStoredEntries

/**
 * What was read of a shard ahead of its claim. It counts only together with the tail from `flush`
 * on, which was read before anything else: whatever rows were older has an entry in there.
 */
export interface Prefetched {
  readonly flush: number
  /** Entries with offset in (flush, upTo]. */
  readonly tail: readonly Placed[]
  readonly upTo: number
  readonly aliases: ReadonlyMap<string, AliasRow | null>
}

/** What the next owner was told or has read before the log was closed. */
export interface Ahead {
  readonly prefetched: Prefetched | null
  /** As of the claimed head. */
  readonly last?: LastSnapshot
}

/** A shard whose tables are rebuilt. */
export interface Recovering {
  readonly number: number
  readonly context: Pick<ShardContext, 'behaviours' | 'edgeMarkMs' | 'journal' | 'shards'>
  readonly keys: KeyTable
  readonly numbers: Numbers
  readonly spilled: SpilledMarks
  readonly deadLetters: DeadLetters
}

/** A shard that serves, and reads what it has still to send. */
export interface Relaying {
  readonly number: number
  readonly state: ShardState
  readonly context: Pick<ShardContext, 'clock' | 'journal' | 'log'>
  readonly outbox: Pick<Outbox, 'older'>
}

export interface Recovered {
  readonly snapshot: ShardSnapshot
  /** Up to here the derived rows are durable. */
  readonly flush: number
  /** Entries above it, with what of them has to be written. */
  readonly tail: readonly Flushable[]
  /** Rows of marks to be written with the first of them. */
  readonly marks: readonly DerivedRow[]
  /** Effects of entries in (behind, flush] are still to be read; null: there are none. */
  readonly behind: number | null
}

/** Reads a shard's tail and the rows that it goes on from; changes nothing. */
export async function readAhead(
  number: number,
  context: Recovering['context'],
): Promise<Prefetched> {
  const { log, derived } = context.journal
  const flush = (await derived.consumer(number, 'flush')) ?? 0
  const tail: Placed[] = []
  let upTo = flush
  while (tail.length < AHEAD_ENTRIES_MAX) {
    const rows = await log.read(number, upTo, READ_BYTES)
    // Rows that were trimmed since show that this was read too slowly to be of use.
    if (rows.length === 0 || rows[0]!.offset - rows[0]!.count > upTo) break
    for (const row of rows) {
      tail.push(...entriesOfRow(row, upTo))
      upTo = row.offset
    }
  }
  return { flush, tail, upTo, aliases: await readAliases({ number, context }, tail, new Map()) }
}

/** Rebuilds the shard's state up to the claimed head. */
export async function recover(
  shard: Recovering,
  claimed: ClaimedShard,
  { prefetched, last }: Ahead = NOTHING_AHEAD,
): Promise<Recovered> {
  const { number, context } = shard
  const { log, derived, identity } = context.journal
  const known = isUseful(prefetched, claimed) ? prefetched : null
  const flush = known ? known.flush : claimed.flush
  const tail: Placed[] = known ? [...known.tail] : []
  const readTail = async (): Promise<void> => {
    const source = { number, log, identity }
    for await (const placed of entriesBetween(source, known?.upTo ?? flush, claimed.head)) {
      tail.push(placed)
    }
  }
  const [row, deadLetters] = await Promise.all([
    last ? null : derived.shard(number),
    last?.poisoned === false ? NO_ROWS : derived.parked(number, DEAD_LETTERS),
    readTail(),
  ])
  shard.deadLetters.load(deadLetters)
  const snapshot = last?.memory ?? (row ? decodeShardSnapshot(row.body) : NEW_SNAPSHOT)
  const aliases = await readAliases(shard, tail, known?.aliases ?? new Map())
  const marks = await spilledMarks(shard, tail)
  shard.numbers.inherit(snapshot, flush)
  const flushables = tail.map(({ entry, offset, body }): Flushable => {
    if (entry.g) shard.numbers.replayed(entry.g, offset)
    const rows = entry.k ? shard.keys.apply(entry, offset, aliases) : NO_ALIASES
    return { entry, bytes: body, offset, aliases: rows, spilled: NO_MARKS, snapshot: null }
  })
  return {
    snapshot: last ? snapshot : snapshotAt(snapshot, row?.offset ?? 0, tail),
    flush,
    tail: flushables,
    marks,
    behind: snapshot.relayed < flush ? snapshot.relayed : null,
  }
}

/** Read ahead too early it saves nothing: what has come since is most of it. */
function isUseful(ahead: Prefetched | null, claimed: ClaimedShard): ahead is Prefetched {
  return (
    ahead !== null &&
    ahead.upTo <= claimed.head &&
    claimed.head - ahead.upTo <= LIMITS.sharding.flushStoredEntries
  )
}

/** Returns the shard's snapshot as its tail has moved it: bytes of the log, the clock. */
function snapshotAt(snapshot: ShardSnapshot, at: number, tail: readonly Placed[]): ShardSnapshot {
  let { clockMs, logBytes } = snapshot
  // The row was written below the head that its bytes were counted up to.
  const counted = snapshot.counted ?? at
  for (const { entry, offset, rowBytes } of tail) {
    clockMs = Math.max(clockMs, entry.c)
    if (offset > counted) logBytes += rowBytes
  }
  return { ...snapshot, clockMs, logBytes }
}

type KeyReader = Pick<Recovering, 'number' | 'context'>

/** The rows that the tail's changes of keys go on from, as far as they matter. */
async function readAliases(
  shard: KeyReader,
  tail: readonly Placed[],
  known: ReadonlyMap<string, AliasRow | null>,
): Promise<Map<string, AliasRow | null>> {
  const rows = new Map(known)
  const reads: { readonly id: string; readonly keyType: string; readonly key: string }[] = []
  for (const { entry } of tail) {
    for (const { keyType, key, change } of entry.k ?? []) {
      const id = idOf(keyType, key)
      if (rows.has(id) || entry.q !== undefined) continue
      if (!isOfShard(shard, keyType, key)) continue
      rows.set(id, null)
      // Who takes a key has it alone: what was there before doesn't matter.
      if (change !== 'take') reads.push({ id, keyType, key })
    }
  }
  const { derived } = shard.context.journal
  await together(reads, async ({ id, keyType, key }) => {
    rows.set(id, await derived.alias(keyType, key))
  })
  return rows
}

/** Keys of creates without a number lie where their create went, whatever their own hash says. */
function isOfShard(shard: KeyReader, keyType: string, key: string): boolean {
  if (keyType.endsWith(CREATE_KEY_SUFFIX)) return true
  return shardOf(placeOfKey(keyType, key), shard.context.shards) === shard.number
}

/**
 * Marks that left the window of an actor in the tail: their rows may not have been written. They
 * are written with the first of the tail, for the flush offset may pass it ahead of the others.
 */
async function spilledMarks(shard: Recovering, tail: readonly Placed[]): Promise<DerivedRow[]> {
  const hot = new Map<string, { readonly last: EntryHead; readonly tail: LoadedEntry[] }>()
  const fewest = fewestToSpill()
  for (const { entry } of tail) {
    if (entry.n >= fewest) hot.set(entry.p, { last: entry, tail: [] })
  }
  if (hot.size === 0) return []
  for (const { entry, offset, body } of tail) {
    // What is noted of a key, or of where an effect goes, is no entry of the actor it names.
    if (entry.n > 0) hot.get(entry.p)?.tail.push({ offset, body })
  }
  const first = tail[0]!.offset
  const rows: DerivedRow[] = []
  const source = storedEntries(shard.context.journal, shard.number)
  await together([...hot], async ([actorId, { last, tail: own }]) => {
    const behaviour = shard.context.behaviours.get(last.y)!
    const { edgeMarkMs } = shard.context
    const activation = new Activation(behaviour, actorId, last.q ?? null, edgeMarkMs)
    activation.onSpilled = (marks) => {
      shard.spilled.add(actorId, marks, first)
      for (const mark of marks) rows.push(markRow(actorId, mark, mark.offset))
    }
    try {
      await load(activation, { ...source, tail: () => own })
    } catch (error) {
      // A log that has given room back may lack the beginning of what ends further on in it.
      const mayEnd = error instanceof EntriesMissing && behaviour.countsUntilMs !== undefined
      if (!mayEnd) throw error
    }
  })
  return rows
}

/** Hands out effects of entries in (behind, upTo] that may not have been taken, while it serves. */
export async function relayOlder(shard: Relaying, behind: number, upTo: number): Promise<void> {
  const { number, context, outbox } = shard
  const { journal, clock, log } = context
  const source = { number, log: journal.log, identity: journal.identity }
  while (shard.state !== 'stopped') {
    try {
      const older: Placed[] = []
      for await (const placed of entriesBetween(source, behind, upTo)) {
        if (isRelayed(placed.entry)) older.push(placed)
      }
      outbox.older(older)
      return
    } catch (error) {
      log.warn({ err: error, shard: number }, 'effects to be relayed could not be read')
      await new Promise<void>(
        (resolve) => void clock.after(LIMITS.sharding.relayRetryMsMax, resolve),
      )
    }
  }
}

/** What the derived rows have of an actor: the tail above them is the caller's to add. */
export function storedEntries({ derived, identity }: Journal, shard: number): LoadSource {
  return {
    snapshot: (id) => derived.snapshot(id),
    entries: (id, after) =>
      derived.entries(id, { order: 'ascending', after, bytesMax: READ_BYTES }),
    tail: () => [],
    lostBehind: lostBehind(identity, shard),
  }
}

/** Runs `each` for all, few at a time. */
async function together<T>(all: readonly T[], each: (one: T) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < all.length) await each(all[next++]!)
  }
  await Promise.all(
    Array.from({ length: Math.min(LIMITS.sharding.recoveryReadsMax, all.length) }, lane),
  )
}

const NOTHING_AHEAD: Ahead = { prefetched: null }
const NO_ROWS: readonly [] = []
const NO_ALIASES: readonly AliasRow[] = []
const NO_MARKS: readonly Mark[] = []
