// The frame of every fault under tap: a cluster with a load on it, something that happens
// meanwhile, and the judgement when all is quiet and healed again. It stands between the files of
// faults, each a story in plain verbs, and the stage. One cluster runs at a time on a machine:
// leases and takeovers are measured in milliseconds. Source: PROTOCOL 4.1, 4.2.

import type { Test } from 'tap'
import { aloneOnThisMachine } from './alone.ts'
import { ownEngines, sharedEngines } from './harness/engines.ts'
import { Stage } from './stage.ts'
import type { StageOptions } from './stage.ts'

export interface SceneOptions extends StageOptions {
  /** `own` where engines are stopped, restarted or emptied. */
  readonly engines?: 'shared' | 'own'
  /** Milliseconds, all in. */
  readonly ms?: number
}

export interface Scene extends Pick<Stage, 'cluster' | 'load' | 'probes' | 'others'> {
  readonly t: Test
  /** Checks that something took less than `boundMs`, on a machine that has the time. */
  readonly took: (ms: number, boundMs: number, what: string) => void
}

/** Files of a run that wait for one another do so no longer. */
const WAIT_MS_MAX = 15 * 60_000
const FILE_MS_MAX = 10 * 60_000
const PROBLEMS_SHOWN_MAX = 20

/** A test in which `play` is what happens to a cluster under load. */
export function fault(
  file: Test,
  name: string,
  options: SceneOptions,
  play: (scene: Scene) => Promise<void>,
): void {
  file.setTimeout(WAIT_MS_MAX + FILE_MS_MAX)
  void file.test(name, async (t) => {
    t.setTimeout(WAIT_MS_MAX + (options.ms ?? 120_000))
    await aloneOnThisMachine(() => run(t, options, play))
  })
}

async function run(
  t: Test,
  options: SceneOptions,
  play: (scene: Scene) => Promise<void>,
): Promise<void> {
  const engines = options.engines === 'own' ? await ownEngines(t) : await sharedEngines()
  if ('skipped' in engines) {
    t.plan(0, engines.skipped)
    return
  }
  const stage = await Stage.open(t, engines, options)
  const { cluster, load, probes, others, pace } = stage
  t.comment(`seed ${stage.seed}`)
  const took: Scene['took'] = (ms, boundMs, what) => {
    const bound = pace.bound(boundMs)
    t.ok(ms < bound, `${what}: ${Math.round(ms)} ms, bound ${bound} ms`)
  }
  try {
    await play({ t, cluster, load, probes, others, took })
    const { report, problems, orders } = await stage.judge()
    for (const line of report) t.comment(line)
    t.comment(`timers are up to ${pace.lateMs.toFixed(1)} ms late (p90)`)
    t.equal(problems.length, 0, `of ${orders} orders, none is wrong`)
    for (const problem of problems.slice(0, PROBLEMS_SHOWN_MAX)) t.comment(problem)
    if (!t.passing()) t.comment(`history and logs: ${stage.keep()}`)
  } catch (error) {
    await load.stop()
    t.comment(`history and logs: ${stage.keep()}`)
    throw error
  }
}
