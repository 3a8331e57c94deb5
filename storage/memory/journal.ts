// The journal in memory: the reference twin that every driver is compared with, and the store of
// tests and simulations. Its state is a plain object that may outlive it, as a disk outlives a
// process. Hooks make it fail the ways that a real store fails. Source: PROTOCOL 3.0, 3.2,
// ARCHITECTURE 7.

import { assert } from '../../protocol/errors.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type {
  AppendOutcome,
  ClaimedShard,
  DerivedRow,
  Group,
  Journal,
  LogRow,
  LogStore,
  Maybe,
  ShardStatus,
  StoreIdentity,
} from '../journal.ts'
import { MemoryDerived } from './derived.ts'
import { MemoryRegisters } from './registers.ts'

/** An append that is answered `unknown` at once and evaluated when `when` resolves (F13). */
export interface LateAppend {
  readonly outcome: 'unknown'
  readonly when: Promise<void>
}

/** Failures to inject. Every hook may wait; null lets the call go on as it is. May be changed. */
export interface MemoryHooks {
  /** Before a group is evaluated: an outcome is its answer, and nothing of it is in. */
  beforeAppend?: ((group: Group) => Maybe<AppendOutcome | LateAppend | null>) | undefined
  /** After a group was evaluated: an outcome replaces its answer, whatever is in. */
  afterAppend?: ((group: Group, outcome: AppendOutcome) => Maybe<AppendOutcome | null>) | undefined
  /** Before derived rows are written: an outcome is the answer, and nothing is in. */
  beforeWrite?:
    | ((shard: number, rows: readonly DerivedRow[]) => Maybe<AppendOutcome | null>)
    | undefined
}

export interface MemoryJournalOptions {
  /** Number of shards, a power of two; the `system` shard comes on top. */
  readonly shards: number
  readonly generation: string
  readonly hooks?: MemoryHooks
  /** State of an earlier journal: opens what that one has left. */
  readonly state?: MemoryState
}

interface ShardState {
  epoch: number
  head: number
  lastCommit: string | null
  /** By offset, rising. */
  readonly rows: LogRow[]
}

/** What a store keeps beyond a process. */
export interface MemoryState {
  readonly identity: StoreIdentity
  readonly shards: Map<number, ShardState>
  readonly registers: MemoryRegisters
}

export interface MemoryJournal extends Journal {
  readonly state: MemoryState
  readonly hooks: MemoryHooks
}

/** A journal in memory. Throws when `state` was made with another number of shards. */
export function memoryJournal(options: MemoryJournalOptions): MemoryJournal {
  const { shards, generation } = options
  assert(shards > 0 && (shards & (shards - 1)) === 0, 'the number of shards is a power of two')
  const state = options.state ?? {
    identity: { format: 1, shards, generation, secret: `of ${generation}` },
    shards: new Map<number, ShardState>(),
    registers: new MemoryRegisters(),
  }
  if (state.identity.shards !== shards) {
    throw new Error(
      `this store has ${state.identity.shards} shards and can't be opened with ${shards}`,
    )
  }
  const hooks = options.hooks ?? {}
  const log = new MemoryLog(state, hooks)
  return {
    identity: state.identity,
    log,
    derived: new MemoryDerived({
      registers: state.registers,
      epochOf: (shard) => shardOfState(state, shard).epoch,
      beforeWrite: (shard, rows) => hooks.beforeWrite?.(shard, rows) ?? null,
    }),
    state,
    hooks,
    close: () => Promise.resolve(),
  }
}

function shardOfState(state: MemoryState, shard: number): ShardState {
  let found = state.shards.get(shard)
  if (found === undefined) {
    const known = Number.isInteger(shard) && shard >= SYSTEM_SHARD && shard < state.identity.shards
    assert(known, `shard ${shard} is not one of this store`)
    found = { epoch: 0, head: 0, lastCommit: null, rows: [] }
    state.shards.set(shard, found)
  }
  return found
}

/** Index of the first row whose offset is above `offset`. */
function firstAbove(rows: readonly LogRow[], offset: number): number {
  let low = 0
  let high = rows.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (rows[middle]!.offset > offset) high = middle
    else low = middle + 1
  }
  return low
}

class MemoryLog implements LogStore {
  readonly appendsMax = 1
  readonly groupsMax = Number.MAX_SAFE_INTEGER
  readonly #state: MemoryState
  readonly #hooks: MemoryHooks

  constructor(state: MemoryState, hooks: MemoryHooks) {
    this.#state = state
    this.#hooks = hooks
  }

  claim(shard: number): Promise<ClaimedShard> {
    const s = shardOfState(this.#state, shard)
    s.epoch++
    const flush = this.#state.registers.consumer(shard, 'flush') ?? 0
    return Promise.resolve({ epoch: s.epoch, head: s.head, flush })
  }

  async append(groups: readonly Group[]): Promise<readonly AppendOutcome[]> {
    const outcomes: AppendOutcome[] = []
    for (const group of groups) {
      const before = await this.#hooks.beforeAppend?.(group)
      if (before !== null && before !== undefined) {
        if (typeof before === 'string') {
          outcomes.push(before)
        } else {
          outcomes.push(before.outcome)
          const copy = { ...group, body: Buffer.from(group.body) }
          void before.when.then(() => this.#apply(copy))
        }
        continue
      }
      const outcome = this.#apply(group)
      outcomes.push((await this.#hooks.afterAppend?.(group, outcome)) ?? outcome)
    }
    return outcomes
  }

  #apply(group: Group): AppendOutcome {
    assert(group.count > 0, 'a group has entries')
    const s = shardOfState(this.#state, group.shard)
    const offset = group.head + group.count
    if (s.epoch !== group.epoch || s.head !== group.head) {
      // The first copy of the same bytes may have won (PROTOCOL 3.2.4).
      const row = s.rows[firstAbove(s.rows, offset - 1)]
      const isIn = row?.offset === offset && row.commitId === group.commitId
      return isIn || s.lastCommit === group.commitId ? 'committed' : 'fenced'
    }
    const { shard, epoch, count, commitId } = group
    s.rows.push({ shard, epoch, offset, count, commitId, body: Buffer.from(group.body) })
    s.head = offset
    s.lastCommit = commitId
    return 'committed'
  }

  status(shard: number): ShardStatus {
    const { epoch, head, lastCommit } = shardOfState(this.#state, shard)
    return { epoch, head, lastCommit }
  }

  epochNow(shard: number): number {
    return shardOfState(this.#state, shard).epoch
  }

  read(shard: number, after: number, bytesMax: number): readonly LogRow[] {
    const { rows } = shardOfState(this.#state, shard)
    const found: LogRow[] = []
    let bytes = 0
    for (let i = firstAbove(rows, after); i < rows.length; i++) {
      bytes += rows[i]!.body.length
      if (found.length > 0 && bytes > bytesMax) break
      found.push(rows[i]!)
    }
    return found
  }

  trim(shard: number, epoch: number, upTo: number): Promise<void> {
    const s = shardOfState(this.#state, shard)
    if (s.epoch <= epoch) s.rows.splice(0, firstAbove(s.rows, upTo))
    return Promise.resolve()
  }
}
