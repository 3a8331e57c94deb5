// What a committed entry makes of its actor's graph nodes: the owner of a shard has the state
// behind it from the shard, or folds its actors as the index does, and gives all nodes of the types
// that are wanted. Source: PROTOCOL 3.15, 3.18, CONTRACT 1.10.

import type { Clock } from '../../../cluster/clock.ts'
import { ActorStates, ProjectionError } from '../../../cluster/feed/actor-states.ts'
import type { DecodeSnapshot, FoldedActor } from '../../../cluster/feed/actor-states.ts'
import type { FeedEntry } from '../../../cluster/feed/log-follower.ts'
import type { Matcher } from '../../../cluster/feed/watch/feed-watch.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { decodeEntry } from '../../../protocol/entry/entry.ts'
import type { Doc } from '../../../protocol/graph/evaluate.ts'
import type { DerivedStore, Maybe } from '../../../storage/journal.ts'

export type NodeRow = readonly [type: string, id: string, doc: Doc]

/** An actor whose nodes may be others now; it has none but these of the types that were wanted. */
export interface NodeChange {
  readonly actorId: string
  readonly nodes: readonly NodeRow[]
}

export interface NodeChangesOptions {
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly derived: Pick<DerivedStore, 'snapshot' | 'entries'>
  readonly decodeSnapshot: DecodeSnapshot
  readonly clock: Pick<Clock, 'after'>
}

type ShownActor = Pick<FoldedActor, 'behaviour' | 'state'>

export class NodeChanges {
  readonly #options: NodeChangesOptions
  readonly #states: ActorStates
  /** What was asked last, for all that watch. */
  #last: { readonly taken: FeedEntry; readonly actor: Maybe<ShownActor | null> } | null = null

  constructor(options: NodeChangesOptions) {
    this.#options = options
    const { queryActorsMax: actorsMax, queryActorsBytesMax: bytesMax } = LIMITS.live
    this.#states = new ActorStates({ ...options, actorsMax, bytesMax })
  }

  /** null: not as it should be. */
  matcher(interest: unknown): Matcher | null {
    const { types } = (interest ?? {}) as { readonly types?: unknown }
    if (!Array.isArray(types)) return null
    const wanted = new Set<unknown>(types)
    return (taken) => {
      const behaviour = this.#options.behaviours.get(taken.entry.y)
      if (behaviour === undefined || taken.entry.r.length === 0) return []
      if (!behaviour.nodeTypes.some(({ name }) => wanted.has(name))) return []
      const actor = this.#shown(taken, behaviour)
      return actor instanceof Promise
        ? actor.then((one) => [changeOf(taken, one, wanted)])
        : [changeOf(taken, actor, wanted)]
    }
  }

  #shown(taken: FeedEntry, behaviour: Behaviour): Maybe<ShownActor | null> {
    if (this.#last?.taken === taken) return this.#last.actor
    const actor = this.#atHand(taken, behaviour) ?? this.#folded(taken)
    this.#last = { taken, actor }
    return actor
  }

  /** With the state that the shard has behind the entry; null: it has to be folded. */
  #atHand({ entry, fresh }: FeedEntry, behaviour: Behaviour): ShownActor | null {
    const state = fresh?.state
    // One that was folded before goes on so: it can be further already, and nothing goes back.
    if (state === undefined || this.#states.find(entry.p) !== null) return null
    return { behaviour, state }
  }

  #folded({ fresh, ...taken }: FeedEntry): Maybe<FoldedActor | null> {
    this.#states.trim()
    // The runtime's own records must not get into a state that is changed.
    return this.#fold(fresh ? { ...taken, entry: decodeEntry(fresh.bytes) } : taken)
  }

  /** null: it can't be folded, and shows nothing. */
  #fold(taken: FeedEntry): Maybe<FoldedActor | null> {
    const { entry } = taken
    const known = this.#states.find(entry.p)
    if (entry.v > 0 && (known === null || known.version < entry.v)) return this.#load(taken)
    return this.#onto(known ?? this.#states.begin(entry.p, entry.y), taken)
  }

  async #load(taken: FeedEntry): Promise<FoldedActor | null> {
    const { entry } = taken
    const { clock } = this.#options
    for (let tries = 1; tries <= LIMITS.live.queryRowsTriesMax; tries++) {
      try {
        const actor = await this.#states.load(entry.p)
        if (actor !== null && actor.version >= entry.v) return this.#onto(actor, taken)
      } catch (error) {
        if (!(error instanceof ProjectionError)) throw error
        this.#states.drop(entry.p)
        return null
      }
      // Its rows are on their way: they are written after the commit (PROTOCOL 3.12).
      await new Promise<void>((resolve) => void clock.after(LIMITS.live.queryRowsMs, resolve))
    }
    throw new Error(`the rows of the actor ${entry.p} have not come yet`)
  }

  #onto(actor: FoldedActor, { entry, bytes }: FeedEntry): FoldedActor | null {
    try {
      // What was loaded may have it already.
      if (actor.version === entry.v) {
        this.#states.fold(actor, entry, bytes)
      }
      this.#states.touch(actor)
      return actor
    } catch {
      this.#states.drop(entry.p)
      return null
    }
  }
}

function changeOf(
  { entry }: FeedEntry,
  actor: ShownActor | null,
  wanted: ReadonlySet<unknown>,
): NodeChange {
  const nodes: NodeRow[] = []
  if (actor !== null) {
    const { behaviour, state } = actor
    for (const ref of behaviour.nodes(state)) {
      if (!wanted.has(ref.node)) continue
      const found = behaviour.project(state, ref)
      if (found !== null) nodes.push([ref.node, ref.id, found.doc])
    }
  }
  return { actorId: entry.p, nodes }
}
