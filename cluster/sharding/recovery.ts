// Recovery of one shard: what a new owner reads before it serves. The log behind the flush offset
// is replayed into the derived rows, the shard's own memory is rebuilt, effects that were not
// relayed are found again. It stands between a claim and the first envelope. Source: PROTOCOL 3.5
// (claim, step 3), 3.12.

import { assert } from '../../protocol/errors.ts'
import { decodeEntry, splitEntries } from '../../protocol/entry.ts'
import type { Entry } from '../../protocol/entry.ts'
import { placeOfKey, shardOf } from '../../protocol/ids.ts'
import type { AliasRow, ClaimedShard, DerivedRow, LogRow } from '../../storage/journal.ts'
import { Activation, load } from './activation.ts'
import type { ShardCore } from './core.ts'
import { NEW_MEMORY } from './memory.ts'
import type { ShardMemory } from './memory.ts'
import { idOf } from './keys.ts'
import { LIMITS } from '../../config/limits.ts'
import { markDay } from './marks.ts'

const READ_BYTES = 1024 * 1024

export interface Recovered {
  readonly memory: ShardMemory
  /** Entries whose effects may not have been taken yet. */
  readonly effects: readonly { readonly entry: Entry; readonly offset: number }[]
}

interface Placed {
  readonly entry: Entry
  readonly offset: number
  readonly body: Uint8Array
}

/** Entries of a log row that a reader standing at `after` has not had yet. */
export function* entriesOfRow(row: LogRow, after: number): Generator<Placed> {
  const first = row.offset - row.count + 1
  const bodies = splitEntries(row.body)
  assert(bodies.length === row.count, `the row at offset ${row.offset} holds its entries`)
  for (let i = 0; i < bodies.length; i++) {
    if (first + i <= after) continue
    yield { entry: decodeEntry(bodies[i]!), offset: first + i, body: bodies[i]! }
  }
}

/** Every entry with offset in (after, upTo], in order. Throws when one is missing. */
export async function* entriesBetween(
  shard: ShardCore,
  after: number,
  upTo: number,
): AsyncGenerator<Placed, void> {
  let at = after
  while (at < upTo) {
    at = resumedBehind(shard, at)
    if (at >= upTo) return
    const rows = await shard.context.journal.log.read(shard.number, at, READ_BYTES)
    if (rows.length === 0) throw new Error(missing(shard, at + 1))
    for (const row of rows) {
      if (row.offset - row.count > at) throw new Error(missing(shard, at + 1))
      for (const placed of entriesOfRow(row, at)) {
        at = placed.offset
        yield placed
      }
    }
  }
}

/** Behind what an operator has given up the log goes on higher (PROTOCOL 3.16). */
function resumedBehind(shard: ShardCore, at: number): number {
  const { losses } = shard.context.journal.identity
  const loss = losses?.find(({ shard: s, offset }) => s === shard.number && offset === at)
  return loss ? loss.resumedAt : at
}

/** Offset behind which the shard has lost entries for good; -1: none. */
export function lostBehind(shard: ShardCore): number {
  let offset = -1
  for (const loss of shard.context.journal.identity.losses ?? []) {
    if (loss.shard === shard.number) offset = Math.max(offset, loss.offset)
  }
  return offset
}

function missing(shard: ShardCore, offset: number): string {
  return `the log of shard ${shard.number} has no entry at offset ${offset}: restore a backup`
}

/** Brings the derived rows to the head and rebuilds what the shard remembers. */
export async function replayTail(shard: ShardCore, claimed: ClaimedShard): Promise<Recovered> {
  const { derived } = shard.context.journal
  const row = await derived.shard(shard.number)
  const memory: ShardMemory = row
    ? (JSON.parse(Buffer.from(row.body).toString()) as ShardMemory)
    : NEW_MEMORY
  shard.numbers.heard(memory.counters)
  let { clockMs } = memory
  let replayedBytes = 0
  const effects: { entry: Entry; offset: number }[] = []
  const rows: DerivedRow[] = []
  const touched = new Map<string, Entry>()
  const aliases = new Map<string, AliasRow | null>()
  for await (const placed of entriesBetween(
    shard,
    Math.min(claimed.flush, memory.relayed),
    claimed.head,
  )) {
    const { entry, offset, body } = placed
    clockMs = Math.max(clockMs, entry.c)
    if (entry.e && offset > memory.relayed) effects.push({ entry, offset })
    if (offset <= claimed.flush) continue
    replayedBytes += body.length
    if (entry.g) shard.numbers.heard(entry.g)
    if (entry.n > 0) {
      rows.push({ kind: 'entry', actorId: entry.p, n: entry.n, offset, body })
      touched.set(entry.p, entry)
    }
    await keyRows(shard, placed, aliases, rows)
  }
  if (claimed.head > claimed.flush) {
    await write(shard, rows)
    await write(shard, await spilledMarks(shard, touched))
  }
  const own: ShardMemory = {
    ...memory,
    counters: shard.numbers.all(),
    clockMs,
    relayed: (effects[0]?.offset ?? claimed.head + 1) - 1,
    logBytes: memory.logBytes + replayedBytes,
  }
  if (claimed.head > claimed.flush) {
    await write(shard, [
      { kind: 'shard', offset: claimed.head, body: Buffer.from(JSON.stringify(own)) },
      { kind: 'consumer', consumer: 'flush', offset: claimed.head },
    ])
  }
  return { memory: own, effects }
}

async function keyRows(
  shard: ShardCore,
  { entry, offset }: Placed,
  aliases: Map<string, AliasRow | null>,
  rows: DerivedRow[],
): Promise<void> {
  for (const { keyType, key } of entry.k ?? []) {
    const mine = entry.q === undefined && isOfShard(shard, entry, keyType, key)
    const id = idOf(keyType, key)
    if (mine && !aliases.has(id)) {
      aliases.set(id, await shard.context.journal.derived.alias(keyType, key))
    }
  }
  for (const row of shard.keys.apply(entry, offset, aliases)) {
    aliases.set(idOf(row.keyType, row.key), row)
    rows.push({ kind: 'alias', offset, row })
  }
}

/** Keys of creates without a number lie where their create went, whatever their own hash says. */
function isOfShard(shard: ShardCore, entry: Entry, keyType: string, key: string): boolean {
  if (keyType.endsWith('!key')) return true
  if (entry.n > 0 && entry.k!.some((k) => k.change === 'claim' && k.key === key)) return false
  return shardOf(placeOfKey(keyType, key), shard.context.shards) === shard.number
}

/** Marks that left the window of an actor in the tail: their rows may not have been written. */
async function spilledMarks(
  shard: ShardCore,
  touched: ReadonlyMap<string, Entry>,
): Promise<DerivedRow[]> {
  const { derived } = shard.context.journal
  const rows: DerivedRow[] = []
  for (const [actorId, entry] of touched) {
    if (entry.n < LIMITS.marksBytesMax / LIMITS.markAnswerBytesMax) continue
    const behaviour = shard.context.behaviours.get(entry.y)!
    const activation = new Activation(behaviour, actorId, entry.q ?? null)
    activation.onSpilled = (marks) => {
      for (const mark of marks) {
        const body = Buffer.from(JSON.stringify(mark))
        const day = markDay(mark.clock)
        const { messageId, offset } = mark
        rows.push({ kind: 'mark', actorId, day, messageId, offset, body })
      }
    }
    await load(activation, {
      snapshot: (id) => derived.snapshot(id),
      entries: (id, after) =>
        derived.entries(id, { order: 'ascending', after, bytesMax: READ_BYTES }),
      tail: () => [],
      lostBehind: lostBehind(shard),
    })
  }
  return rows
}

async function write(shard: ShardCore, rows: readonly DerivedRow[]): Promise<void> {
  for (let i = 0; i < rows.length; i += 1_000) {
    const part = rows.slice(i, i + 1_000)
    const outcome = await shard.context.journal.derived.write(shard.number, shard.epoch, part)
    if (outcome !== 'committed') {
      throw new Error(
        outcome === 'full'
          ? 'the disk is full: free some space and start again'
          : `derived rows of shard ${shard.number} could not be written: ${outcome}`,
      )
    }
  }
}
