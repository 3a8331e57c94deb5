// A member without real shards: tenures that say what was asked of them and end as a test wants,
// for tests of how shards are claimed, announced, handed over and placed.

import type { Log } from '../../../protocol/log.ts'
import type { LogEnd, Tenure } from '../../../storage/journal.ts'
import { MemoryControl, newStatementState } from '../../../storage/memory/statements.ts'
import type { Outcome, ShardRow } from '../../../storage/control.ts'
import type { ShardState } from '../../sharding/core.ts'
import type { Shard } from '../../sharding/shard.ts'
import { TestClock } from '../../testing/harness.ts'
import type { TenureHost } from '../ownership.ts'

export const MEMORY = { what: 'the shard remembers' }
export const PREFETCHED = { what: 'was read ahead' }

/** What a test changes of the tenures of a host. */
export interface Script {
  claim: () => Promise<void>
  prefetch: () => Promise<unknown>
  prepare: () => Promise<void>
  seal: () => Promise<boolean>
  close: () => Promise<LogEnd | null>
}

export class FakeShard {
  state: ShardState = 'claiming'
  epoch = 0
  readonly gate = { head: 7 }
  readonly flusher = { stored: 5 }
  readonly number: number
  readonly context: unknown
  readonly claims: { readonly tenure: Tenure; readonly ahead: unknown }[] = []
  readonly #host: FakeHost

  constructor(number: number, host: FakeHost) {
    this.number = number
    this.#host = host
    const close = (shard: number, at: { readonly epoch: number; readonly head: number }) => {
      host.did.push(`close ${shard} ${at.epoch} ${at.head}`)
      return host.script.close()
    }
    this.context = { journal: { log: { close } } }
  }

  get real(): Shard {
    return this as unknown as Shard
  }

  prefetch(): Promise<unknown> {
    return this.#host.script.prefetch()
  }

  async claim(tenure: Tenure, ahead: unknown): Promise<void> {
    this.claims.push({ tenure, ahead })
    await this.#host.script.claim()
    this.epoch = tenure.epoch
    this.state = 'serving'
  }

  prepareHandoff(): Promise<void> {
    this.#host.did.push(`prepare ${this.number}`)
    return this.#host.script.prepare()
  }

  async seal(): Promise<boolean> {
    this.#host.did.push(`seal ${this.number}`)
    const isSealed = await this.#host.script.seal()
    if (isSealed) this.state = 'sealed'
    return isSealed
  }

  unseal(): void {
    this.#host.did.push(`unseal ${this.number}`)
    this.state = 'serving'
  }

  lastSnapshot(): unknown {
    return MEMORY
  }

  signedOver(owner: { readonly incarnation: string; readonly epoch: number }): void {
    this.#host.did.push(`signed over ${this.number} ${owner.incarnation} ${owner.epoch}`)
    this.state = 'stopped'
  }

  stepDown(why: string): void {
    if (this.state === 'stopped') return
    this.#host.did.push(`step down ${this.number}: ${why}`)
    this.state = 'stopped'
  }
}

export class FakeHost implements TenureHost {
  readonly shards = new Map<number, FakeShard>()
  readonly did: string[] = []
  pendingRequests = 0
  script: Script = {
    claim: () => Promise.resolve(),
    prefetch: () => Promise.resolve(PREFETCHED),
    prepare: () => Promise.resolve(),
    seal: () => Promise.resolve(true),
    close: () => Promise.resolve(null),
  }

  /** One that is served since before the test. */
  served(number: number, epoch: number): FakeShard {
    const shard = new FakeShard(number, this)
    Object.assign(shard, { epoch, state: 'serving' })
    this.shards.set(number, shard)
    return shard
  }

  open(number: number): Shard {
    this.did.push(`open ${number}`)
    const shard = new FakeShard(number, this)
    this.shards.set(number, shard)
    return shard.real
  }

  tenure(number: number): Shard | null {
    return this.shards.get(number)?.real ?? null
  }

  tenures(): Iterable<Shard> {
    return [...this.shards.values()].map(({ real }) => real)
  }

  forget(shard: Shard): void {
    if (this.shards.get(shard.number)?.real !== shard) return
    this.did.push(`forget ${shard.number}`)
    this.shards.delete(shard.number)
  }

  serving(shard: Shard): void {
    this.did.push(`serving ${shard.number}`)
  }

  died(incarnation: string): void {
    this.did.push(`died ${incarnation}`)
  }

  abandon(): void {
    this.did.push('abandon')
    this.shards.clear()
  }

  pending(): number {
    return this.pendingRequests
  }

  retryParked(): void {
    this.did.push('retry parked')
  }

  pushed(): void {
    this.did.push('pushed')
  }
}

export const QUIET: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}

/** Control rows of three shards, and statements on shard rows that end as a test wants. */
export function makeRows(shards = 3) {
  const clock = new TestClock()
  const state = newStatementState(shards)
  const store = new MemoryControl(state)
  const rows = {
    clock,
    state,
    /** Reads and statements of shard rows, in their order. */
    asked: [] as string[],
    /** Of the next statements on shard rows: heard as they are, unheard, or lost. */
    fates: [] as ('heard' | 'unheard' | 'lost')[],
    /** Runs before each statement on a shard's row. */
    before: null as (() => void) | null,
    isAway: false,
    control: store,
    set: (shard: number, to: Partial<ShardRow>): void =>
      void state.shards.set(shard, { ...state.shards.get(shard)!, ...to }),
    member: (member: string, incarnation: string, more: 'up' | 'dead' | 'left' | 'leaving') =>
      void state.members.set(member, {
        ...{ member, incarnation, state: more, beat: 1, address: '', version: '' },
      }),
  }
  rows.control = new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get(target, name, target) as unknown
      if (typeof value !== 'function') return value
      return async (...args: unknown[]): Promise<unknown> => {
        if (['shard', 'member', 'updateShard'].includes(String(name))) {
          rows.asked.push(`${String(name)} ${String(args[0])}`)
        }
        if (rows.isAway) throw new Error('the store is away')
        if (name !== 'updateShard') return Reflect.apply(value, target, args) as unknown
        rows.before?.()
        const fate = rows.fates.shift() ?? 'heard'
        if (fate === 'lost') return 'unknown'
        const outcome = (await Reflect.apply(value, target, args)) as Outcome
        return fate === 'heard' ? outcome : 'unknown'
      }
    },
  })
  return rows
}
