// The log of a run, folded: what the engine's witness has seen, as entries by shard and by actor,
// with every state that each actor has had. The checkers compare it with what clients were told.

import { decodeEntry, metaOf, recordsOf, splitEntries } from '../../../protocol/entry/entry.ts'
import type { StoredEntry } from '../../../protocol/entry/entry.ts'
import type { AppliedRow } from '../witness.ts'
import type { Ledger } from '../clients/ledger.ts'
import { flag, ledger } from '../clients/ledger.ts'

export interface PlacedEntry {
  readonly shard: number
  readonly offset: number
  readonly epoch: number
  /** When its row was appended, milliseconds. */
  readonly atMs: number
  readonly entry: StoredEntry
  readonly bytes: Uint8Array
}

export interface FoldedActor {
  readonly actorId: string
  readonly type: string
  readonly shard: number
  readonly entries: PlacedEntry[]
  /** State after each entry: `states[i]` after `entries[i]`. */
  readonly states: unknown[]
}

export interface FoldedLog {
  readonly shards: ReadonlyMap<number, readonly PlacedEntry[]>
  readonly actors: ReadonlyMap<string, FoldedActor>
  /** Of entries that can't be folded: the log itself is wrong. */
  readonly mistakes: readonly string[]
}

/** Folds rows in the order in which they were applied. */
export function foldLog(rows: ReadonlyMap<number, readonly AppliedRow[]>): FoldedLog {
  const shards = new Map<number, PlacedEntry[]>()
  const actors = new Map<string, FoldedActor>()
  const mistakes: string[] = []
  for (const [shard, applied] of rows) {
    const entries = applied.flatMap(entriesOf)
    shards.set(shard, entries)
    for (const placed of entries) {
      const problem = fold(actors, placed)
      if (problem !== null) mistakes.push(problem)
    }
  }
  return { shards, actors, mistakes }
}

function entriesOf(row: AppliedRow): PlacedEntry[] {
  const { shard, epoch, offset, count, atMs } = row
  return splitEntries(row.body).map((bytes, i) => ({
    shard,
    epoch,
    atMs,
    offset: offset - count + 1 + i,
    entry: decodeEntry(bytes),
    bytes,
  }))
}

function fold(actors: Map<string, FoldedActor>, placed: PlacedEntry): string | null {
  const { entry, shard } = placed
  // What was done to a key alone belongs to no actor.
  if (entry.n === 0) return null
  let actor = actors.get(entry.p)
  if (!actor) {
    actor = { actorId: entry.p, type: entry.y, shard, entries: [], states: [] }
    actors.set(entry.p, actor)
  }
  let state = actor.states.at(-1) ?? null
  const behaviour = entry.y === flag.type ? flag : ledger
  try {
    for (const [i, record] of recordsOf(entry, behaviour).entries()) {
      state = behaviour.evolve(state as never, record, metaOf(entry, i))
    }
  } catch (error) {
    return `entry ${entry.n} of ${entry.p} can't be folded: ${String(error)}`
  }
  actor.entries.push(placed)
  actor.states.push(state)
  return null
}

/** State of a ledger right before its entry at `offset` of its shard, and after it. */
export function stateAround(
  actor: FoldedActor,
  offset: number,
): { readonly before: Ledger | null; readonly after: Ledger | null } | null {
  const i = actor.entries.findIndex((placed) => placed.offset === offset)
  if (i < 0) return null
  const before = (i === 0 ? null : actor.states[i - 1]) as Ledger | null
  return { before, after: actor.states[i] as Ledger | null }
}

export function finalState(actor: FoldedActor | undefined): Ledger | null {
  return (actor?.states.at(-1) ?? null) as Ledger | null
}
