// The frame of faults under tap: one cluster with a load on it for all the stories of a file, made
// whole again after each of them, and the judgement when all is quiet. Files of faults are stories
// in plain verbs. One cluster runs at a time on a machine: leases and takeovers are measured in
// milliseconds. Source: PROTOCOL 4.1, 4.2.

import type { Test } from 'tap'
import { aloneOnThisMachine } from './alone.ts'
import { faultEngines } from './harness/engines.ts'
import { Stage } from './stage.ts'
import type { StageOptions } from './stage.ts'

export interface Scene extends Pick<Stage, 'cluster' | 'load' | 'probes' | 'others'> {
  readonly t: Test
  /** Checks that something took less than `boundMs`, on a machine that has the time. */
  readonly took: (ms: number, boundMs: number, what: string) => void
}

export type Story = (scene: Scene) => Promise<void>

/** Files of a run that wait for one another do so no longer. */
const WAIT_MS_MAX = 20 * 60_000
const FILE_MS_MAX = 12 * 60_000
const PROBLEMS_SHOWN_MAX = 20
/** Of the one that stands in the name of the assertion, which every report of a run shows. */
const PROBLEM_CHARS_MAX = 300

/** Plays the stories one after the other on one cluster under load. */
export function faults(
  file: Test,
  stories: Readonly<Record<string, Story>>,
  options: StageOptions = {},
): void {
  file.setTimeout(WAIT_MS_MAX + FILE_MS_MAX)
  void file.test('under load', { timeout: WAIT_MS_MAX + FILE_MS_MAX }, async (t) => {
    await aloneOnThisMachine(() => play(t, stories, options))
  })
}

async function play(
  t: Test,
  stories: Readonly<Record<string, Story>>,
  options: StageOptions,
): Promise<void> {
  const engines = await faultEngines()
  if ('skipped' in engines) {
    t.plan(0, engines.skipped)
    return
  }
  const stage = await Stage.open(t, engines, options)
  t.comment(`seed ${stage.seed}`)
  try {
    for (const [name, story] of Object.entries(stories)) {
      await t.test(name, { timeout: FILE_MS_MAX }, (own) => story(sceneOf(stage, own)))
      await stage.restore()
    }
    await judge(t, stage)
  } finally {
    await stage.stop()
    if (!t.passing()) t.comment(`history and logs: ${stage.keep()}`)
  }
}

function sceneOf({ cluster, load, probes, others, slack }: Stage, t: Test): Scene {
  slack.begin()
  const took: Scene['took'] = (ms, boundMs, what) => {
    const bound = slack.bound(boundMs)
    const idle = `${Math.round(slack.idle * 100)} % of the machine idle`
    t.ok(ms < bound, `${what}: ${Math.round(ms)} ms, bound ${bound} ms with ${idle}`)
  }
  return { t, cluster, load, probes, others, took }
}

async function judge(t: Test, stage: Stage): Promise<void> {
  const { report, problems, orders } = await stage.judge()
  for (const line of report) t.comment(line)
  t.comment(`timers are up to ${stage.slack.lateMs.toFixed(1)} ms late (p90)`)
  const first = problems[0]?.slice(0, PROBLEM_CHARS_MAX) ?? ''
  t.equal(problems.length, 0, `of ${orders} orders, none is wrong${first && `: ${first}`}`)
  for (const problem of problems.slice(0, PROBLEMS_SHOWN_MAX)) t.comment(problem)
}
