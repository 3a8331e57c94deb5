// A cluster of real processes on real engines, with plain verbs: start, stop, kill, freeze, thaw,
// cut, delay, heal, stopEngine, startEngine, flushRedis, addMember. Every member reaches every
// engine through a proxy of its own. Waiting is polling with a deadline, never a sleep. Source:
// PROTOCOL 4.2.

import { randomUUID } from 'node:crypto'
import { NodeProcess } from '../../harness/node-process.ts'
import type { Answer, RuntimeCall } from '../../harness/node-process.ts'
import { until } from '../../harness/patience.ts'
import type { EngineName } from '../../harness/engines.ts'
import { frames } from './cassandra-frames.ts'
import { ENGINE_NAMES, tellRedis } from './engines.ts'
import type { Engines, OwnEngines } from './engines.ts'
import { Proxy } from './proxy.ts'
import type { Side } from './proxy.ts'

/** The part of a test that a cluster needs. */
export interface Owner {
  teardown(end: () => Promise<void>): void
}

export interface ClusterOptions {
  readonly engines: Engines
  readonly members?: readonly string[]
  readonly shards?: number
  /** More settings of every member. */
  readonly env?: Readonly<Record<string, string>>
}

/** Of GET /resources/cluster (CONTRACT 0). */
export interface ClusterState {
  readonly members: readonly { memberId: string; incarnation: string; state: string }[]
  readonly shards: readonly {
    shard: number
    owner: string | null
    epoch: number
    head: number
    lag: number
    state: string
  }[]
  readonly moves: readonly unknown[]
}

const READY_MS = 60_000
/** As a load balancer that looks every second. */
const NOTICED_MS = 1_000
const SYSTEM_SHARD = -1
const OUTPUT_CHARS_SHOWN = 2_000

/** One member: a process that can be started again, and its ways to the engines. */
export class ClusterMember {
  readonly name: string
  readonly node: NodeProcess
  readonly ways: Readonly<Record<EngineName, Proxy>>
  isFrozen = false
  /** It was told to end, or has ended. */
  isLeaving = false
  /** It was told to end, and has not yet. */
  isDraining = false
  /** When it ceased to be of use, by performance.now(). */
  lostAt = -Infinity

  constructor(name: string, node: NodeProcess, ways: Readonly<Record<EngineName, Proxy>>) {
    this.name = name
    this.node = node
    this.ways = ways
  }

  ask(path: string, ask: RuntimeCall = {}): Promise<Answer> {
    return this.node.ask(path, ask)
  }

  /** It runs, as far as one can tell from outside. */
  get isUp(): boolean {
    return this.node.isUp && !this.isFrozen && !this.isLeaving
  }

  /** It says that it serves; false, too, when it says nothing. */
  isReady(): Promise<boolean> {
    const asked = this.node.send('/health/ready', { timeoutMs: 5_000 })
    return asked.then(
      ({ status }) => status === 200,
      () => false,
    )
  }

  async state(): Promise<ClusterState> {
    const answer = await this.ask('/resources/cluster', { timeoutMs: 5_000 })
    if (answer.status !== 200) throw new Error(`${this.name}: ${answer.status} ${answer.text}`)
    return answer.json<ClusterState>()
  }
}

export class Cluster {
  readonly members = new Map<string, ClusterMember>()
  readonly keyspace = `t${randomUUID().replaceAll('-', '')}`
  readonly #o: ClusterOptions

  private constructor(options: ClusterOptions) {
    this.#o = options
  }

  /** A cluster whose members serve, on a store of its own; it ends with the test. */
  static async start(t: Owner, options: ClusterOptions): Promise<Cluster> {
    const cluster = new Cluster(options)
    t.teardown(() => cluster.clear())
    try {
      const [first, ...others] = options.members ?? ['a', 'b', 'c']
      await cluster.addMember(first!)
      await Promise.all(others.map((name) => cluster.addMember(name)))
      await cluster.settled()
      return cluster
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${cluster.#outputs()}`, { cause: error })
    }
  }

  /** What members printed last. */
  #outputs(): string {
    const shown = [...this.members.values()].map(({ name, node }) => {
      return `${name}: ${node.output.slice(-OUTPUT_CHARS_SHOWN)}`
    })
    return shown.join('\n')
  }

  member(name: string): ClusterMember {
    const member = this.members.get(name)
    if (member === undefined) throw new Error(`there is no member ${name}`)
    return member
  }

  /** Members that run and are not frozen. */
  get up(): ClusterMember[] {
    return [...this.members.values()].filter(({ isUp }) => isUp)
  }

  /**
   * Members that clients would still try: those that run, those that drain, and for a while those
   * that stand still or were killed, until somebody has noticed.
   */
  get doors(): ClusterMember[] {
    const unnoticed = performance.now() - NOTICED_MS
    return [...this.members.values()].filter(({ isUp, isDraining, lostAt }) => {
      return isUp || isDraining || lostAt > unnoticed
    })
  }

  // --- members --------------------------------------------------------------------------------

  /** A new member, ready. */
  async addMember(name: string): Promise<ClusterMember> {
    const { engines, shards = 16, env } = this.#o
    const ways = Object.fromEntries(
      await Promise.all(
        ENGINE_NAMES.map(async (engine) => {
          const split = engine === 'cassandra' ? frames : undefined
          return [engine, await new Proxy(() => engines[engine], split).listen()] as const
        }),
      ),
    ) as Record<EngineName, Proxy>
    const node = new NodeProcess({
      ...this.#settings(ways),
      KONTOR_MEMBER_ID: name,
      KONTOR_SHARDS: String(shards),
      ...env,
    })
    const member = new ClusterMember(name, node, ways)
    // Until it is ready nobody is sent to it.
    member.isLeaving = true
    this.members.set(name, member)
    await node.start()
    member.isLeaving = false
    return member
  }

  /** Of something that reaches the engines directly. */
  get settings(): Readonly<Record<string, string>> {
    return { ...this.#settings(this.#o.engines), ...this.#o.env }
  }

  #settings(at: Readonly<Record<EngineName, { readonly port: number }>>): Record<string, string> {
    const { cassandra, elasticsearch, redis } = at
    return {
      KONTOR_STORAGE_DRIVER: 'cluster',
      KONTOR_CASSANDRA_CONTACT_POINTS: `127.0.0.1:${cassandra.port}`,
      KONTOR_CASSANDRA_KEYSPACE: this.keyspace,
      KONTOR_CASSANDRA_DATACENTER: 'datacenter1',
      KONTOR_ELASTICSEARCH_URL: `http://127.0.0.1:${elasticsearch.port}`,
      KONTOR_ELASTICSEARCH_PREFIX: `${this.keyspace}-`,
      KONTOR_REDIS_URL: `redis://127.0.0.1:${redis.port}`,
    }
  }

  /** Starts one that has ended, and waits until it is ready. */
  async start(name: string): Promise<void> {
    const member = this.member(name)
    await member.node.start()
    member.isLeaving = false
  }

  /** SIGTERM: it drains, hands its shards over and ends. Resolves with its exit code. */
  async stop(name: string): Promise<number> {
    const member = this.member(name)
    member.isLeaving = true
    member.isDraining = true
    try {
      return await member.node.stop()
    } finally {
      member.isDraining = false
    }
  }

  /** kill -9. */
  async kill(name: string): Promise<void> {
    const member = this.member(name)
    member.isLeaving = true
    member.isFrozen = false
    member.lostAt = performance.now()
    await member.node.kill()
  }

  /**
   * SIGSTOP: it stands still with all its threads, its connections stay open. To one that was told
   * to end nobody is sent any more, so that nothing waits in its sockets.
   */
  freeze(name: string): void {
    const member = this.member(name)
    process.kill(member.node.pid, 'SIGSTOP')
    member.isFrozen = true
    if (!member.isLeaving) member.lostAt = performance.now()
  }

  /** SIGCONT. */
  thaw(name: string): void {
    const member = this.member(name)
    process.kill(member.node.pid, 'SIGCONT')
    member.isFrozen = false
  }

  /** Whatever has happened to it, it runs again. */
  async revive(name: string): Promise<void> {
    const member = this.member(name)
    if (member.isFrozen) this.thaw(name)
    if (!member.node.isUp) await this.start(name)
  }

  // --- the network ----------------------------------------------------------------------------

  /** Nothing passes any more, or nothing of one side; nobody is told, and nothing is lost. */
  cut(name: string, engine: EngineName, side: Side | 'both' = 'both'): void {
    const way = this.member(name).ways[engine]
    if (side === 'both') way.cut()
    else way.hold(side)
  }

  delay(name: string, engine: EngineName, ms: number, side: Side = 'answers'): void {
    this.member(name).ways[engine].delay(side, ms)
  }

  /** Every way is open again; what was held back is delivered. */
  heal(name?: string): void {
    const healed = name === undefined ? [...this.members.values()] : [this.member(name)]
    for (const { ways } of healed) for (const way of Object.values(ways)) way.heal()
  }

  // --- engines that others have no part in ------------------------------------------------------

  get #own(): OwnEngines {
    return this.#o.engines as OwnEngines
  }

  stopEngine(engine: EngineName): Promise<void> {
    return this.#own[engine].stop()
  }

  startEngine(engine: EngineName): Promise<void> {
    return this.#own[engine].start()
  }

  async killEngine(engine: EngineName): Promise<void> {
    await this.#own[engine].kill()
  }

  async restartEngine(engine: EngineName): Promise<void> {
    await this.stopEngine(engine)
    await this.startEngine(engine)
  }

  /** Everything in Redis is gone. */
  async flushRedis(): Promise<void> {
    const answer = await tellRedis(this.#own.redis, 'FLUSHALL')
    if (answer !== '+OK') throw new Error(`FLUSHALL: ${answer}`)
  }

  // --- what can be waited for -------------------------------------------------------------------

  /** Every member is ready, and all agree on who serves each shard; nothing moves. */
  async settled(ms = READY_MS): Promise<void> {
    await until('the cluster is settled', async () => (await this.#unsettled()) === null, ms).catch(
      async (error: Error) => {
        throw new Error(`${error.message}: ${await this.#unsettled()}`)
      },
    )
  }

  async #unsettled(): Promise<string | null> {
    const names = this.up.map(({ name }) => name).toSorted()
    const states = await Promise.all(
      this.up.map(async (member) => ({
        name: member.name,
        ready: await member.node.send('/health/ready', { timeoutMs: 5_000 }),
        state: await member.state(),
      })),
    ).catch((error: Error) => error.message)
    if (typeof states === 'string') return states
    const owners = new Set<string>()
    for (const { name, ready, state } of states) {
      if (ready.status !== 200) return `${name} is not ready: ${ready.text}`
      const up = state.members.filter((one) => one.state === 'up').map(({ memberId }) => memberId)
      if (up.toSorted().join() !== names.join()) return `${name} sees ${up.join()}`
      if (state.moves.length > 0) return `${name} sees moves: ${JSON.stringify(state.moves)}`
      owners.add(state.shards.map(({ shard, owner }) => `${shard} ${owner}`).join())
      const lost = state.shards.find(({ owner }) => owner === null || !names.includes(owner))
      if (lost) return `${name} sees shard ${lost.shard} at ${lost.owner}`
      if (!this.#isLevel(state, names))
        return `shards are not level: ${JSON.stringify(state.shards)}`
    }
    return owners.size === 1 ? null : `they do not agree: ${[...owners].join(' | ')}`
  }

  /** Every member has its share: no move is still to come. */
  #isLevel({ shards }: ClusterState, names: readonly string[]): boolean {
    const most = Math.ceil((this.#o.shards ?? 16) / names.length)
    return names.every((name) => {
      const owned = shards.filter(({ shard, owner }) => shard !== SYSTEM_SHARD && owner === name)
      return owned.length <= most
    })
  }

  /** Who owns most of the shards, or one of those. */
  async ownerOfMost(): Promise<string> {
    const { shards } = await this.up[0]!.state()
    const counts = new Map<string, number>()
    for (const { owner } of shards) {
      if (owner !== null) counts.set(owner, (counts.get(owner) ?? 0) + 1)
    }
    return [...counts].toSorted((a, b) => b[1] - a[1])[0]![0]
  }

  /** Fencing numbers of the shards. */
  async epochs(): Promise<number[]> {
    const { shards } = await this.up[0]!.state()
    return shards.filter(({ shard }) => shard !== SYSTEM_SHARD).map(({ epoch }) => epoch)
  }

  async ownerOf(shard: number): Promise<string | null> {
    const { shards } = await this.up[0]!.state()
    return shards.find((one) => one.shard === shard)?.owner ?? null
  }

  async clear(): Promise<void> {
    await Promise.all(
      [...this.members.values()].map(async (member) => {
        await member.node.clear()
        for (const way of Object.values(member.ways)) await way.close()
      }),
    )
  }
}
