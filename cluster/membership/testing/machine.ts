// A machine for tests of membership: a process with clocks of its own that may run fast or slow,
// stop (SIGSTOP: time goes on) or be suspended (its monotonic clock stands still), and a connection
// to the control rows that may be cut. Source: PROTOCOL 3.3, 3.7 (I5).

import type { Log } from '../../../protocol/log.ts'
import type { ControlStore, Outcome } from '../../../storage/control.ts'
import { MemoryControl, newStatementState } from '../../../storage/memory/statements.ts'
import type { StatementState } from '../../../storage/memory/statements.ts'
import type { Clock } from '../../clock.ts'
import { TestClock, seeded } from '../../testing/harness.ts'
import type { FormerIncarnations } from '../former-incarnations.ts'
import { Membership } from '../membership.ts'

export type Fate = 'heard' | 'unheard' | 'lost' | 'late'
export type Statement = 'beat' | 'dead' | 'state' | 'join' | 'wire'

export interface MachineOptions {
  readonly member: string
  /** True time, the same for all machines of a test. */
  readonly time: TestClock
  readonly state: StatementState
  readonly seed?: number
  /** How fast its monotonic clock goes. */
  readonly rate?: number
  readonly former?: FormerIncarnations
}

const QUIET: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
}

export class Machine {
  readonly membership: Membership
  /** Why each of its incarnations was over. */
  readonly lost: string[] = []
  /** Names of those that it declared dead. */
  readonly declared: string[] = []
  /** Reads and statements, as they were sent. */
  readonly calls: string[] = []
  /** Statements that may still land. */
  readonly late: (() => Promise<Outcome>)[] = []
  /** Reads fail and statements are lost while it is true. */
  isAway = false
  isWireUp = true
  fate: ((statement: Statement) => Fate) | null = null
  /** Milliseconds of true time that a statement or read takes, each way. */
  delay: ((call: string) => number) | null = null
  wallOffsetMs = 0
  readonly clock: Clock
  readonly #options: MachineOptions
  #held: (() => void)[] | null = null
  #suspendedAt: number | null = null
  #suspendedMs = 0

  constructor(options: MachineOptions) {
    this.#options = options
    const { member, time, rate = 1, seed = 1 } = options
    this.clock = {
      nowMs: () => time.nowMs() + this.wallOffsetMs,
      monotonicMs: () => rate * ((this.#suspendedAt ?? time.monotonicMs()) - this.#suspendedMs),
      after: (ms, run) => time.after(ms / rate, () => this.#whenAwake(run)),
      defer: (run) => time.defer(() => this.#whenAwake(run)),
    }
    const chance = seeded(seed)
    this.membership = new Membership({
      control: this.#control(),
      member,
      address: `http://${member}`,
      version: '1',
      world: {
        clock: this.clock,
        random: (bytes) => {
          for (let i = 0; i < bytes.length; i++) bytes[i] = Math.floor(chance() * 256)
        },
      },
      log: QUIET,
      isWireUp: () => this.isWireUp,
      ...(options.former && { former: options.former }),
      onLost: (why) => void this.lost.push(why),
      onDeclaredDead: (row) => void this.declared.push(row.member),
    })
  }

  /** Joins; time goes on until it has. */
  async join(): Promise<string> {
    const joining = this.membership.join()
    joining.catch(() => undefined)
    for (let i = 0; this.membership.incarnation === null && i < 1_000; i++) {
      await this.#options.time.advance(10)
    }
    return joining
  }

  /** SIGSTOP. */
  stop(): void {
    this.#held ??= []
  }

  /** As a virtual machine is suspended. */
  suspend(): void {
    this.stop()
    this.#suspendedAt ??= this.#options.time.monotonicMs()
  }

  resume(): void {
    if (this.#suspendedAt !== null) {
      this.#suspendedMs += this.#options.time.monotonicMs() - this.#suspendedAt
      this.#suspendedAt = null
    }
    const held = this.#held ?? []
    this.#held = null
    for (const run of held) run()
  }

  #whenAwake(run: () => void): void {
    if (this.#held === null) run()
    else this.#held.push(run)
  }

  async #travel(ms: number): Promise<void> {
    const { time } = this.#options
    if (ms > 0) await new Promise<void>((resolve) => void time.after(ms, resolve))
  }

  /** A process that has stopped hears of nothing. */
  async #hear(ms: number): Promise<void> {
    await this.#travel(ms)
    if (this.#held !== null) await new Promise<void>((resolve) => this.#whenAwake(resolve))
  }

  #control(): ControlStore {
    const store = new MemoryControl(this.#options.state)
    const read = async <T>(name: string, ask: () => Promise<T>): Promise<T> => {
      this.calls.push(name)
      const ms = this.delay?.(name) ?? 0
      await this.#travel(ms)
      const found = this.isAway ? null : { value: await ask() }
      await this.#hear(ms)
      if (found === null) throw new Error('the engine is away')
      return found.value
    }
    const say = async (what: Statement, send: () => Promise<Outcome>): Promise<Outcome> => {
      this.calls.push(what)
      const ms = this.delay?.(what) ?? 0
      await this.#travel(ms)
      const fate = this.isAway ? 'lost' : (this.fate?.(what) ?? 'heard')
      if (fate === 'late') this.late.push(send)
      const outcome = fate === 'heard' || fate === 'unheard' ? await send() : 'unknown'
      await this.#hear(ms)
      return fate === 'heard' ? outcome : 'unknown'
    }
    return {
      members: () => read('members', () => store.members()),
      shards: () => read('shards', () => store.shards()),
      member: (member) => read('member', () => store.member(member)),
      shard: (shard) => read('shard', () => store.shard(shard)),
      insertMember: (row) => say('join', () => store.insertMember(row)),
      updateMember: (member, to, where) => {
        const what = to.incarnation ? 'join' : to.state === 'dead' ? 'dead' : undefined
        const send = () => store.updateMember(member, to, where)
        return say(what ?? (to.wire ? 'wire' : to.state ? 'state' : 'beat'), send)
      },
      updateShard: (shard, to, where) => say('state', () => store.updateShard(shard, to, where)),
      hintSegment: (shard, segment, where) =>
        say('state', () => store.hintSegment(shard, segment, where)),
    }
  }
}

export interface Cluster {
  readonly time: TestClock
  readonly state: StatementState
  machine(member: string, rate?: number, former?: FormerIncarnations): Machine
  /** A machine that has joined. */
  start(member: string): Promise<Machine>
}

/** Machines of one store and one time. */
export function cluster(): Cluster {
  const time = new TestClock()
  const state = newStatementState(2)
  let seed = 0
  const machine = (member: string, rate = 1, former?: FormerIncarnations): Machine =>
    new Machine({ member, time, state, rate, seed: ++seed, ...(former && { former }) })
  return {
    time,
    state,
    machine,
    async start(member) {
      const one = machine(member)
      await one.join()
      return one
    },
  }
}

/** The next statement of this kind has this fate. */
export function once(machine: Machine, statement: Statement, fate: Fate): void {
  machine.fate = (sent) => {
    if (sent !== statement) return 'heard'
    machine.fate = null
    return fate
  }
}
