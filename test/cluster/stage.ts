// A cluster of real processes with a load on it, and the judgement at its end: K1, K2, K3, K4, K5,
// K7, K8, K9. scene.ts plays faults on it under tap, soak.ts for minutes. Source: PROTOCOL 4.1.

import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { LIMITS } from '../../config/limits.ts'
import { limitFlags } from '../harness/node-process.ts'
import { tick, until } from '../harness/patience.ts'
import { checkAnswers } from './checkers/answers.ts'
import { checkBatches, checkMarks } from './checkers/marks.ts'
import { checkTime } from './checkers/time.ts'
import { readIndexProblems, readOrders } from './end.ts'
import { Cluster } from './harness/cluster.ts'
import type { Owner } from './harness/cluster.ts'
import type { Engines } from './harness/engines.ts'
import { MachineSlack } from './machine-slack.ts'
import type { OperationKind } from './operation-history.ts'
import { Probes } from './probes.ts'
import { reportOf } from './report.ts'
import { Workload } from './workload.ts'
import type { WorkloadOptions } from './workload.ts'

export interface StageOptions {
  readonly members?: readonly string[]
  readonly shards?: number
  readonly load?: Partial<WorkloadOptions>
  /** More settings of every member. */
  readonly env?: Readonly<Record<string, string>>
}

export interface Judgement {
  readonly report: readonly string[]
  /** What is not as it must be. */
  readonly problems: readonly string[]
  readonly orders: number
}

const SHARDS = 16
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** All is well again so soon after the last fault has ended (K8). */
const HEALED_MS = 10_000
const VERIFY_MS_MAX = 120_000
const LEAVE_NOTHING: ReadonlySet<OperationKind> = new Set(['read', 'graph', 'preview'])

export class Stage {
  readonly cluster: Cluster
  readonly load: Workload
  readonly probes: Probes
  readonly seed: number
  readonly slack = new MachineSlack()
  /** Orders and lines that were made beside the load. */
  readonly others = { orders: 0, lines: 0 }

  readonly #members: readonly string[]

  private constructor(parts: Pick<Stage, 'cluster' | 'load' | 'probes' | 'seed'>) {
    this.cluster = parts.cluster
    this.load = parts.load
    this.probes = parts.probes
    this.seed = parts.seed
    this.others.orders = parts.probes.count
    this.#members = [...parts.cluster.members.keys()]
  }

  /** Starts all of it; the cluster ends with its owner. */
  static async open(owner: Owner, engines: Engines, options: StageOptions): Promise<Stage> {
    const { members = ['a', 'b', 'c'], shards = SHARDS, env = {} } = options
    const cluster = await Cluster.start(owner, { engines, members, shards, env })
    const probes = await Probes.make(shards, () => cluster.up)
    const seed = options.load?.seed ?? 1 + Math.floor(Math.random() * 9_999)
    const load = new Workload({ doors: () => cluster.doors, ...options.load, seed }).start()
    const stage = new Stage({ cluster, load, probes, seed })
    try {
      await until('there is a load', () => load.done > 40)
      return stage
    } catch (error) {
      await load.stop()
      throw new Error(`${(error as Error).message}: ${stage.keep()}`, { cause: error })
    }
  }

  /** Heals everything, starts who is missing, and waits until all is well again (K8). */
  async restore(): Promise<void> {
    const { cluster, probes, slack } = this
    cluster.heal()
    for (const name of this.#members) await cluster.revive(name)
    await cluster.settled(slack.bound(HEALED_MS))
    await probes.allAnswer(slack.bound(HEALED_MS))
  }

  /** Ends the load when all is well, and looks at what there is. */
  async judge(): Promise<Judgement> {
    const { cluster, load, others, slack } = this
    await this.restore()
    const history = await load.stop()
    slack.stop()
    // A request whose client has left goes on until its time is over, and may take effect by then.
    const open = history.operations.filter(
      ({ outcome, op }) => outcome === 'info' && !LEAVE_NOTHING.has(op),
    )
    const sentAt = Math.max(0, ...open.flatMap(({ attempts }) => attempts.map((one) => one.sentAt)))
    const leftMs = sentAt + LIMITS.sharding.requestBudgetMs - load.now()
    if (open.length > 0 && leftMs > 0) await tick(leftMs)
    const doors = cluster.up
    const orders = await readOrders(history, doors)
    const problems = [
      ...checkMarks(history, orders),
      ...checkBatches(history, orders),
      ...checkTime(history),
      ...checkAnswers(history),
      ...(await readIndexProblems(history, orders, doors, { others })),
      ...load.caller.strange,
      ...(await verifyLog(cluster)),
    ]
    return { report: reportOf(history), problems, orders: orders.size }
  }

  /** Ends whatever still asks, after a failure: it would keep the process. */
  async stop(): Promise<void> {
    this.slack.stop()
    await Promise.all([this.load.stop(), this.probes.stop()])
  }

  /** Leaves the history and what members printed in a folder; gives its name. */
  keep(): string {
    const { cluster, load } = this
    const dir = join(tmpdir(), `kontor-cluster-${cluster.keyspace}`)
    mkdirSync(dir, { recursive: true })
    writeFileSync(join(dir, 'history.jsonl'), load.history.lines())
    for (const { name, node } of cluster.members.values()) {
      writeFileSync(join(dir, `${name}.log`), node.output)
    }
    return dir
  }
}

/** K4: the log, as the store has it. */
async function verifyLog({ settings }: Cluster): Promise<string[]> {
  const { code, text } = await new Promise<{ code: number | string; text: string }>((resolve) => {
    const args = [...limitFlags(settings), join(ROOT, 'cli', 'verify-log.ts')]
    const env = { PATH: process.env['PATH'] ?? '', KONTOR_MEMBER_ID: 'audit', ...settings }
    execFile(process.execPath, args, { env, timeout: VERIFY_MS_MAX }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? 'killed'), text: stdout + stderr })
    })
  })
  return code === 0 ? [] : [`K4: verify-log says ${code}: ${text}`]
}
