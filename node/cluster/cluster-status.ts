// The state of the cluster as an operator asks for it: members, shards with their owners, heads and
// index lag, planned moves. Its own shards a member knows; the heads of others it reads from the
// store, at most once a second. Source: CONTRACT 0 "Operations".

import type { Clock } from '../../cluster/clock.ts'
import type { Overview } from '../../cluster/placement/ownership.ts'
import type { Shard } from '../../cluster/sharding/shard.ts'
import type { LogReader, Maybe } from '../../storage/journal.ts'
import { LIMITS } from '../../config/limits.ts'

export interface ClusterStatusOptions {
  readonly overview: () => Overview
  /** Tenures of this member. */
  readonly tenures: ReadonlyMap<number, Pick<Shard, 'epoch' | 'state' | 'gate'>>
  readonly log: Pick<LogReader, 'status'>
  /** Offset up to which the graph index holds a shard; null: unknown. */
  readonly applied: (shard: number) => Maybe<number | null>
  readonly clock: Clock
}

export interface ClusterStatus {
  readonly members: readonly {
    readonly memberId: string
    readonly incarnation: string
    readonly state: string
    readonly address: string
    readonly version: string
    readonly wire: string
  }[]
  readonly shards: readonly ShardStatusRow[]
  readonly moves: Overview['moves']
}

interface ShardStatusRow {
  readonly shard: number
  readonly owner: string | null
  readonly epoch: number
  readonly head: number
  /** Entries that the graph index has not yet; of `system`, which has no graph nodes, 0. */
  readonly lag: number
  readonly state: string
}

export class ClusterStatusReader {
  readonly #options: ClusterStatusOptions
  #known: { readonly atMs: number; readonly status: Promise<ClusterStatus> } | null = null

  constructor(options: ClusterStatusOptions) {
    this.#options = options
  }

  /** Rejects when the store can't be read now. */
  read(): Promise<ClusterStatus> {
    const nowMs = this.#options.clock.monotonicMs()
    if (this.#known === null || nowMs - this.#known.atMs > LIMITS.cluster.statusMs) {
      const status = this.#read()
      const known = { atMs: nowMs, status }
      this.#known = known
      status.catch(() => {
        if (this.#known === known) this.#known = null
      })
    }
    return this.#known.status
  }

  async #read(): Promise<ClusterStatus> {
    const { members, shards, moves } = this.#options.overview()
    const rows: ShardStatusRow[] = []
    const waiting = shards.toSorted((a, b) => a.shard - b.shard)
    const reader = async (): Promise<void> => {
      for (let next = waiting.pop(); next; next = waiting.pop()) rows.push(await this.#row(next))
    }
    await Promise.all(Array.from({ length: LIMITS.cluster.statusReadsMax }, reader))
    return {
      members: members.map(({ member, incarnation, state, address, version, wire = 'up' }) => {
        return { memberId: member, incarnation, state, address, version, wire }
      }),
      shards: rows.toSorted((a, b) => a.shard - b.shard),
      moves,
    }
  }

  async #row({ shard, epoch, owner }: Overview['shards'][number]): Promise<ShardStatusRow> {
    const { tenures, log, applied } = this.#options
    const mine = tenures.get(shard)
    const isMine = mine !== undefined && mine.epoch >= epoch
    const { head } = isMine ? mine.gate : await log.status(shard)
    const done = await applied(shard)
    return {
      shard,
      owner,
      epoch: isMine ? mine.epoch : epoch,
      head,
      lag: Math.max(0, head - (done ?? 0)),
      state: isMine ? mine.state : owner === null ? 'unowned' : 'serving',
    }
  }
}
