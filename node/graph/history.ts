// History nodes (journal and activity entries) out of an actor's entries, newest first. Graph
// requests read the derived rows, at hand or on a server; `query` messages read what a turn has at
// hand. Source: ARCHITECTURE 5, CONTRACT 1.4.

import type { Behaviour, NodeDoc } from '../../protocol/behaviour.ts'
import { type AnyEntry, decodeEntry, metaOf, recordsOf } from '../../protocol/entry/entry.ts'
import { assert } from '../../protocol/errors.ts'
import { type Standing, moveOver, successionOf } from '../../protocol/entry/succession.ts'
import type { HistorySource, RemoteHistory } from '../../protocol/graph/history.ts'
import { LIMITS } from '../../config/limits.ts'
import { ActorStates, type DecodeSnapshot } from '../../cluster/feed/actor-states.ts'
import type { DerivedReader, EntryRange, EntryRow, Maybe } from '../../storage/journal.ts'

/** Entries that one read of an actor's past asks for: about a screenful of history. */
const PAGE = 32

/** Bytes of entries that one read of a fold asks for. */
const READ_BYTES = 1024 * 1024

/** The nodes of a type that one entry shows, newest first. */
export function* historyOfEntry(
  behaviour: Behaviour,
  entry: AnyEntry,
  node: string,
): Generator<NodeDoc> {
  const records = recordsOf(entry, behaviour)
  for (let i = records.length - 1; i >= 0; i--) {
    const shown = behaviour.history(records[i]!, metaOf(entry, i))
    for (let k = shown.length - 1; k >= 0; k--) if (shown[k]!.node === node) yield shown[k]!
  }
}

export interface DerivedHistoryOptions {
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly derived: Pick<DerivedReader, 'entries' | 'snapshot'>
  readonly decodeSnapshot: DecodeSnapshot
}

/**
 * History from the derived rows, page by page as far as the caller reads. The rows must be at hand
 * (an embedded store): a plan's execution can't wait in its middle.
 */
export function derivedHistory(options: DerivedHistoryOptions): HistorySource {
  const { behaviours } = options
  const tombstones = new Tombstones(options)
  return {
    *read(actorId, node) {
      let rows = page(options, actorId, Number.MAX_SAFE_INTEGER)
      const newest = rows[0]
      const behaviour = newest && behaviours.get(decodeEntry(newest.body).y)
      if (behaviour === undefined || tombstones.has(actorId, newest!.offset, behaviour)) return
      while (rows.length > 0) {
        for (const { body } of rows) yield* historyOfEntry(behaviour, decodeEntry(body), node)
        rows = isAll(rows) ? [] : page(options, actorId, rows.at(-1)!.n)
      }
    },
  }
}

function page(options: DerivedHistoryOptions, actorId: string, before: number) {
  return atHand(options.derived.entries(actorId, newestBelow(before)))
}

function newestBelow(before: number): EntryRange {
  return { order: 'descending', before, countMax: PAGE, bytesMax: READ_BYTES }
}

/** Fewer may come for their bytes, and the first may have expired: then one read more says so. */
function isAll(rows: readonly EntryRow[]): boolean {
  return rows.at(-1)!.n === 1
}

function atHand<T>(value: Maybe<T>): T {
  assert(!(value instanceof Promise), 'history is read from a store in this process')
  return value
}

/** Where a history that is read piece by piece goes on. */
interface Rest {
  /** Number of the oldest entry that was read. */
  readonly before: number
  readonly behaviour: Behaviour
}

/** History from derived rows that have to be waited for (a server's). */
export function remoteHistory(options: DerivedHistoryOptions): RemoteHistory {
  const { behaviours, derived } = options
  const tombstones = new Tombstones(options)
  const none = { nodes: [], rest: null }
  return {
    async read(actorId, node, rest) {
      const { before, behaviour: known } = (rest as Rest | null) ?? START
      const rows = await derived.entries(actorId, newestBelow(before))
      const newest = rows[0]
      if (newest === undefined) return none
      const behaviour = known ?? behaviours.get(decodeEntry(newest.body).y)
      if (behaviour === undefined) return none
      if (known === null && (await tombstones.ask(actorId, newest.offset, behaviour))) return none
      const nodes = rows.flatMap(({ body }) => [
        ...historyOfEntry(behaviour, decodeEntry(body), node),
      ])
      return { nodes, rest: isAll(rows) ? null : { before: rows.at(-1)!.n, behaviour } }
    },
  }
}

const START = { before: Number.MAX_SAFE_INTEGER, behaviour: null }

/**
 * Which actors are deleted: their history is no longer shown. Nothing but the state says so, so it
 * is folded once per actor and remembered until there is a newer entry.
 */
class Tombstones {
  readonly #options: DerivedHistoryOptions
  /** In order of learning: offset of the newest entry then, and the answer. */
  readonly #known = new Map<string, { readonly offset: number; readonly isDeleted: boolean }>()

  constructor(options: DerivedHistoryOptions) {
    this.#options = options
  }

  /** Where the rows are at hand. */
  has(actorId: string, newest: number, behaviour: Behaviour): boolean {
    const known = this.#known.get(actorId)
    if (known?.offset === newest) return known.isDeleted
    return this.#learn(actorId, newest, { behaviour, state: this.#fold(actorId, behaviour) })
  }

  /** Where they have to be waited for. */
  async ask(actorId: string, newest: number, behaviour: Behaviour): Promise<boolean> {
    const known = this.#known.get(actorId)
    if (known?.offset === newest) return known.isDeleted
    const { derived, decodeSnapshot, behaviours } = this.#options
    const states = new ActorStates({ behaviours, derived, decodeSnapshot })
    const actor = await states.load(actorId)
    return this.#learn(actorId, newest, { behaviour, state: actor?.state ?? null })
  }

  #learn(actorId: string, newest: number, of: { behaviour: Behaviour; state: unknown }): boolean {
    const { behaviour, state } = of
    const isDeleted = state === null || behaviour.isDeleted(state)
    if (this.#known.size >= LIMITS.graph.tombstonesKnownMax) {
      this.#known.delete(this.#known.keys().next().value!)
    }
    this.#known.delete(actorId)
    this.#known.set(actorId, { offset: newest, isDeleted })
    return isDeleted
  }

  #fold(actorId: string, behaviour: Behaviour): unknown {
    const { derived, decodeSnapshot } = this.#options
    const row = atHand(derived.snapshot(actorId))
    const snapshot = row === null ? null : decodeSnapshot(row.body)
    let state: unknown =
      snapshot === null || snapshot.state === null ? null : behaviour.fromSnapshot(snapshot.state)
    const at: Standing = { version: snapshot?.version ?? 0, recordedAt: row?.offset ?? 0 }
    for (let after = snapshot?.n ?? 0; ;) {
      const range = { order: 'ascending', after, bytesMax: READ_BYTES } as const
      const rows = atHand(derived.entries(actorId, range))
      if (rows.length === 0) return state
      for (const { offset, body } of rows) {
        const entry = decodeEntry(body)
        const succession = successionOf(at, entry, offset)
        if (succession === 'gap') return state
        if (succession === 'stray') continue
        moveOver(at, entry, offset)
        recordsOf(entry, behaviour).forEach((record, i) => {
          state = behaviour.evolve(state, record, metaOf(entry, i))
        })
      }
      after = rows.at(-1)!.n
    }
  }
}
