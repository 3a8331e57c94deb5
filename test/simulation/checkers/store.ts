// K4: the audit of the store. What was ever appended is one dense chain of segments by owners whose
// epochs never fall; commit ids and message ids are there once; versions and entries of each actor
// are dense; and the derived rows (entries, snapshots, aliases) are what the log says. Source:
// PROTOCOL 4.1, 3.7 (I1, I2, I4).

import { LIMITS } from '../../../config/limits.ts'
import { decodeEntry } from '../../../protocol/entry/entry.ts'
import { CLOCK_OFF_MS } from '../engines/engine.ts'
import type { Engine } from '../engines/engine.ts'
import { storedConsumer, storedEntries } from '../engines/stored.ts'
import type { AppliedRow } from '../witness.ts'
import type { FoldedActor, FoldedLog, PlacedEntry } from './fold.ts'

export function checkStore(engine: Engine, log: FoldedLog): string[] {
  return [
    ...log.mistakes.map((mistake) => `K4: ${mistake}`),
    ...[...engine.witness.rows].flatMap(([shard, rows]) => checkChain(shard, rows)),
    ...checkSegments(engine),
    ...[...log.shards].flatMap(([shard, entries]) => checkClock(shard, entries)),
    ...[...log.actors.values()].flatMap(checkActor),
    ...[...log.actors.values()].flatMap(checkSize),
    ...checkEntryRows(engine, log),
  ]
}

/** In the order of application: each row goes on where the last one ended. */
function checkChain(shard: number, rows: readonly AppliedRow[]): string[] {
  const found: string[] = []
  const commits = new Set<string>()
  let head = 0
  let epoch = 0
  let segment = 1
  for (const row of rows) {
    const who = `shard ${shard}: the row at ${row.offset} of ${row.by}`
    const first = row.offset - row.count
    if (first !== head) found.push(`K4: ${who} begins behind ${first}, the log ends at ${head}`)
    if (row.epoch < epoch) found.push(`K4: ${who} has epoch ${row.epoch} after ${epoch}`)
    if (row.segment < segment) found.push(`K4: ${who} is in segment ${row.segment}, not ${segment}`)
    if (commits.has(row.commitId)) found.push(`K4: ${who} was committed before`)
    commits.add(row.commitId)
    head = row.offset
    epoch = Math.max(epoch, row.epoch)
    segment = Math.max(segment, row.segment)
  }
  return found
}

/** A shard's clock goes on from one owner to the next: ages of message ids are reckoned by it. */
function checkClock(shard: number, entries: readonly PlacedEntry[]): string[] {
  let clock = 0
  for (const { entry, offset } of entries) {
    if (entry.c < clock) {
      return [`K4: shard ${shard}: its clock falls from ${clock} to ${entry.c} at ${offset}`]
    }
    clock = entry.c
  }
  return []
}

/** Each segment begins where the one before it was sealed. */
function checkSegments({ state }: Engine): string[] {
  const found: string[] = []
  for (const [name, { base }] of state.segments) {
    const [shard, segment] = name.split('/').map(Number) as [number, number]
    const before = state.segments.get(`${shard}/${segment - 1}`)
    if (segment === 1) continue
    if (!before?.sealed) found.push(`K4: segment ${name} was opened over one that is not sealed`)
    else if (before.head !== base) {
      found.push(`K4: segment ${name} begins at ${base}, the one before ends at ${before.head}`)
    }
  }
  return found
}

/**
 * Versions are dense; so are the numbers of entries, but for those of refusals that have passed,
 * which are given out again. Each message is there once within its incarnation.
 */
function checkActor(actor: FoldedActor): string[] {
  const found: string[] = []
  const messages = new Map<string, PlacedEntry>()
  const before: PlacedEntry[] = []
  let version = 0
  let most = 0
  for (const placed of actor.entries) {
    const { entry, shard, offset } = placed
    const who = `actor ${actor.actorId}, entry at ${shard}/${offset}`
    const isPassed = (one: PlacedEntry): boolean =>
      one.entry.n < entry.n || mayHavePassed(one, placed)
    const isNext = entry.n <= most + 1 && before.every(isPassed)
    if (!isNext) found.push(`K4: ${who} has number ${entry.n}, not ${most + 1}`)
    if (entry.v !== version) found.push(`K4: ${who} is on version ${entry.v}, not ${version}`)
    if (shard !== actor.shard) found.push(`K4: ${who} is not in its shard ${actor.shard}`)
    const other = messages.get(entry.m)
    if (other && isRemembered(other, placed)) {
      found.push(`K4: ${who} repeats the message ${entry.m} of offset ${other.offset}`)
    }
    messages.set(entry.m, placed)
    before.push(placed)
    most = Math.max(most, entry.n)
    version += entry.r.length
  }
  return found
}

/** An actor keeps its bound, over all the times that it was at rest (PROTOCOL 3.1). */
function checkSize({ actorId, states }: FoldedActor): string[] {
  const bytes = Buffer.byteLength(JSON.stringify(states.at(-1) ?? null))
  if (bytes <= LIMITS.sharding.stateBytesMax) return []
  return [`K11: actor ${actorId} takes ${bytes} bytes, more than ${LIMITS.sharding.stateBytesMax}`]
}

/** Rows of refusals go so long after they were written, by a clock that may be off. */
const PASSED_MS = LIMITS.storage.derivedTtlSeconds * 1_000 - 2 * CLOCK_OFF_MS

function mayHavePassed(one: PlacedEntry, now: { readonly atMs: number }): boolean {
  return one.entry.r.length === 0 && now.atMs - one.atMs >= PASSED_MS
}

/**
 * Whether a message had to be known still when it came again: ids of callers live for a day of the
 * shard's clock, ids that were made at an edge for as long as that edge may send them; neither
 * longer than their rows, where the clock has stood still.
 */
function isRemembered(first: PlacedEntry, second: PlacedEntry): boolean {
  if (second.atMs - first.atMs >= PASSED_MS) return false
  return first.entry.l === 0 || second.entry.c - first.entry.c < LIMITS.storage.callerMarkMs
}

/** Up to flush the actors' entries are there, each as the log has it. */
function checkEntryRows({ tables, scheduler }: Engine, log: FoldedLog): string[] {
  const found: string[] = []
  const stored = storedEntries(tables)
  const now = { atMs: scheduler.nowMs }
  for (const actor of log.actors.values()) {
    const rows = new Map(stored.get(actor.actorId)?.map((row) => [row.n, row]))
    const flush = storedConsumer(tables, actor.shard, 'flush') ?? 0
    const byNumber = new Map(actor.entries.map((placed) => [placed.entry.n, placed]))
    for (const placed of byNumber.values()) {
      const { entry, offset, bytes } = placed
      const row = rows.get(entry.n)
      rows.delete(entry.n)
      const who = `entry ${entry.n} of actor ${actor.actorId} at ${offset}`
      if (!row) {
        if (offset <= flush && !mayHavePassed(placed, now)) {
          found.push(`K4: ${who} is not among its rows, flush is ${flush}`)
        }
      } else if (row.offset !== offset || !Buffer.from(bytes).equals(row.body)) {
        const other = decodeEntry(row.body)
        found.push(`K4: ${who} stands there as ${other.m} of ${row.offset}`)
      }
    }
    for (const n of rows.keys()) found.push(`K4: entry ${n} of ${actor.actorId} is in no log`)
  }
  return found
}
