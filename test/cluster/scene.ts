// The frame of every fault: a cluster of real processes, a workload on it, something that happens
// meanwhile, and the judgement when all is quiet and healed again. It stands between the files of
// faults, each a story in plain verbs, and the harness. One cluster runs at a time on a machine:
// leases and takeovers are measured in milliseconds. Source: PROTOCOL 4.1, 4.2.

import type { Test } from 'tap'
import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withLock } from '../../cli/set-up-lock.mjs'
import { until } from '../harness/patience.ts'
import { checkAnswers } from './checkers/answers.ts'
import { checkBatches, checkMarks } from './checkers/marks.ts'
import { checkTime } from './checkers/time.ts'
import { readIndexProblems, readOrders } from './end.ts'
import { Cluster } from './harness/cluster.ts'
import { ownEngines, sharedEngines } from './harness/engines.ts'
import { Probes } from './probes.ts'
import { reportOf } from './report.ts'
import { Workload } from './workload.ts'
import type { WorkloadOptions } from './workload.ts'

export interface SceneOptions {
  /** `own` where engines are stopped, restarted or emptied. */
  readonly engines?: 'shared' | 'own'
  readonly members?: readonly string[]
  readonly shards?: number
  readonly load?: Partial<WorkloadOptions>
  /** Milliseconds, all in. */
  readonly ms?: number
}

export interface Scene {
  readonly t: Test
  readonly cluster: Cluster
  readonly load: Workload
  readonly probes: Probes
}

const SHARDS = 16
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** All is well again so soon after the last fault has ended (K8). */
const HEALED_MS = 10_000
const LOCK = join(tmpdir(), `kontor-cluster-tests-${process.getuid?.() ?? 0}`)
/** Files of a run that wait for one another do so no longer. */
const WAIT_MS_MAX = 15 * 60_000

/**
 * A test in which `play` is what happens to a cluster under load. Judged by K1, K2, K3, K4, K5, K7,
 * K8 and K9.
 */
export function fault(
  t: Test,
  name: string,
  options: SceneOptions,
  play: (scene: Scene) => Promise<void>,
): void {
  t.setTimeout(WAIT_MS_MAX + 10 * 60_000)
  void t.test(name, async (t) => {
    t.setTimeout(WAIT_MS_MAX + (options.ms ?? 120_000))
    await withLock(LOCK, () => run(t, options, play))
  })
}

async function run(
  t: Test,
  options: SceneOptions,
  play: (scene: Scene) => Promise<void>,
): Promise<void> {
  const engines = options.engines === 'own' ? await ownEngines(t) : await sharedEngines()
  if ('skipped' in engines) {
    t.plan(0, engines.skipped as string)
    return
  }
  const { members = ['a', 'b', 'c'], shards = SHARDS } = options
  const cluster = await Cluster.start(t, { engines, members, shards })
  const doors = (): Cluster['up'] => cluster.up
  const probes = await Probes.make(shards, doors)
  const seed = options.load?.seed ?? 1 + Math.floor(Math.random() * 9_999)
  const load = new Workload({ doors, ...options.load, seed }).start()
  t.comment(`seed ${seed}, keyspace ${cluster.keyspace}`)
  try {
    await until('there is a load', () => load.done > 40)
    await play({ t, cluster, load, probes })
    await judge({ t, cluster, load, probes })
  } catch (error) {
    await load.stop()
    tellAll(t, cluster, load)
    throw error
  }
}

/** Ends the load, waits until all is well, and checks what there is. */
async function judge({ t, cluster, load, probes }: Scene): Promise<void> {
  cluster.heal()
  await cluster.settled(HEALED_MS)
  await probes.allAnswer(HEALED_MS)
  const history = await load.stop()
  for (const line of reportOf(history)) t.comment(line)
  const doors = cluster.up
  const orders = await readOrders(history, doors)
  const others = { orders: probes.count, lines: 0 }
  const problems = [
    ...checkMarks(history, orders),
    ...checkBatches(history, orders),
    ...checkTime(history),
    ...checkAnswers(history),
    ...(await readIndexProblems(history, orders, doors, { others })),
    ...load.caller.strange,
    ...(await verifyLog(cluster)),
  ]
  t.equal(problems.length, 0, `of ${orders.size} orders, none is wrong`)
  if (problems.length === 0) return
  for (const problem of problems.slice(0, 20)) t.comment(problem)
  tellAll(t, cluster, load)
}

/** K4: the log, as the store has it. */
async function verifyLog({ settings }: Cluster): Promise<string[]> {
  const output = await new Promise<{ code: number | string; text: string }>((resolve) => {
    const args = [join(ROOT, 'cli', 'verify-log.ts')]
    const env = { PATH: process.env['PATH'] ?? '', ...settings }
    execFile(process.execPath, args, { env, timeout: 120_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? 'killed'), text: stdout + stderr })
    })
  })
  return output.code === 0 ? [] : [`K4: verify-log says ${output.code}: ${output.text}`]
}

/** Leaves the history and what members printed where they can be read. */
function tellAll(t: Test, cluster: Cluster, load: Workload): void {
  const dir = join(tmpdir(), `kontor-cluster-${cluster.keyspace}`)
  mkdirSync(dir, { recursive: true })
  writeFileSync(join(dir, 'history.jsonl'), load.history.lines())
  for (const { name, node } of cluster.members.values()) {
    writeFileSync(join(dir, `${name}.log`), node.output)
  }
  t.comment(`history and logs: ${dir}`)
}
