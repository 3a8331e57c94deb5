// A cluster under load: members as processes of their own on engines that they share, each under a
// CPU quota where one is asked for.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { nodeFlags } from '../../tools/start/node-flags.mjs'
import { newUuid } from '../load/requests.ts'
import { answers, Child, freePort } from '../target/child.ts'
import { Installation } from '../target/installation.ts'
import type { ClusterEngines } from './engines.ts'
import type { Quota, Quotas } from './quota.ts'

const SETTLE_MS = 120_000
const POLL_MS = 100

export interface MembersOptions {
  readonly engines: ClusterEngines
  /** null: members are not held to a share. */
  readonly quotas: Quotas | null
  readonly shards: number
  /** `info`: members say how long each shard that they hand over was served by nobody. */
  readonly logLevel?: 'info'
  /** Bounds of config/limits.ts that are other ones here; by default none. */
  readonly limits?: Readonly<Record<string, number>>
}

/** Loaded before a member's program: lowers bounds. */
const LIMIT_FLAGS = [
  '--import',
  new URL('../../test/harness/lowered-limits.ts', import.meta.url).href,
]

/** Written by a member that has handed a shard over (cluster/placement/handoff.ts). */
const HANDED_OVER = 'a shard that was handed over is served'

export class Member {
  readonly name: string
  readonly installation: Installation
  readonly #child: Child
  readonly #quota: Quota | null

  constructor(name: string, installation: Installation, child: Child, quota: Quota | null) {
    this.name = name
    this.installation = installation
    this.#child = child
    this.#quota = quota
  }

  /** CPUs; null: no bound. */
  hold(cpus: number | null): void {
    this.#quota?.set(cpus)
  }

  stop(): Promise<void> {
    return this.#child.stop()
  }

  /** kill -9. */
  kill(): Promise<void> {
    return this.#child.kill()
  }
}

interface ClusterState {
  readonly members: readonly { readonly memberId: string; readonly state: string }[]
  readonly shards: readonly { readonly shard: number; readonly owner: string | null; lag: number }[]
  readonly moves: readonly unknown[]
}

export class Members {
  readonly all: Member[] = []
  readonly #o: MembersOptions
  /** Keyspace, and prefix of the indexes. */
  readonly store = `bench_${newUuid().replaceAll('-', '').slice(0, 24)}`
  readonly #secret = newUuid() + newUuid()
  readonly #dir = mkdtempSync(join(tmpdir(), 'kontor-bench-cluster-'))

  constructor(options: MembersOptions) {
    this.#o = options
  }

  get shards(): number {
    return this.#o.shards
  }

  /** Starts so many more, and waits until the shards are spread over all. */
  async add(count: number): Promise<void> {
    for (let i = 0; i < count; i++) this.all.push(await this.#start(`m${this.all.length + 1}`))
    await this.settled()
  }

  /** Stops the newest until so many are left. */
  async shrink(count: number): Promise<void> {
    while (this.all.length > count) await this.all.pop()!.stop()
    await this.settled()
  }

  async #start(name: string): Promise<Member> {
    const { engines, quotas, shards, limits } = this.#o
    const port = await freePort()
    const url = `http://127.0.0.1:${port}`
    const child = await Child.start({
      // Bounds can be other ones in modules that are not packed.
      file: limits ? 'node/main.ts' : 'cli/node.mjs',
      flags: [...nodeFlags(), ...(limits ? LIMIT_FLAGS : [])],
      logFile: join(this.#dir, `${name}.log`),
      env: {
        ...engines.settings(this.store),
        ...(limits ? { TEST_NODE_LIMITS: JSON.stringify(limits) } : {}),
        KONTOR_MEMBER_ID: name,
        KONTOR_SHARDS: String(shards),
        KONTOR_DATA_DIR: join(this.#dir, name),
        KONTOR_HTTP_PORT: String(port),
        KONTOR_SAMPLE: 'false',
        KONTOR_BOOTSTRAP_SECRET: this.#secret,
        KONTOR_LOG_LEVEL: this.#o.logLevel ?? 'warn',
      },
      ready: () => answers(`${url}/health/ready`),
    })
    const access = { clientId: 'bootstrap', clientSecret: this.#secret }
    const installation = Installation.given({ url, access, pid: child.pid })
    return new Member(name, installation, child, quotas?.add(name, child.pid) ?? null)
  }

  /** How long each shard that moved since then was served by nobody, milliseconds; sorted. */
  handoffPausesMs(sinceMs: number): readonly number[] {
    const found: number[] = []
    for (const name of readdirSync(this.#dir).filter((file) => file.endsWith('.log'))) {
      for (const line of readFileSync(join(this.#dir, name), 'utf8').split('\n')) {
        if (!line.includes(HANDED_OVER)) continue
        const { time, pauseMs } = JSON.parse(line) as { time: string; pauseMs: number }
        if (Date.parse(time) >= sinceMs) found.push(pauseMs)
      }
    }
    return found.toSorted((a, b) => a - b)
  }

  state(of: Member = this.all[0]!): Promise<ClusterState> {
    return of.installation.get<ClusterState>('/resources/cluster')
  }

  /** Waits until every member has its share of the shards and nothing moves. */
  async settled(): Promise<void> {
    const until = performance.now() + SETTLE_MS
    const most = Math.ceil(this.#o.shards / this.all.length)
    for (;;) {
      const { members, shards, moves } = await this.state()
      const up = members.filter(({ state }) => state === 'up').length
      const level = this.all.every(({ name }) => {
        const owned = shards.filter(({ shard, owner }) => shard >= 0 && owner === name)
        return owned.length <= most
      })
      const owned = shards.every(({ owner }) => owner !== null)
      if (up === this.all.length && moves.length === 0 && level && owned) return
      if (performance.now() > until) throw new Error('the cluster does not settle')
      await delay(POLL_MS)
    }
  }

  /** CPU milliseconds of all members since they began. */
  cpuMs(): number {
    return this.all.reduce((sum, { installation }) => sum + (installation.usage()?.cpuMs ?? 0), 0)
  }

  /** Sum of a metric over the members; null where one doesn't show it. */
  async metric(name: string): Promise<number | null> {
    let sum = 0
    for (const { installation } of this.all) {
      const value = (await installation.metrics())?.get(name)
      if (value === undefined) return null
      sum += value
    }
    return sum
  }

  /** Entries that the graph has not yet, over all shards. */
  async lag(): Promise<number> {
    const { shards } = await this.state()
    return shards.reduce((sum, { lag }) => sum + lag, 0)
  }

  async stop(): Promise<void> {
    for (const member of this.all) member.hold(null)
    await Promise.all(this.all.map((member) => member.stop()))
    rmSync(this.#dir, { recursive: true, force: true })
  }
}
