// Control rows and segments in memory: the twin that the Cassandra driver is compared with, and the
// store of simulations. Statements are evaluated when they are called; what a real engine does to
// them (late, twice, unheard) is wrapped around it. Its state is a plain object that outlives it.
// Source: PROTOCOL 3.0, 3.1, 3.3, 3.5.

import { assert } from '../../protocol/errors.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import { NIL_INCARNATION } from '../control.ts'
import type {
  ControlStore,
  MemberChange,
  MemberCondition,
  MemberRow,
  Outcome,
  ShardRow,
} from '../control.ts'
import type { Group, LogRow } from '../journal.ts'
import type { SegmentId, SegmentStatics, SegmentStore } from '../segments.ts'

interface SegmentState {
  epoch: number
  readonly base: number
  head: number
  lastCommit: string | null
  sealed: boolean
  /** By offset, rising. */
  rows: LogRow[]
}

/** What the engine keeps over the incarnations of members. */
export interface StatementState {
  readonly members: Map<string, MemberRow>
  readonly shards: Map<number, ShardRow>
  readonly segments: Map<string, SegmentState>
}

/** The rows of a new store: every shard unowned, with its first segment open. */
export function newStatementState(shards: number): StatementState {
  const state: StatementState = { members: new Map(), shards: new Map(), segments: new Map() }
  for (let shard = SYSTEM_SHARD; shard < shards; shard++) {
    state.shards.set(shard, {
      shard,
      epoch: 0,
      owner: '',
      incarnation: NIL_INCARNATION,
      segment: 1,
    })
    state.segments.set(nameOf({ shard, segment: 1 }), newSegment(0, 0))
  }
  return state
}

export class MemoryControl implements ControlStore {
  readonly #state: StatementState

  constructor(state: StatementState) {
    this.#state = state
  }

  async members(): Promise<readonly MemberRow[]> {
    return [...this.#state.members.values()]
  }

  async shards(): Promise<readonly ShardRow[]> {
    return [...this.#state.shards.values()]
  }

  async member(member: string): Promise<MemberRow | null> {
    return this.#state.members.get(member) ?? null
  }

  async shard(shard: number): Promise<ShardRow> {
    return this.#shard(shard)
  }

  async insertMember(row: MemberRow): Promise<Outcome> {
    if (this.#state.members.has(row.member)) return 'refused'
    this.#state.members.set(row.member, row)
    return 'applied'
  }

  async updateMember(member: string, to: MemberChange, where: MemberCondition): Promise<Outcome> {
    const row = this.#state.members.get(member)
    if (
      !row ||
      row.incarnation !== where.incarnation ||
      (where.state !== undefined && row.state !== where.state) ||
      (where.beat !== undefined && row.beat !== where.beat)
    ) {
      return 'refused'
    }
    this.#state.members.set(member, { ...row, ...to })
    return 'applied'
  }

  async updateShard(
    shard: number,
    to: { readonly epoch: number; readonly owner: string; readonly incarnation: string },
    where: { readonly epoch: number; readonly incarnation: string },
  ): Promise<Outcome> {
    const row = this.#shard(shard)
    if (row.epoch !== where.epoch || row.incarnation !== where.incarnation) return 'refused'
    this.#state.shards.set(shard, { ...row, ...to })
    return 'applied'
  }

  async hintSegment(
    shard: number,
    segment: number,
    where: { readonly epoch: number },
  ): Promise<Outcome> {
    const row = this.#shard(shard)
    if (row.epoch !== where.epoch) return 'refused'
    this.#state.shards.set(shard, { ...row, segment })
    return 'applied'
  }

  #shard(shard: number): ShardRow {
    const row = this.#state.shards.get(shard)
    assert(row !== undefined, `shard ${shard} is not one of this store`)
    return row
  }
}

export interface MemorySegmentsOptions {
  readonly appendsMax?: number
}

export class MemorySegments implements SegmentStore {
  readonly appendsMax: number
  readonly #state: StatementState

  constructor(state: StatementState, options: MemorySegmentsOptions = {}) {
    this.#state = state
    this.appendsMax = options.appendsMax ?? 8
  }

  async statics(of: SegmentId): Promise<SegmentStatics | null> {
    const found = this.#state.segments.get(nameOf(of))
    if (!found) return null
    const { epoch, base, head, lastCommit, sealed } = found
    return { epoch, base, head, lastCommit, sealed }
  }

  async open(
    of: SegmentId,
    first: { readonly epoch: number; readonly head: number },
  ): Promise<Outcome> {
    const name = nameOf(of)
    if (this.#state.segments.has(name)) return 'refused'
    this.#state.segments.set(name, newSegment(first.epoch, first.head))
    return 'applied'
  }

  async fence(of: SegmentId, epoch: number): Promise<Outcome> {
    const found = this.#state.segments.get(nameOf(of))
    if (!found || found.epoch >= epoch) return 'refused'
    found.epoch = epoch
    return 'applied'
  }

  async seal(
    of: SegmentId,
    where: { readonly epoch: number; readonly head: number },
  ): Promise<Outcome> {
    const found = this.#state.segments.get(nameOf(of))
    if (!found || found.epoch !== where.epoch || found.head !== where.head || found.sealed) {
      return 'refused'
    }
    found.sealed = true
    return 'applied'
  }

  async append(segment: number, group: Group): Promise<Outcome> {
    assert(group.count > 0, 'a group has entries')
    const { shard, epoch, head, count, commitId, body } = group
    const found = this.#state.segments.get(nameOf({ shard, segment }))
    if (!found || found.epoch !== epoch || found.head !== head || found.sealed) return 'refused'
    const offset = head + count
    found.rows.push({ shard, epoch, offset, count, commitId, body: Buffer.from(body) })
    found.head = offset
    found.lastCommit = commitId
    return 'applied'
  }

  async rows(
    of: SegmentId,
    range: { readonly after: number; readonly bytesMax: number },
  ): Promise<readonly LogRow[]> {
    const found: LogRow[] = []
    let bytes = 0
    for (const row of this.#state.segments.get(nameOf(of))?.rows ?? []) {
      if (row.offset <= range.after) continue
      bytes += row.body.length
      if (found.length > 0 && bytes > range.bytesMax) break
      found.push(row)
    }
    return found
  }

  async dropRows(of: SegmentId, upTo: number): Promise<void> {
    const found = this.#state.segments.get(nameOf(of))
    if (found) found.rows = found.rows.filter(({ offset }) => offset > upTo)
  }
}

function nameOf({ shard, segment }: SegmentId): string {
  return `${shard}/${segment}`
}

function newSegment(epoch: number, head: number): SegmentState {
  return { epoch, base: head, head, lastCommit: null, sealed: false, rows: [] }
}
