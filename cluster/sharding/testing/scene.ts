// One shard with one owner after another on a journal in memory, for tests of what a shard keeps by
// itself. Its edge is the simplest that is right: it resends on `moved` until there is an answer.

import { LIMITS } from '../../../config/limits.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { errorItem } from '../../../protocol/errors.ts'
import { uuidMaker } from '../../../protocol/ids.ts'
import type { Envelope, WireReply } from '../../../protocol/message.ts'
import type { DerivedStore, Journal, LogStore, Tenure } from '../../../storage/journal.ts'
import { memoryJournal } from '../../../storage/memory/journal.ts'
import type { MemoryHooks, MemoryJournal } from '../../../storage/memory/journal.ts'
import { TestClock, seeded, settle } from '../../testing/harness.ts'
import { ledger } from '../../testing/ledger.ts'
import { Committer } from '../commit/committer.ts'
import type { HookTable, OnCommitted, ShardContext } from '../core.ts'
import { Shard } from '../shard.ts'
import { ActivationMemory } from '../turn/activation-memory.ts'

export interface SceneOptions {
  readonly hooks?: MemoryHooks
  readonly seed?: number
  readonly shards?: number
  /** Answers the ask `effects` of a turn: what a ledger's `append` with `wait` waits for. */
  readonly rules?: (hook: string) => Promise<readonly unknown[]> | readonly unknown[]
  /** How long a read of derived rows and of the log takes, milliseconds; 0: answered at once. */
  readonly readMs?: number
  readonly reclaim?: (shard: number) => Promise<Tenure | null>
  readonly behaviours?: readonly Behaviour[]
  readonly onCommitted?: OnCommitted
}

export interface Asking extends Partial<Envelope> {
  readonly say?: readonly (readonly [string, object?])[]
  readonly key?: string
}

export class Scene {
  readonly clock = new TestClock()
  readonly journal: MemoryJournal
  readonly logged: string[] = []
  readonly steppedDown: string[] = []
  /** Reads under way, and the most that were. */
  readonly reads = { now: 0, max: 0, sum: 0 }
  readMs: number
  mayServe = true
  /** Reads fail. */
  isAway = false
  /** So many of the runtime's own envelopes (claims of keys, relays) are refused. */
  refusals = 0
  mayRead: (() => boolean | Promise<boolean>) | null = null
  shard: Shard
  readonly newUuid: (tail?: number) => string
  readonly #options: SceneOptions

  constructor(options: SceneOptions = {}) {
    this.#options = options
    this.readMs = options.readMs ?? 0
    const { hooks } = options
    this.journal = memoryJournal({
      shards: options.shards ?? 1,
      generation: 'test',
      ...(hooks ? { hooks } : null),
    })
    const chance = seeded(options.seed ?? 1)
    const make = uuidMaker((bytes) => {
      for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(chance() * 256)
    })
    this.newUuid = (tail) => make(this.clock.nowMs(), tail)
    this.shard = this.open()
  }

  /** Another owner of the shard, not yet claimed; envelopes go to it from now on. */
  open(): Shard {
    this.shard = new Shard(0, this.#context())
    return this.shard
  }

  /** Ends what is served now as a kill would, and has another owner serve what is left. */
  async restart(): Promise<Shard> {
    this.shard.flusher.stop()
    this.shard.outbox.stop()
    const next = this.open()
    await this.run(next.claim())
    return next
  }

  #context(): ShardContext {
    const { clock } = this
    const note = (fields: object, text: string): void =>
      void this.logged.push(`${text} ${Object.values(fields).map(String).join(' ')}`)
    const log = { debug: () => undefined, info: () => undefined, warn: note, error: note }
    const journal: Journal = {
      ...this.journal,
      derived: this.#slow(this.journal.derived, READS),
      log: this.#slow(this.journal.log, ['read']),
    }
    const { rules, reclaim, behaviours, onCommitted } = this.#options
    const hooks: HookTable = {
      has: () => false,
      effects: (hook) => rules?.(hook) ?? [],
    }
    return {
      behaviours: new Map((behaviours ?? [ledger as Behaviour]).map((b) => [b.type, b])),
      journal,
      shards: this.journal.identity.shards,
      edgeMarkMs: LIMITS.storage.edgeMarkMs,
      activationMemory: new ActivationMemory(0),
      clock,
      newUuid: this.newUuid,
      committer: new Committer({
        log: journal.log,
        clock,
        throttleMs: () => 0,
        onError: (error) => void this.logged.push(`an append failed ${String(error)}`),
      }),
      hooks,
      query: () => null,
      log,
      send: (envelope, respond) => {
        const away = errorItem('UNAVAILABLE', 'away')
        if (this.refusals-- > 0) queueMicrotask(() => respond({ outcome: 'refused', error: away }))
        else void this.#send(envelope).then(respond)
      },
      mayRead: (number, epoch) =>
        this.mayRead ? this.mayRead() : this.journal.log.epochNow(number) === epoch,
      sendsOnByKey: false,
      configuration: () => ({ get: () => null, find: () => null, all: () => [], size: () => 0 }),
      mayServe: () => this.mayServe,
      servedMs: () => this.clock.monotonicMs(),
      reclaim: reclaim ?? (() => Promise.resolve(null)),
      onCommitted: onCommitted ?? (() => undefined),
      onStepDown: (_, why) => void this.steppedDown.push(why),
    }
  }

  #slow<T extends DerivedStore | LogStore>(store: T, names: readonly string[]): T {
    const { clock, reads } = this
    return new Proxy(store, {
      get: (target, name) => {
        const value = Reflect.get(target, name, target) as unknown
        if (typeof value !== 'function') return value
        const call = (value as (...args: unknown[]) => unknown).bind(target)
        if (!names.includes(String(name))) return call
        return (...args: unknown[]): unknown => {
          const found = call(...args)
          reads.sum++
          if (this.isAway) return Promise.reject(new Error('the store is away'))
          if (this.readMs === 0) return found
          reads.max = Math.max(reads.max, ++reads.now)
          return new Promise((resolve) => {
            clock.after(this.readMs, () => {
              reads.now--
              resolve(found)
            })
          })
        }
      },
    })
  }

  envelope(id: string, asking: Asking = {}): Envelope {
    const { say = [['read']], key, ...rest } = asking
    const messages = say.map(([type, body]) => ({ type, body }))
    return {
      messageId: {
        id: key ?? this.newUuid().replaceAll('-', ''),
        kind: key === undefined ? 'edge' : 'caller',
      },
      to: { type: 'ledger', id },
      virtual: false,
      copy: 0,
      messages,
      bodyHash: key === undefined ? '' : JSON.stringify(messages),
      budgetMs: 30_000,
      by: 'tester',
      preview: false,
      crashes: 0,
      trace: 'test',
      ...rest,
    }
  }

  /** One copy to the present owner. */
  tell(envelope: Envelope): Promise<WireReply> {
    return new Promise((resolve) => this.shard.receive(envelope, resolve))
  }

  async #send(envelope: Envelope): Promise<WireReply> {
    for (let copy = envelope.copy; ; copy++) {
      const reply = await this.tell({ ...envelope, copy })
      if (reply.outcome !== 'moved') return reply
      await new Promise<void>((resolve) => void this.clock.after(50, resolve))
    }
  }

  /** Asks as an edge does: again on `moved`, until there is an answer. */
  ask(id: string, asking: Asking = {}): Promise<WireReply> {
    return this.#send(this.envelope(id, asking))
  }

  /** A new ledger with one token. */
  async made(token = 'first'): Promise<string> {
    const id = this.newUuid(0)
    const reply = await this.run(this.ask(id, { say: [['open', { token }]] }))
    if (reply.outcome !== 'answered') throw new Error(JSON.stringify(reply))
    return id
  }

  async tokens(id: string): Promise<unknown> {
    return data(await this.run(this.ask(id)))
  }

  /** Moves the clock until a promise has ended. */
  async run<T>(promise: Promise<T>, stepMs = 10, maxMs = 60_000): Promise<T> {
    let isOver = false
    const end = (): void => void (isOver = true)
    promise.then(end, end)
    const until = this.clock.monotonicMs() + maxMs
    for (;;) {
      await settle()
      if (isOver) return promise
      if (this.clock.monotonicMs() > until) throw new Error(`not within ${maxMs} ms`)
      await this.clock.advance(stepMs)
    }
  }
}

const READS = ['alias', 'snapshot', 'entries', 'mark', 'shard', 'consumer', 'parked']

/** Data of an answer's last message; throws when it is none. */
export function data(reply: WireReply): unknown {
  if (reply.outcome !== 'answered') throw new Error(JSON.stringify(reply))
  const result = reply.results.at(-1)!
  if (!result.success) throw new Error(JSON.stringify(result))
  return result.data
}

/** Code of an answer's last message; its outcome, when it is none. */
export function code(reply: WireReply): string {
  if (reply.outcome === 'refused' || reply.outcome === 'unknown') return reply.error.code
  if (reply.outcome !== 'answered') return reply.outcome
  const result = reply.results.at(-1)!
  return result.success ? 'success' : result.errors[0]!.code
}

/** Something that happens when it is told to. */
export function latch(): { readonly open: () => void; readonly opened: Promise<void> } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { open: () => open(), opened }
}
