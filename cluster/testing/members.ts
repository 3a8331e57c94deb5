// Several members in one process on stores in memory, for tests of what members do to each other:
// one clock that tests move, a wire that can be cut, members that can be stopped, killed and
// paused. The seeded simulation is in test/simulation.

import { Member } from '../member.ts'
import { memoryWire } from '../memory/wire.ts'
import { SegmentedLog } from '../log/segmented-log.ts'
import type { Wire } from '../wire.ts'
import { LIMITS } from '../../config/limits.ts'
import type { Behaviour } from '../../protocol/behaviour.ts'
import type { Log } from '../../protocol/log.ts'
import type { Reply } from '../../protocol/message.ts'
import type { ControlStore, Outcome } from '../../storage/control.ts'
import type { Journal } from '../../storage/journal.ts'
import { MemoryDerived } from '../../storage/memory/derived.ts'
import { MemoryRegisters } from '../../storage/memory/registers.ts'
import {
  MemoryControl,
  MemorySegments,
  newStatementState,
} from '../../storage/memory/statements.ts'
import type { StatementState } from '../../storage/memory/statements.ts'
import type { AskOptions } from './harness.ts'
import { TestClock, seeded } from './harness.ts'
import { ledger } from './ledger.ts'

/** One member and what a test can do to it. */
export interface OneMember {
  readonly name: string
  readonly member: Member
  readonly logged: string[]
  /** Shards that it has told to have let go of, in their order. */
  readonly released: number[]
  ask(id: string, messages: readonly [string, object?][], options?: AskOptions): Promise<Reply>
  /** Its statements and reads fail, and its wire is cut, from now on: as good as killed. */
  kill(): void
  /** Its statements and reads get no answer from now on; its wire and its callers go on. */
  cutJournal(): void
  /** Statements on control rows and segments are answered by this while it is set. */
  onStatement: ((statement: string) => Outcome | null) | null
}

export interface Members {
  readonly clock: TestClock
  readonly state: ReturnType<typeof newStatementState>
  start(name: string, onStatement?: OneMember['onStatement']): Promise<OneMember>
  /** Moves the clock until a condition holds; throws after so many milliseconds. */
  until(what: string, holds: () => boolean, ms?: number): Promise<void>
}

export interface MembersOptions {
  readonly shards?: number
  readonly seed?: number
  readonly behaviours?: readonly Behaviour[]
}

const STEP_MS = 50
const START_MS_MAX = 2 * LIMITS.cluster.engineWaitMs

export function makeMembers(options: MembersOptions = {}): Members {
  const shards = options.shards ?? 4
  const clock = new TestClock()
  const chance = seeded(options.seed ?? 1)
  const state = newStatementState(shards)
  const shared: Shared = {
    shards,
    behaviours: options.behaviours ?? [ledger],
    clock,
    state,
    registers: new MemoryRegisters(),
    wire: memoryWire((run) => clock.defer(run)),
    random: (bytes) => {
      for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(chance() * 256)
    },
  }
  const until: Members['until'] = async (what, holds, ms = 20_000) => {
    const end = clock.monotonicMs() + ms
    while (!holds()) {
      if (clock.monotonicMs() >= end) throw new Error(`not within ${ms} ms: ${what}`)
      await clock.advance(STEP_MS)
    }
  }
  return {
    clock,
    state,
    until,
    async start(name, onStatement = null) {
      const one = makeOne(shared, name)
      one.onStatement = onStatement
      let started = false
      let failed: unknown = null
      one.member.start().then(
        () => (started = true),
        (error: unknown) => (failed = error),
      )
      await until(`${name} starts`, () => started || failed !== null, START_MS_MAX)
      if (failed !== null) throw failed as Error
      return one
    },
  }
}

/** What all members of a test have together. */
interface Shared {
  readonly shards: number
  readonly behaviours: readonly Behaviour[]
  readonly clock: TestClock
  readonly state: StatementState
  readonly registers: MemoryRegisters
  readonly wire: Wire
  readonly random: (bytes: Uint8Array) => void
}

function makeOne(shared: Shared, name: string): OneMember {
  const { clock, wire, random } = shared
  const fate: Fate = { killed: false, cut: false }
  const logged: string[] = []
  const released: number[] = []
  const one: { onStatement: OneMember['onStatement'] } = { onStatement: null }
  const say = (fields: object, text: string): void =>
    void logged.push(`${text} ${JSON.stringify(fields)}`)
  const log = { debug: () => undefined, info: say, warn: say, error: say }
  const rule = (statement: string): Outcome | null => one.onStatement?.(statement) ?? null
  const control = breakable(new MemoryControl(shared.state), fate, rule)
  const member = new Member({
    memberId: name,
    address: `http://${name}`,
    version: '1',
    journal: journalOf(shared, { fate, rule, control, log }),
    cluster: { control },
    behaviours: shared.behaviours,
    world: { clock, random },
    wire: cuttable(wire, fate),
    wireDeliversOnce: true,
    log,
    hooks: { has: () => false, effects: () => [] },
    query: () => null,
    throttleMs: () => 0,
    onCommitted: () => undefined,
    doneWith: () => Infinity,
    onLost: () => undefined,
    onReleased: (shard) => void released.push(shard),
  })
  const ask: OneMember['ask'] = (id, messages, given = {}) =>
    member.ask({
      type: 'ledger',
      id,
      messages: messages.map(([type, body]) => ({ type, body })),
      idempotencyKey: given.key ?? null,
      bodyHash: given.hash ?? (given.key === undefined ? '' : JSON.stringify(messages)),
      by: given.by ?? 'tester',
      preview: given.preview ?? false,
      budgetMs: given.budgetMs ?? 15_000,
      trace: 'test',
    })
  return Object.assign(one, {
    name,
    member,
    logged,
    released,
    kill: () => void (fate.killed = true),
    cutJournal: () => void (fate.cut = true),
    ask,
  })
}

function journalOf(
  { shards, state, registers, clock }: Shared,
  of: {
    readonly fate: Fate
    readonly rule: (statement: string) => Outcome | null
    readonly control: ControlStore
    readonly log: Log
  },
): Journal {
  const derived = new MemoryDerived({ registers })
  const log = new SegmentedLog({
    segments: breakable(new MemorySegments(state), of.fate, of.rule),
    control: of.control,
    flushOf: async (shard) => derived.consumer(shard, 'flush') ?? 0,
    clock,
    log: of.log,
    onBug: (shard, text) => of.log.error({ shard }, `BUG ${text}`),
  })
  const identity = { format: 1, shards, generation: 'test', secret: 's' }
  return { identity, log, derived, close: () => Promise.resolve() }
}

interface Fate {
  killed: boolean
  /** From the journal alone. */
  cut: boolean
}

/** A killed process sends nothing any more, and hears nothing. */
function breakable<T extends ControlStore | MemorySegments>(
  store: T,
  fate: Readonly<Fate>,
  rule: (statement: string) => Outcome | null,
): T {
  return new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        if (fate.killed || fate.cut) return new Promise(() => undefined)
        const ruled = rule(`${String(name)} ${JSON.stringify(args)}`)
        if (ruled !== null) return Promise.resolve(ruled)
        const result = (value as (...a: unknown[]) => Promise<unknown>).apply(target, args)
        return result.then((answer) =>
          fate.killed || fate.cut ? new Promise(() => undefined) : answer,
        )
      }
    },
  })
}

function cuttable(wire: Wire, fate: { readonly killed: boolean }): Wire {
  return {
    get isUp() {
      return !fate.killed && wire.isUp
    },
    serve: (incarnation, inbox) =>
      wire.serve(incarnation, {
        receive: (parcel, respond) => {
          if (!fate.killed) inbox.receive(parcel, (reply) => void (fate.killed || respond(reply)))
        },
        hear: (notice, from) => void (fate.killed || inbox.hear(notice, from)),
      }),
    send: (to, parcel, respond) =>
      void (fate.killed || wire.send(to, parcel, (reply) => void (fate.killed || respond(reply)))),
    tell: (to, notice, from) => void (fate.killed || wire.tell(to, notice, from)),
    close: (incarnation) => void (fate.killed || wire.close(incarnation)),
  }
}
