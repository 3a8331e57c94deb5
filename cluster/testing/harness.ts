// A member on the journal in memory, for tests: with a clock that tests move, seeded chance, and a
// way to kill it and start another on what is left.

import { memoryWire, nastyWire } from '../memory/wire.ts'
import type { Nastiness } from '../memory/wire.ts'
import type { Clock } from '../clock.ts'
import { Member } from '../member.ts'
import type { HookTable, OnCommitted } from '../sharding/core.ts'
import type { Behaviour } from '../../protocol/behaviour.ts'
import type { Reply } from '../../protocol/message.ts'
import { memoryJournal } from '../../storage/memory/journal.ts'
import type { MemoryHooks, MemoryJournal, MemoryState } from '../../storage/memory/journal.ts'
import type { DerivedStore } from '../../storage/journal.ts'
import { ledger } from './ledger.ts'

/** mulberry32: a small seeded generator, 0..1. */
export function seeded(seed: number): () => number {
  let a = seed >>> 0
  return () => {
    a = (a + 0x6d2b79f5) | 0
    let t = Math.imul(a ^ (a >>> 15), 1 | a)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** A clock that moves only when told; what is due runs in order of its time. */
export class TestClock implements Clock {
  #now = Date.UTC(2026, 0, 1)
  #mono = 0
  #due: { at: number; run: () => void }[] = []

  nowMs(): number {
    return this.#now
  }

  monotonicMs(): number {
    return this.#mono
  }

  /** The wall clock moves against the monotonic one: it was set, or the machine was suspended. */
  stepWall(ms: number): void {
    this.#now += ms
  }

  after(ms: number, run: () => void): () => void {
    const item = { at: this.#mono + ms, run }
    this.#due.push(item)
    return () => void (this.#due = this.#due.filter((other) => other !== item))
  }

  /** How many wait for their time. */
  get timers(): number {
    return this.#due.length
  }

  defer(run: () => void): void {
    setImmediate(run)
  }

  async advance(ms: number): Promise<void> {
    const until = this.#mono + ms
    for (;;) {
      await settle()
      const next = this.#due.filter(({ at }) => at <= until).toSorted((a, b) => a.at - b.at)[0]
      if (!next) break
      this.#due = this.#due.filter((item) => item !== next)
      this.#now += Math.max(0, next.at - this.#mono)
      this.#mono = Math.max(this.#mono, next.at)
      next.run()
    }
    this.#now += until - this.#mono
    this.#mono = until
    await settle()
  }
}

/** Lets everything run that is ready. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 8; i++) await new Promise<void>((resolve) => setImmediate(resolve))
}

export interface World {
  readonly member: Member
  readonly journal: MemoryJournal
  readonly clock: TestClock
  readonly lost: string[]
  readonly errors: string[]
  ask(id: string, messages: readonly [string, object?][], options?: AskOptions): Promise<Reply>
  /** Kills this member and starts another on what the journal holds. */
  restart(): Promise<World>
}

export interface AskOptions {
  readonly key?: string
  readonly hash?: string
  readonly preview?: boolean
  readonly by?: string
  readonly budgetMs?: number
}

export interface StartOptions {
  readonly state?: MemoryState
  readonly hooks?: MemoryHooks
  readonly rules?: HookTable
  readonly clock?: TestClock
  readonly seed?: number
  readonly shards?: number
  readonly nasty?: Omit<Nastiness, 'chance' | 'later'>
  readonly behaviours?: readonly Behaviour[]
  /** Of a store that has no TTL. */
  readonly expire?: NonNullable<DerivedStore['expire']>
  readonly onCommitted?: OnCommitted
}

const NO_RULES: HookTable = { has: () => false, effects: () => [] }

export async function startMember(options: StartOptions = {}): Promise<World> {
  const clock = options.clock ?? new TestClock()
  const chance = seeded(options.seed ?? 1)
  const journal = memoryJournal({
    shards: options.shards ?? 4,
    generation: 'test',
    ...(options.hooks ? { hooks: options.hooks } : null),
    ...(options.state ? { state: options.state } : null),
  })
  if (options.expire) journal.derived.expire = options.expire
  const lost: string[] = []
  const errors: string[] = []
  const { nasty } = options
  const later = (run: () => void): void => void clock.after(Math.floor(chance() * 400), run)
  const wire = memoryWire((run) => clock.defer(run))
  const member = new Member({
    memberId: 'a',
    address: 'http://a',
    version: '1',
    journal,
    cluster: null,
    behaviours: options.behaviours ?? [ledger],
    world: {
      clock,
      random: (bytes) => {
        for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(chance() * 256)
      },
    },
    wire: nasty ? nastyWire(wire, { ...nasty, chance, later }) : wire,
    wireDeliversOnce: nasty === undefined,
    log: {
      debug: () => undefined,
      info: () => undefined,
      warn: () => undefined,
      error: (fields, text) => void errors.push(`${text} ${String(Object.values(fields)[0])}`),
    },
    hooks: options.rules ?? NO_RULES,
    query: () => null,
    throttleMs: () => 0,
    onCommitted: options.onCommitted ?? (() => undefined),
    doneWith: () => Infinity,
    onLost: (shard, why) => void lost.push(`${shard}: ${why}`),
  })
  await member.start()
  return {
    member,
    journal,
    clock,
    lost,
    errors,
    ask: (id, messages, ask = {}) =>
      member.ask({
        type: 'ledger',
        id,
        messages: messages.map(([type, body]) => ({ type, body })),
        idempotencyKey: ask.key ?? null,
        bodyHash: ask.hash ?? (ask.key === undefined ? '' : JSON.stringify(messages)),
        by: ask.by ?? 'tester',
        preview: ask.preview ?? false,
        budgetMs: ask.budgetMs ?? 5_000,
        trace: 'test',
      }),
    // A killed process writes nothing any more: the state is what the journal had.
    restart: () =>
      startMember({ ...options, clock, state: journal.state, seed: (options.seed ?? 1) + 7_919 }),
  }
}
