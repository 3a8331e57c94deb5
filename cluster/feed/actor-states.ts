// States of actors as a consumer of the feed has folded them: a bounded cache, filled from the
// entries that pass by and, for an actor that is not in it, from the derived rows (snapshot, then
// the entries above it). Source: PROTOCOL 3.12, 3.13.

import type { Behaviour } from '../../protocol/behaviour.ts'
import { type AnyEntry, decodeEntry, metaOf, recordsOf } from '../../protocol/entry/entry.ts'
import { ReleasingMap } from '../../protocol/releasing-map.ts'
import { assert } from '../../protocol/errors.ts'
import { type Standing, moveOver, successionOf } from '../../protocol/entry/succession.ts'
import { LIMITS } from '../../config/limits.ts'
import type { DerivedStore } from '../../storage/journal.ts'

/** What a consumer of the feed needs of a snapshot. */
export interface SnapshotView {
  readonly type: string
  /** Number of records in it. */
  readonly version: number
  /** Number of the newest entry in it. */
  readonly n: number
  /** For `Behaviour.fromSnapshot`; null: the actor has only rejected entries. */
  readonly state: unknown
}

/** A record or snapshot that the actor type can't read: the actor's fault, not the store's. */
export class ProjectionError extends Error {}

export type DecodeSnapshot = (body: Uint8Array) => SnapshotView

export interface FoldedActor {
  readonly actorId: string
  readonly behaviour: Behaviour
  state: unknown
  /** Number of records folded. */
  version: number
  /** What it is taken to weigh: its state when it was measured last, and the entries since. */
  bytes: number
  /** Bytes of its state when it was measured last. */
  measured: number
}

export interface ActorStatesOptions {
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly derived: Pick<DerivedStore, 'snapshot' | 'entries'>
  readonly decodeSnapshot: DecodeSnapshot
  /** Of those that were seen more than once; new ones have no more. */
  readonly actorsMax?: number
  readonly bytesMax?: number
}

/** Actors in order of last use: the first is the first to go. */
class Part {
  readonly actors = new ReleasingMap<string, FoldedActor>()
  bytes = 0
  readonly #actorsMax: number
  readonly #bytesMax: number

  constructor(actorsMax: number, bytesMax: number) {
    this.#actorsMax = actorsMax
    this.#bytesMax = bytesMax
  }

  add(actor: FoldedActor): void {
    this.actors.set(actor.actorId, actor)
    this.bytes += actor.bytes
  }

  remove(actor: FoldedActor): void {
    if (this.actors.delete(actor.actorId)) this.bytes -= actor.bytes
  }

  /** Drops the actors used longest ago until the bounds hold. */
  trim(): void {
    for (const actor of this.actors.values()) {
      if (this.actors.size <= this.#actorsMax && this.bytes <= this.#bytesMax) return
      this.remove(actor)
    }
  }
}

/** Bytes of entries that one read of an actor's entries asks for. */
const READ_BYTES = 1024 * 1024

export class ActorStates {
  readonly #behaviours: ReadonlyMap<string, Behaviour>
  readonly #derived: Pick<DerivedStore, 'snapshot' | 'entries'>
  readonly #decodeSnapshot: DecodeSnapshot
  /** Those that were begun here and have not been used since, and all others. */
  readonly #fresh: Part
  readonly #known: Part

  constructor(options: ActorStatesOptions) {
    this.#behaviours = options.behaviours
    this.#derived = options.derived
    this.#decodeSnapshot = options.decodeSnapshot
    const { projectorNewMax, projectorNewBytesMax } = LIMITS.feed
    const {
      actorsMax = LIMITS.feed.projectorActorsMax,
      bytesMax = LIMITS.feed.projectorActorsBytesMax,
    } = options
    this.#known = new Part(actorsMax, bytesMax)
    this.#fresh = new Part(
      Math.min(actorsMax, projectorNewMax),
      Math.min(bytesMax, projectorNewBytesMax),
    )
  }

  get size(): number {
    return this.#fresh.actors.size + this.#known.actors.size
  }

  get bytes(): number {
    return this.#fresh.bytes + this.#known.bytes
  }

  find(actorId: string): FoldedActor | null {
    return this.#known.actors.get(actorId) ?? this.#fresh.actors.get(actorId) ?? null
  }

  /** A new actor, before its first record. It must not be here yet; nothing is read. */
  begin(actorId: string, type: string): FoldedActor {
    return this.#begin(this.#fresh, actorId, type)
  }

  /**
   * Folds the entry's records. The actor must stand right before it: versions are dense. Throws
   * ProjectionError when a record can't be applied; the actor's state is then of no use.
   */
  fold(actor: FoldedActor, entry: AnyEntry, bytes: number): void {
    assert(actor.version === entry.v, 'an entry is folded onto another version than its own')
    try {
      for (const [i, record] of recordsOf(entry, actor.behaviour).entries()) {
        actor.state = actor.behaviour.evolve(actor.state, record, metaOf(entry, i))
      }
    } catch (error) {
      throw new ProjectionError(
        `a record above version ${entry.v} can't be applied: ${String(error)}`,
        { cause: error },
      )
    }
    actor.version += entry.r.length
    this.#weigh(actor, actor.bytes + bytes)
    const { weighedAnewBytes } = LIMITS.feed
    if (actor.bytes > Math.max(weighedAnewBytes, 2 * actor.measured)) {
      const state: unknown = actor.state === null ? null : actor.behaviour.toSnapshot(actor.state)
      actor.measured = Buffer.byteLength(JSON.stringify(state))
      this.#weigh(actor, actor.measured)
    }
  }

  /**
   * The actor from the derived rows, kept from now on; null when there are none. They may end
   * before the log does (they are written after the commit): the caller compares versions.
   */
  async load(actorId: string): Promise<FoldedActor | null> {
    this.drop(actorId)
    const row = await this.#derived.snapshot(actorId)
    const at: Standing = { version: 0, recordedAt: row?.offset ?? 0 }
    let actor: FoldedActor | null = null
    let after = 0
    if (row !== null) {
      const snapshot = this.#decodeSnapshot(row.body)
      after = snapshot.n
      at.version = snapshot.version
      actor = this.#fromSnapshot(actorId, snapshot, row.body.length)
    }
    for (;;) {
      const range = { order: 'ascending', after, bytesMax: READ_BYTES } as const
      const rows = await this.#derived.entries(actorId, range)
      for (const { n, offset, body } of rows) {
        after = n
        const entry = decodeEntry(body)
        const succession = successionOf(at, entry, offset)
        // What is missing is still under way, or lost. What is there up to it is whole.
        if (succession === 'gap') return actor
        if (succession === 'stray') continue
        moveOver(at, entry, offset)
        if (entry.r.length === 0) continue
        actor ??= this.#begin(this.#known, actorId, entry.y)
        actor.version = entry.v
        this.fold(actor, entry, body.length)
      }
      if (rows.length === 0) return actor
    }
  }

  /** Marks an actor as used now. */
  touch(actor: FoldedActor): void {
    if (this.find(actor.actorId) !== actor) return
    this.drop(actor.actorId)
    this.#known.add(actor)
  }

  /** Forgets an actor: its state can't be trusted any more. */
  drop(actorId: string): void {
    const actor = this.find(actorId)
    if (actor !== null) this.#partOf(actor)?.remove(actor)
  }

  /** Forgets all actors of which it is true. */
  dropAll(isOver: (actor: FoldedActor) => boolean): void {
    for (const { actors } of [this.#fresh, this.#known]) {
      for (const actor of [...actors.values()]) if (isOver(actor)) this.drop(actor.actorId)
    }
  }

  clear(): void {
    this.dropAll(() => true)
  }

  /** Drops the actors used longest ago until the bounds hold. Called between batches. */
  trim(): void {
    this.#fresh.trim()
    this.#known.trim()
  }

  #partOf(actor: FoldedActor): Part | null {
    for (const part of [this.#known, this.#fresh]) {
      if (part.actors.get(actor.actorId) === actor) return part
    }
    return null
  }

  #weigh(actor: FoldedActor, bytes: number): void {
    const weight = Math.min(bytes, LIMITS.sharding.stateBytesMax)
    const part = this.#partOf(actor)
    if (part !== null) part.bytes += weight - actor.bytes
    actor.bytes = weight
  }

  #begin(part: Part, actorId: string, type: string): FoldedActor {
    const behaviour = this.#behaviour(type)
    const actor = { actorId, behaviour, state: null, version: 0, bytes: 0, measured: 0 }
    part.add(actor)
    return actor
  }

  #fromSnapshot(actorId: string, snapshot: SnapshotView, bytes: number): FoldedActor {
    const behaviour = this.#behaviour(snapshot.type)
    let state: unknown
    try {
      state = snapshot.state === null ? null : behaviour.fromSnapshot(snapshot.state)
    } catch (error) {
      throw new ProjectionError(`the snapshot can't be read: ${String(error)}`, { cause: error })
    }
    const { version } = snapshot
    const weight = Math.min(bytes, LIMITS.sharding.stateBytesMax)
    const actor = { actorId, behaviour, state, version, bytes: weight, measured: weight }
    this.#known.add(actor)
    return actor
  }

  #behaviour(type: string): Behaviour {
    const behaviour = this.#behaviours.get(type)
    if (behaviour === undefined) {
      throw new ProjectionError(
        `there is no actor type '${type}' in this version; it was written by another`,
      )
    }
    return behaviour
  }
}
