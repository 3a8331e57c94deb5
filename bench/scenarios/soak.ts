// soak: new orders at a fixed rate for minutes, watched in windows, with a restart of the node in
// the middle when it is asked for. Shows what a store that grows and tidies up does to a rate that
// it carries at first.

import { setTimeout as delay } from 'node:timers/promises'
import type { Restart } from '../course.ts'
import { openLoop } from '../load/open-loop.ts'
import { Recorder } from '../load/recorder.ts'
import { AnswerSample } from '../load/sample.ts'
import type { BenchSettings } from '../options.ts'
import type { Installation } from '../target/installation.ts'
import { Windows } from '../windows.ts'
import { LONG_CONNECTIONS, newOrders, readBack, SAMPLED_MAX } from './acknowledged.ts'
import { requestScenario, type Scenario } from './scenario.ts'

export function soak(settings: BenchSettings): Scenario {
  const sample = new AnswerSample(SAMPLED_MAX)
  return requestScenario(settings, {
    name: 'soak',
    node: 'soak',
    loop: 'open',
    askedRate: settings.soakRate,
    connections: [LONG_CONNECTIONS],
    floors: [],
    once: true,
    async load({ installation, readings, connections }) {
      const windows = new Windows(installation, settings.windowSeconds)
      const recorder = new Recorder(windows)
      const orders = await newOrders(installation)
      let restarted: Promise<Restart | null> = Promise.resolve(null)
      let paused: Promise<void> = Promise.resolve()
      const result = await openLoop({
        to: await installation.destination(),
        connections,
        recorder,
        sample,
        warmUpSeconds: settings.warmUpSeconds,
        seconds: settings.soakMinutes * 60,
        rate: settings.soakRate,
        next: orders.next,
        readings: {
          started() {
            readings.started()
            windows.resume()
            restarted = restartAt(settings.restartAtMinutes, { installation, windows, recorder })
          },
          ended() {
            readings.ended()
            paused = windows.pause()
          },
        },
      }).finally(() => orders.end())
      await paused
      return { ...result, course: { windows: windows.done, restart: await restarted } }
    },
    verify: (installation) => readBack(installation, sample),
  })
}

interface Watched {
  readonly installation: Installation
  readonly windows: Windows
  readonly recorder: Recorder
}

async function restartAt(minutes: number | null, watched: Watched): Promise<Restart | null> {
  if (minutes === null) return null
  await delay(minutes * 60_000)
  const { installation, windows, recorder } = watched
  const failedBefore = new Map(recorder.failures)
  const atSeconds = windows.elapsedSeconds
  try {
    const downtime = await installation.restart('stopped')
    const failed = [...recorder.failures]
      .map(([what, times]) => [what, times - (failedBefore.get(what) ?? 0)] as const)
      .filter(([, times]) => times > 0)
    return downtime && { ...downtime, atSeconds, failed: Object.fromEntries(failed), graph: null }
  } catch (error) {
    recorder.failure(`restart: ${(error as Error).message}`)
    return null
  }
}
