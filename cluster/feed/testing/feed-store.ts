// A journal in memory with a pen: tests of the feed write notebooks into its shards and say when
// derived rows arrive and when the log is trimmed; beside it the plainest graph index there is,
// which fails when it is told to. It stands in for the runtime and for the index drivers.

import type { ActorRecord, Behaviour } from '../../../protocol/behaviour.ts'
import { type Entry, encodeEntry, joinEntries, metaOf } from '../../../protocol/entry/entry.ts'
import { type Position, placeOfActor, shardOf, SYSTEM_SHARD } from '../../../protocol/ids.ts'
import type { DerivedRow, Journal } from '../../../storage/journal.ts'
import { memoryJournal } from '../../../storage/memory/journal.ts'
import type { Fill, GraphWriter, IndexWrite } from '../../../storage/search.ts'
import type { SnapshotView } from '../actor-states.ts'

interface Written {
  version: number
  n: number
  state: unknown
}

/** UUID of test actor `i` in a shard of `shards`: its last two bytes say where it lives. */
export function actorIdOf(i: number, shard: number): string {
  const place = shard.toString(16).padStart(4, '0')
  return `019a0000-0000-7000-8000-${i.toString(16).padStart(8, '0')}${place}`
}

export class FeedStore {
  readonly journal: Journal
  readonly shards: number
  readonly heads = new Map<number, number>()
  nowMs = 1_000
  readonly #behaviour: Behaviour
  readonly #actors = new Map<string, Written>()
  readonly #unflushed = new Map<number, DerivedRow[]>()
  readonly #epochs = new Map<number, number>()

  constructor(behaviour: Behaviour, store: Journal | { shards: number; generation: string }) {
    this.#behaviour = behaviour
    this.journal = 'log' in store ? store : memoryJournal(store)
    this.shards = this.journal.identity.shards
    if (behaviour.home === 'system') this.heads.set(SYSTEM_SHARD, 0)
    else for (let shard = 0; shard < this.shards; shard++) this.heads.set(shard, 0)
  }

  #shardOf(actorId: string): number {
    if (this.#behaviour.home === 'system') return SYSTEM_SHARD
    return shardOf(placeOfActor(actorId), this.shards)
  }

  /** Commits one group: an entry for each list of records. All actors are of one shard. */
  async commit(...entries: readonly (readonly [string, ...ActorRecord[]])[]): Promise<Position> {
    const shard = this.#shardOf(entries[0]![0])
    const head = this.heads.get(shard)!
    const bodies = entries.map(([actorId, ...records], i) =>
      this.#entry(actorId, records, head + i + 1),
    )
    const epoch = await this.epoch(shard)
    const commitId = `00000000-0000-4000-8000-${String(head * 64 + shard + 1).padStart(12, '0')}`
    const count = entries.length
    const body = joinEntries(bodies)
    await this.journal.log.append([{ shard, epoch, head, count, commitId, body }])
    this.heads.set(shard, head + count)
    return { shard, offset: head + count }
  }

  /** Derived rows of all entries arrive, in order, and `flush` moves; at most `max` rows. */
  async flush(max = Number.MAX_SAFE_INTEGER): Promise<void> {
    for (const [shard, rows] of this.#unflushed) {
      const some = rows.splice(0, max)
      if (some.length === 0) continue
      const { offset } = some.at(-1)!
      const flush: DerivedRow = { kind: 'consumer', consumer: 'flush', offset }
      await this.journal.derived.write(shard, await this.epoch(shard), [...some, flush])
    }
  }

  /** Takes a snapshot of an actor as it is now. Its entries must have been flushed. */
  async snapshot(actorId: string): Promise<void> {
    const shard = this.#shardOf(actorId)
    const { version, n, state } = this.#actors.get(actorId)!
    const view: SnapshotView = {
      type: this.#behaviour.type,
      version,
      n,
      state: this.#behaviour.toSnapshot(state),
    }
    const body = Buffer.from(JSON.stringify(view))
    const row: DerivedRow = { kind: 'snapshot', actorId, offset: this.heads.get(shard)!, body }
    await this.journal.derived.write(shard, await this.epoch(shard), [row])
  }

  /** Drops the log up to what has been flushed. */
  async trim(): Promise<void> {
    for (const shard of this.heads.keys()) {
      const flushed = (await this.journal.derived.consumer(shard, 'flush')) ?? 0
      await this.journal.log.trim!(shard, await this.epoch(shard), flushed)
    }
  }

  /** What an index must hold: every node of every state, by actor, node and id. */
  expected(): Map<string, unknown> {
    const docs = new Map<string, unknown>()
    for (const [actorId, { state }] of this.#actors) {
      if (this.#behaviour.isDeleted(state)) continue
      for (const ref of this.#behaviour.nodes(state)) {
        docs.set(`${actorId} ${ref.node} ${ref.id}`, this.#behaviour.project(state, ref)!.doc)
      }
    }
    return docs
  }

  #entry(actorId: string, records: readonly ActorRecord[], offset: number): Buffer {
    const actor = this.#actors.get(actorId) ?? { version: 0, n: 0, state: null }
    this.#actors.set(actorId, actor)
    actor.n++
    const entry: Entry = {
      y: this.#behaviour.type,
      p: actorId,
      v: actor.version,
      n: actor.n,
      r: records,
      m: `m${offset}`,
      l: 0,
      a: { type: 'test', success: true },
      t: this.nowMs,
      c: this.nowMs,
      b: 'test',
    }
    actor.version += records.length
    records.forEach((record, i) => {
      // The writer knows all records; only the follower may have defects.
      const known = record.t === 'unfoldable' || record.t === 'unshowable'
      if (known && actor.state !== null) return
      actor.state = this.#behaviour.evolve(actor.state, record, metaOf(entry, i))
    })
    const body = encodeEntry(entry)
    const shard = this.#shardOf(actorId)
    const rows = this.#unflushed.get(shard) ?? []
    this.#unflushed.set(shard, rows)
    rows.push({ kind: 'entry', actorId, n: actor.n, offset, body })
    return body
  }

  /** Another owner takes the shard: writes of the one before are fenced from now on. */
  async claim(shard: number): Promise<number> {
    this.#epochs.delete(shard)
    return this.epoch(shard)
  }

  async epoch(shard: number): Promise<number> {
    let epoch = this.#epochs.get(shard)
    if (epoch === undefined) {
      epoch = (await this.journal.log.claim(shard)).epoch
      this.#epochs.set(shard, epoch)
    }
    return epoch
  }
}

export function decodeTestSnapshot(body: Uint8Array): SnapshotView {
  return JSON.parse(Buffer.from(body).toString()) as SnapshotView
}

/** The plainest index: it keeps the newest version of each node and fails when it is told to. */
export class PlainIndex implements GraphWriter {
  readonly placed: boolean = false
  /** Called before and after what is applied is in; may throw. */
  fault: (when: 'before' | 'after', writes: readonly IndexWrite[]) => void = () => undefined
  applied: (readonly IndexWrite[])[] = []
  resets = 0
  #generation: string | null = null
  #offsets = new Map<number, number>()
  readonly #fills = new Map<number, Fill>()
  #rows = new Map<string, { version: number; doc: unknown }>()

  apply(
    writes: readonly IndexWrite[],
    offsets: readonly Position[],
    fills: readonly Fill[] = [],
  ): void {
    this.fault('before', writes)
    this.applied.push(writes)
    for (const { actorId, node, id, version, doc } of writes) {
      const key = `${actorId} ${node} ${id}`
      const there = this.#rows.get(key)
      // As JSON: what is kept must not change with the state it was made of.
      const kept = JSON.parse(JSON.stringify(doc)) as unknown
      if (there === undefined || there.version <= version) {
        this.#rows.set(key, { version, doc: kept })
      }
    }
    for (const { shard, offset } of offsets) {
      this.#offsets.set(shard, offset)
      this.#fills.delete(shard)
    }
    for (const fill of fills) this.#fills.set(fill.shard, fill)
    this.fault('after', writes)
  }

  docs(): Map<string, unknown> {
    const docs = new Map<string, unknown>()
    for (const [key, { doc }] of this.#rows) if (doc !== null) docs.set(key, doc)
    return docs
  }

  offsets(): ReadonlyMap<number, number> {
    return this.#offsets
  }

  fills(): ReadonlyMap<number, Fill> {
    return this.#fills
  }

  generation(): string | null {
    return this.#generation
  }

  reset(generation: string): void {
    this.resets++
    this.#generation = generation
    this.#offsets = new Map()
    this.#fills.clear()
    this.#rows = new Map()
  }

  close(): void {}
}
