// The simulated cluster: members with their stores and wires on one scheduler, what they log, and
// the verbs by which faults and schedules treat them. Source: PROTOCOL 4.1.

import { BOUNDS } from './bounds.ts' // the first: see there
import type { Clock } from '../../cluster/clock.ts'
import type { FormerIncarnations } from '../../cluster/membership/former-incarnations.ts'
import { SegmentedLog } from '../../cluster/log/segmented-log.ts'
import { Member } from '../../cluster/member.ts'
import type { ActorRequest } from '../../cluster/actor-system.ts'
import { FULL_ACCESS } from '../../protocol/graph/planning.ts'
import { planNavigations } from '../../protocol/graph/navigation.ts'
import { graphSchema } from '../../protocol/graph/schema.ts'
import type { Position } from '../../protocol/ids.ts'
import { LiveSchema } from '../../node/graph/live-schema.ts'
import { startClusterIndex } from '../../node/indexing/cluster/cluster-index.ts'
import type { ClusterIndex } from '../../node/indexing/cluster/cluster-index.ts'
import { AssertionError, RequestError } from '../../protocol/errors.ts'
import type { Log } from '../../protocol/log.ts'
import type { Reply } from '../../protocol/message.ts'
import type { Journal } from '../../storage/journal.ts'
import { derivedOf } from './engines/derived.ts'
import { Engine } from './engines/engine.ts'
import { flag, ledger } from './clients/ledger.ts'
import type { Owner } from './scheduler/event-queue.ts'
import type { ShownLedger } from './clients/operation-history.ts'
import { KIND } from './nastiness.ts'
import type { Nastiness } from './nastiness.ts'
import { Process, Scheduler } from './scheduler/scheduler.ts'
import { SearchCluster, SearchLink } from './engines/search.ts'
import { StoreControl, StoreSegments } from './engines/store.ts'
import type { Trace } from './scheduler/trace.ts'
import { Redis, redisTwin } from './engines/wire.ts'
import { Watching } from './watching.ts'

const CALLER = { group: 'client/test', name: 's' }

export interface WorldOptions {
  readonly seed: number
  readonly trace: Trace
  readonly shards?: number
  readonly nastiness?: Nastiness
  /** Members keep a graph index. */
  readonly hasGraph?: boolean
  /** Members watch the feed of one another. */
  readonly isWatched?: boolean
}

/** One process of a member: a name that is started again is another of these. */
export interface SimulatedMember {
  readonly name: string
  readonly process: Process
  readonly member: Member
  readonly index: ClusterIndex | null
  /** Takes requests: it has joined, and is not stopped. */
  isReady: boolean
  /** Hands its shards over and will end. */
  isLeaving: boolean
}

export class World {
  readonly scheduler: Scheduler
  readonly engine: Engine
  readonly redis: Redis
  /** Null: members keep no graph index. */
  readonly search: SearchCluster | null
  readonly shards: number
  /** The newest process of each name. */
  readonly members = new Map<string, SimulatedMember>()
  /** Mistakes that the members have noticed themselves (PROTOCOL 3.2.4). */
  readonly alarms: string[] = []
  /** What each process has heard of the feed; empty: none watches it. */
  readonly watchings: Watching[] = []
  /** Members know what has become of earlier processes; so it is in every second seed. */
  isOneMachine: boolean
  /** Processes by the incarnations that they have begun. */
  readonly #incarnations = new Map<string, Process>()
  readonly trace: Trace
  /** Days pass, and nobody does anything. */
  isResting = false
  readonly onceAwake: (() => void)[] = []
  readonly #isWatched: boolean
  /** Instead of rules that take their time. */
  onRules: (() => Promise<readonly unknown[]>) | null = null

  constructor(options: WorldOptions) {
    const { seed, trace, shards = 4, nastiness = KIND, hasGraph = false } = options
    this.trace = trace
    this.shards = shards
    this.#isWatched = options.isWatched ?? false
    this.isOneMachine = seed % 2 === 0
    this.scheduler = new Scheduler(seed, trace)
    this.scheduler.onThrow = (owner, error) => this.threw(owner, error)
    this.engine = new Engine(this.scheduler, shards, nastiness)
    this.redis = new Redis(this.scheduler, nastiness)
    this.search = hasGraph ? new SearchCluster(this.scheduler, nastiness) : null
  }

  /** Unless somebody else has: a second process would go on unseen, through each rest. */
  startIfDown(name: string): void {
    if (this.members.get(name)?.process.state === 'dead') this.start(name)
  }

  /** Starts a process of this name; it takes requests once it has joined. */
  start(name: string): SimulatedMember {
    const process = new Process(name, this.scheduler, this.#wallJumpOf(name))
    const { member, index } = this.#makeMember(name, process)
    const simulated: SimulatedMember = {
      name,
      process,
      member,
      index,
      isReady: false,
      isLeaving: false,
    }
    this.members.set(name, simulated)
    this.say(`starts ${name}`)
    this.scheduler.at(
      0,
      `starts ${name}`,
      () => {
        member.start().then(
          () => (simulated.isReady = true),
          (error: unknown) => this.#startLater(simulated, error),
        )
      },
      process,
    )
    return simulated
  }

  /** A machine's clock goes on being wrong when a process is started again on it. */
  #wallJumpOf(name: string): number {
    return this.members.get(name)?.process.wallJumpMs ?? 0
  }

  /** A process that can't start ends; whoever looks after it starts it again. */
  #startLater({ name, process }: SimulatedMember, error: unknown): void {
    this.say(`${name} does not start: ${textOf(error)}`)
    process.kill()
    const startAgain = (): void => {
      if (this.members.get(name)?.process !== process) return
      if (this.isResting) this.onceAwake.push(startAgain)
      else this.start(name)
    }
    this.scheduler.at(this.scheduler.between(500, 2_000), `starts ${name} again`, startAgain)
  }

  /** A planned stop: shards are handed over, then the process ends. */
  leave(simulated: SimulatedMember): void {
    this.say(`leaves ${simulated.name}`)
    const { member, process } = simulated
    // It takes no connection any more; what it has already it answers.
    simulated.isReady = false
    simulated.isLeaving = true
    member.stop(BOUNDS.node.shutdownMs).then(
      () => {
        this.say(`has left ${simulated.name}`)
        process.kill()
      },
      (error: unknown) => this.threw(process, error),
    )
  }

  kill(simulated: SimulatedMember): void {
    this.say(`kills ${simulated.name}`)
    simulated.isReady = false
    simulated.process.kill()
  }

  /** Members whose newest process is not dead. */
  get living(): SimulatedMember[] {
    return [...this.members.values()].filter(({ process }) => process.state !== 'dead')
  }

  /** An exception that nobody caught ends a process; here it is a finding, and ends it too. */
  threw(owner: Owner | null, error: unknown): void {
    const who = owner?.name ?? 'the simulation'
    this.alarms.push(`${who} threw: ${(error instanceof Error && error.stack) || textOf(error)}`)
    if (owner instanceof Process) owner.kill()
  }

  say(text: string): void {
    this.trace.add(`${this.scheduler.nowMs.toFixed(3)} * ${text}`)
  }

  /**
   * A request as a client makes it: it travels to the member, which may be dead or never answer
   * (null), or refuse the connection.
   */
  request(to: SimulatedMember, request: ActorRequest): Promise<Reply | null> {
    return new Promise((resolve) => {
      const { scheduler } = this
      const { process } = to
      const answer = (reply: Reply | null): void => {
        scheduler.at(scheduler.between(0.2, 2), 'client hears', () => resolve(reply))
      }
      scheduler.at(scheduler.between(0.2, 2), `request ${request.trace}`, () => {
        if (process.state === 'dead' || !to.isReady) return answer(NOT_THERE)
        process.onDeath(() => answer(null))
        const cameMs = scheduler.nowMs
        const ask = (): void => {
          // Its connection was closed long ago.
          if (scheduler.nowMs - cameMs > SOCKET_MS) answer(null)
          else this.#ask(to, request, answer)
        }
        // It lies in the socket of a process that is paused.
        scheduler.at(0, `asks ${request.trace}`, ask, process)
      })
    })
  }

  #ask(to: SimulatedMember, request: ActorRequest, answer: (reply: Reply) => void): void {
    to.member.ask(request).then(answer, (error: unknown) => {
      this.alarms.push(`${to.name} threw at a request: ${String(error)}`)
    })
  }

  /** What the machine knows of the processes of a name. */
  #formerOf(process: Process): { former?: FormerIncarnations } {
    if (!this.isOneMachine) return {}
    const incarnations = this.#incarnations
    return {
      former: {
        begins: (incarnation) => void incarnations.set(incarnation, process),
        isOver: (incarnation) => incarnations.get(incarnation)?.state === 'dead',
      },
    }
  }

  #makeMember(name: string, process: Process): Pick<SimulatedMember, 'member' | 'index'> {
    const { clock } = process
    const control = new StoreControl(this.engine, process)
    const log = this.#logOf(name)
    const journal = this.#journalOf(name, process, log)
    const made: { index: ClusterIndex | null } = { index: null }
    const watching = this.#isWatched ? new Watching({ name, journal, clock, log }) : null
    const member = new Member({
      memberId: name,
      journal,
      address: `http://${name}`,
      version: '1',
      cluster: { control, ...this.#formerOf(process) },
      behaviours: [ledger, flag],
      world: { clock, random: process.random },
      wire: redisTwin(this.redis, process),
      wireDeliversOnce: true,
      log,
      hooks: { has: () => true, effects: () => this.#rules(clock) },
      query: () => null,
      throttleMs: () => 0,
      onCommitted: (shard, entries, first, body) => {
        made.index?.committed(shard, entries, first, body)
        watching?.followers.committed(shard, { first, entries, body })
      },
      onGained: (shard, { epoch, head }) => {
        made.index?.gained(shard, epoch, head)
        watching?.followers.gained(shard, head)
      },
      onReleased: (shard) => {
        made.index?.lost(shard)
        watching?.followers.lost(shard)
      },
      doneWith: (shard) => (shard < 0 ? Infinity : (made.index?.doneWith(shard) ?? Infinity)),
      onLost: () => undefined,
    })
    if (this.search !== null) {
      made.index = startClusterIndex({
        journal,
        engine: new SearchLink(this.search, process),
        prefix: GRAPH_PREFIX,
        schema: new LiveSchema(ledger.nodeTypes),
        behaviours: member.behaviours,
        clock,
        log,
        flushed: (shard) => member.shards.get(shard)?.flusher.flushed ?? null,
        serves: (shard) => member.serves(shard),
      })
    }
    if (watching !== null) this.watchings.push(watching)
    watching?.begin(member)
    return { member, index: made.index }
  }

  #journalOf(name: string, process: Process, log: Log): Journal {
    const control = new StoreControl(this.engine, process)
    const derived = derivedOf(this.engine, process, this.shards)
    return {
      identity: { format: 1, shards: this.shards, generation: 'simulation', secret: 's' },
      log: new SegmentedLog({
        segments: new StoreSegments(this.engine, process),
        control,
        flushOf: async (shard) => (await derived.consumer(shard, 'flush')) ?? 0,
        clock: process.clock,
        log,
        onBug: (shard, text) => void this.alarms.push(`${name}, shard ${shard}: ${text}`),
      }),
      derived,
      close: () => Promise.resolve(),
    }
  }

  /**
   * A ledger as the graph of a member shows it, which waits for a write first; undefined when there
   * is no answer, for a reason that there may be.
   */
  look(
    to: SimulatedMember,
    ledgerId: string,
    position: Position,
  ): Promise<ShownLedger | null | undefined> {
    const { scheduler } = this
    return new Promise((resolve) => {
      to.process.onDeath(() => resolve(undefined))
      const failed = (error: unknown): void => {
        const isAway = error instanceof RequestError && error.errors[0]!.code === 'UNAVAILABLE'
        if (!isAway) this.alarms.push(`${to.name} threw at a look: ${textOf(error)}`)
        resolve(undefined)
      }
      const ask = (): void => void this.#look(to, ledgerId, position).then(resolve, failed)
      scheduler.at(scheduler.between(0.2, 2), `looks at ${ledgerId}`, ask, to.process)
    })
  }

  async #look(
    to: SimulatedMember,
    ledgerId: string,
    position: Position,
  ): Promise<ShownLedger | null | undefined> {
    const { watch, runner } = to.index!
    if (!(await watch.reached([position], BOUNDS.indexing.consistencyWaitMs))) return undefined
    const navigate = [{ edge: 'tokens', orderBy: 'place', node: { fields: ['token'] } }]
    const node = { fields: ['size'], navigate }
    const body = [{ edge: 'ledgers', filter: `ledgerId == '${ledgerId}'`, node }]
    const plan = planNavigations(body, SCHEMA, FULL_ACCESS, { nowMs: 0, limits: BOUNDS.graph })
    const ready = { plan, json: '', usesHistory: false }
    const json = await runner.run(ready, BOUNDS.graph.deadlineMs, () => watch.generation, CALLER)
    const { ledgers } = JSON.parse(json) as Shelf
    const [found] = ledgers
    return found ? { ...found, tokens: found.tokens.map(({ token }) => token) } : null
  }

  /** Rules that take their time. */
  #rules(clock: Clock): Promise<readonly unknown[]> {
    if (this.onRules !== null) return this.onRules()
    const waitMs = this.scheduler.between(1, 400)
    return new Promise((resolve) => void clock.after(waitMs, () => resolve([])))
  }

  #logOf(name: string): Log {
    const say =
      (level: string) =>
      (fields: object, text: string): void => {
        const { err, ...rest } = fields as { err?: unknown }
        const why = err === undefined ? '' : ` (${textOf(err)})`
        this.trace.add(`  ${name} ${level}: ${text}${why} ${JSON.stringify(rest)}`)
        if (err instanceof AssertionError || err instanceof TypeError) {
          this.alarms.push(`${name}: ${text}: ${err.stack ?? err.message}`)
        }
      }
    return { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') }
  }
}

/** Answer to a look. */
interface Shelf {
  readonly ledgers: readonly {
    readonly size: number
    readonly tokens: readonly { readonly token: string }[]
  }[]
}

/** A request that nobody has read for so long is gone with its connection. */
const SOCKET_MS = 3_600_000

export const GRAPH_PREFIX = 'simulated-'
const SCHEMA = graphSchema(ledger.nodeTypes)

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : JSON.stringify(error)
}

/** Nobody listens at that address. */
export const NOT_THERE: Reply = {
  outcome: 'refused',
  error: { code: 'UNAVAILABLE', message: 'connection refused' },
}
