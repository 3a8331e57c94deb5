// One batch of the projector: which nodes the entries touched, each written once with the newest
// content of its actor, and what could not be projected. The projector fills it from the log, and
// the index takes it whole. Source: PROTOCOL 3.13.1.

import { LIMITS } from '../../config/limits.ts'
import type { NodeDoc, NodeRef } from '../../protocol/behaviour.ts'
import { type AnyEntry, recordsOf } from '../../protocol/entry/entry.ts'
import type { Position } from '../../protocol/ids.ts'
import type { IndexWrite } from '../../storage/search.ts'
import type { FoldedActor } from './actor-states.ts'

/** An actor whose projection failed (PROTOCOL 3.11): set aside until it is tried again. */
export interface ParkedActor {
  readonly actorId: string
  readonly type: string
  readonly shard: number
  /** Offset of the entry at which it failed. */
  readonly offset: number
  readonly version: number
  readonly nodes: readonly NodeRef[]
  readonly reason: string
}

/** How a parked actor is kept in its row's body. */
export function encodeParked(parked: ParkedActor): Buffer {
  return Buffer.from(JSON.stringify(parked))
}

export function decodeParked(body: Uint8Array): ParkedActor {
  return JSON.parse(Buffer.from(body).toString()) as ParkedActor
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}

/** Where an entry stands, and how long it is. */
export interface Place {
  readonly shard: number
  readonly offset: number
  readonly bytes: number
}

/** A node's name within its actor. */
export function refKey(ref: NodeRef): string {
  return `${ref.node}\0${ref.id}`
}

export function positionsOf(offsets: ReadonlyMap<number, number>): Position[] {
  return Array.from(offsets, ([shard, offset]) => ({ shard, offset }))
}

interface TouchedActor {
  readonly actor: FoldedActor
  /** Place of the newest entry that touched it. */
  at: Place
  /** True when its first entry is in this batch: then all its nodes are written. */
  isNew: boolean
  /** Nodes that records name; null: none but those of a new actor. */
  refs: Map<string, NodeRef> | null
  /** Places of its nodes as the index has them; null: it isn't known, so all are written. */
  readonly places: Places | null
}

/** A node of an actor, and where it stands among those of its type. */
interface PlacedRef extends NodeRef {
  readonly place: number
}

/** An actor's nodes in its own order, by refKey. */
export type Places = ReadonlyMap<string, PlacedRef>

const NO_PLACES: Places = new Map()

/**
 * Where each node stands in its actor's own order, in which nested lists are shown. One that goes
 * moves all behind it.
 */
export function placesOf({ behaviour, state }: FoldedActor): Places {
  if (state === null || behaviour.isDeleted(state)) return NO_PLACES
  const places = new Map<string, PlacedRef>()
  const counts = new Map<string, number>()
  for (const { node, id } of behaviour.nodes(state)) {
    const place = counts.get(node) ?? 0
    counts.set(node, place + 1)
    places.set(refKey({ node, id }), { node, id, place })
  }
  return places
}

/**
 * True when nodes stand as they came: those that stayed as before, new ones behind them. Else one
 * has left its place and come again, or a rewind has brought one back amid others.
 */
function areAsTheyCame(now: Places, before: Places): boolean {
  const last = new Map<string, number>()
  for (const [key, { node }] of now) {
    const place = before.get(key)?.place ?? Number.POSITIVE_INFINITY
    if (place < (last.get(node) ?? 0)) return false
    last.set(node, place)
  }
  return true
}

export class ProjectionBatch {
  /** Entries taken, those without records included. */
  entries = 0
  bytes = 0
  /** Time of the newest entry taken, by shard. */
  readonly timesMs = new Map<number, number>()
  readonly #offsets = new Map<number, number>()
  readonly #touched = new Map<string, TouchedActor>()
  readonly #placed: boolean

  /** `placed`: all writes name the places of their nodes (GraphWriter.placed). */
  constructor(placed: boolean) {
    this.#placed = placed
  }

  /** Moves the shard's offset over entries up to this one, which was made at `timeMs`. */
  pass({ shard, offset }: Position, timeMs: number): void {
    this.#offsets.set(shard, offset)
    this.timesMs.set(shard, timeMs)
  }

  /**
   * Before an entry is folded: what the index has of its actor is what the state says now. Null
   * when it is known already, or can't be.
   */
  before(actor: FoldedActor, entry: AnyEntry): Places | null {
    if (this.#touched.has(actor.actorId)) return null
    // A state that is ahead of the entry is ahead of the index, too.
    return actor.version === entry.v ? placesOf(actor) : null
  }

  /**
   * Adds the nodes that the entry's records name. The content is taken when the batch is full. An
   * actor's first entry needs no names: it can't have changed any node but those that are there.
   */
  touch(actor: FoldedActor, entry: AnyEntry, at: Place, places: Places | null): void {
    let touched = this.#touched.get(actor.actorId)
    if (touched === undefined) {
      touched = { actor, at, isNew: false, refs: null, places }
      this.#touched.set(actor.actorId, touched)
    }
    touched.at = at
    if (entry.v === 0) {
      touched.isNew = true
      return
    }
    touched.refs ??= new Map()
    for (const record of recordsOf(entry, actor.behaviour)) {
      const refs = actor.behaviour.touched(record, actor.actorId)
      for (const ref of refs) touched.refs.set(refKey(ref), ref)
    }
  }

  /** Takes an actor out: nothing of it is written by this batch. Answers what it had touched. */
  remove(actorId: string): NodeRef[] {
    const touched = this.#touched.get(actorId)
    this.#touched.delete(actorId)
    return touched === undefined ? [] : named(touched)
  }

  get offsets(): Position[] {
    return positionsOf(this.#offsets)
  }

  /** Contents of all touched nodes. An actor that throws is handed to `park`, the others go on. */
  writes(park: (parked: ParkedActor) => void): IndexWrite[] {
    const writes: IndexWrite[] = []
    for (const [actorId, touched] of this.#touched) {
      const before = writes.length
      try {
        writes.push(...(this.#placed ? placedWrites(touched) : plainWrites(touched)))
      } catch (error) {
        writes.length = before
        park({ ...this.parkedOf(actorId), reason: reasonOf(error) })
        this.#touched.delete(actorId)
      }
    }
    return writes
  }

  /** An actor of this batch as it would be parked, but for the reason. */
  parkedOf(actorId: string): Omit<ParkedActor, 'reason'> {
    const touched = this.#touched.get(actorId)!
    const { actor, at } = touched
    return {
      actorId,
      type: actor.behaviour.type,
      shard: at.shard,
      offset: at.offset,
      version: actor.version,
      nodes: named(touched),
    }
  }
}

function named({ refs }: TouchedActor): NodeRef[] {
  return refs === null ? [] : [...refs.values()]
}

/** Nodes that entries touched, in no order; a new actor's are all of them. */
function touchedRefs({ isNew, refs }: TouchedActor, places: Places): Map<string, NodeRef> {
  const all = new Map<string, NodeRef>(isNew ? places : [])
  for (const [key, ref] of refs ?? []) all.set(key, ref)
  return all
}

/**
 * The nodes that entries touched, in the actor's order; where nodes don't stand as they came, all
 * that are there, with their places.
 */
function plainWrites(touched: TouchedActor): IndexWrite[] {
  const { actor, isNew, refs, places: before } = touched
  // An actor whose only entry this is: its nodes come as they stand.
  if (isNew && refs === null) return Array.from(nodesOf(actor), (ref) => writeOf(actor, ref))
  const places = placesOf(actor)
  const all = touchedRefs(touched, places)
  if (before === null || !areAsTheyCame(places, before)) {
    return writesOf(actor, all.values(), { placed: false, places })
  }
  return inOrder(all, places).map((ref) => writeOf(actor, ref))
}

function nodesOf({ behaviour, state }: FoldedActor): readonly NodeRef[] {
  return state === null ? [] : behaviour.nodes(state)
}

/** Nodes that are there in their actor's own order, behind those that are not. */
function inOrder(refs: ReadonlyMap<string, NodeRef>, places: Places): NodeRef[] {
  const gone = [...refs].filter(([key]) => !places.has(key)).map(([, ref]) => ref)
  const there = [...places].filter(([key]) => refs.has(key)).map(([, ref]) => ref)
  return [...gone, ...there]
}

/** The nodes that entries touched, and those whose place is another than the index has. */
function placedWrites(touched: TouchedActor): IndexWrite[] {
  const { actor, places: before } = touched
  const places = placesOf(actor)
  const refs = touchedRefs(touched, places)
  for (const [key, ref] of places) {
    if (before?.get(key)?.place !== ref.place) refs.set(key, ref)
  }
  return writesOf(actor, refs.values(), { placed: true, places })
}

/** How an index wants its writes (GraphWriter.placed); `places` where they are known already. */
interface Wanted {
  readonly placed: boolean
  readonly places?: Places
}

/**
 * Newest contents of an actor's nodes with their places, or their removal. Where all writes are
 * placed the actor's own node is among them, and holds the others; else all that are there are
 * (IndexWrite.place).
 */
export function writesOf(
  actor: FoldedActor,
  refs: Iterable<NodeRef>,
  { placed, places = placesOf(actor) }: Wanted,
): IndexWrite[] {
  const { actorId } = actor
  const all = new Map(Array.from(refs, (ref) => [refKey(ref), ref]))
  const living = [...places.values()]
  const own = living.find(({ id }) => id === actorId)
  const docs = placed && own !== undefined ? docsOf(actor, living) : null
  if (!placed) for (const [key, ref] of places) all.set(key, ref)
  else if (own !== undefined) all.set(refKey(own), own)
  return inOrder(all, places).map((ref) => {
    const key = refKey(ref)
    const write = writeOf(actor, ref, docs?.get(key))
    if (write.doc === null) return write
    const there = { ...write, place: places.get(key)!.place }
    if (ref.id !== actorId || docs === null) return there
    return { ...there, whole: [...docs.values()].filter(({ id }) => id !== actorId) }
  })
}

/** All nodes of an actor, in its order; null: too many to be held by one. */
function docsOf(
  { behaviour, state }: FoldedActor,
  refs: readonly NodeRef[],
): ReadonlyMap<string, NodeDoc> | null {
  if (refs.length > LIMITS.storage.indexWholeNodesMax) return null
  const docs = new Map<string, NodeDoc>()
  for (const ref of refs) {
    const found = behaviour.project(state, ref)
    if (found !== null) docs.set(refKey(ref), found)
  }
  return docs
}

/** A node's newest content, or its removal when the state no longer has it. */
function writeOf(actor: FoldedActor, ref: NodeRef, known?: NodeDoc): IndexWrite {
  const { actorId, behaviour, state, version } = actor
  const isGone = state === null || behaviour.isDeleted(state)
  const found = known ?? (isGone ? null : behaviour.project(state, ref))
  return { node: ref.node, actorId, id: ref.id, version, doc: found?.doc ?? null }
}
