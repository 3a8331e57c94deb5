// When a consumer of the feed works, sleeps, waits and tries again. Time is a list of waits that
// end when the test says so.

import t, { type Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { ConsumerLoop, type Consumer, type Next } from './consumer-loop.ts'

interface Scene {
  readonly loop: ConsumerLoop
  readonly waits: number[]
  steps: number
  /** What the next steps say; `idle` when there is nothing. */
  readonly script: Next[]
  awaited: boolean
  /** Waits end by themselves. */
  passes: boolean
}

function scene(t: Test, consumer: Partial<Consumer> = {}): Scene {
  const s: Scene = {
    waits: [],
    steps: 0,
    script: [],
    awaited: true,
    passes: true,
    loop: new ConsumerLoop({
      gatherStepMs: 10,
      after: (ms, run) => {
        s.waits.push(ms)
        if (!s.passes) return () => undefined
        const soon = setImmediate(run)
        return () => clearImmediate(soon)
      },
      defer: (run) => setImmediate(run),
      consumer: {
        step: () => {
          s.steps++
          return Promise.resolve(s.script.shift() ?? 'idle')
        },
        isAwaited: () => s.awaited,
        ...consumer,
      },
    }),
  }
  t.teardown(() => s.loop.stop())
  return s
}

/** Until it holds; the test's own time ends it. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve))
}

/** So long that all that could go on has done so. */
async function settled(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
}

void t.test('it works while there is something, and sleeps until it is woken', async (t) => {
  const s = scene(t)
  s.script.push('now', 'now')
  const done = s.loop.run()
  await until(() => s.steps === 3)
  await settled()
  t.equal(s.steps, 3, 'nothing is there, so it sleeps')
  s.loop.wake()
  await until(() => s.steps === 4)
  s.loop.stop()
  await done
  t.same(s.waits, [], 'it has not waited')
})

void t.test('what fails is tried again after longer and longer, up to a bound', async (t) => {
  const s = scene(t)
  s.script.push(...Array.from({ length: 12 }, () => 'failed' as const), 'now', 'failed')
  const done = s.loop.run()
  await until(() => s.steps === 15)
  s.loop.stop()
  await done
  const { retryMs: first, retryMsMax: most } = LIMITS.storage
  const growing = Array.from({ length: 12 }, (_, i) => Math.min(first * 2 ** i, most))
  t.same(s.waits, [...growing, first], 'success begins anew')
})

void t.test('a step that has to wait comes again after a while', async (t) => {
  const s = scene(t)
  s.script.push('later', 'later')
  void s.loop.run()
  await until(() => s.steps === 3)
  t.same(s.waits, [LIMITS.storage.retryMs, LIMITS.storage.retryMs])
})

void t.test('it begins before its first step, as often as it takes', async (t) => {
  let begun = 0
  const s = scene(t, { begin: () => Promise.resolve(++begun === 3) })
  void s.loop.run()
  await until(() => s.steps === 1)
  t.equal(begun, 3)
  t.same(s.waits, [LIMITS.storage.retryMs, 2 * LIMITS.storage.retryMs])
})

void t.test('woken, it lets some more come together, unless somebody waits for it', async (t) => {
  const s = scene(t)
  s.awaited = false
  void s.loop.run()
  await until(() => s.steps === 1)
  s.loop.wake()
  await until(() => s.steps === 2)
  t.same(
    s.waits,
    Array.from({ length: LIMITS.feed.projectorGatherMs / 10 }, () => 10),
  )
  s.awaited = true
  s.loop.wake()
  await until(() => s.steps === 3)
  t.equal(s.waits.length, LIMITS.feed.projectorGatherMs / 10, 'no further wait')
})

void t.test('what came as it fell asleep wakes it', async (t) => {
  let falls = 0
  let wakes = 0
  const s = scene(t, { fallAsleep: () => ++falls === 1, awake: () => void wakes++ })
  void s.loop.run()
  await until(() => s.steps === 2)
  await settled()
  t.same({ falls, wakes, steps: s.steps }, { falls: 2, wakes: 1, steps: 2 })
})

void t.test('a stop ends a wait and a sleep; a wake ends no wait', async (t) => {
  const s = scene(t)
  s.passes = false
  s.script.push('failed')
  const done = s.loop.run()
  await until(() => s.waits.length === 1)
  s.loop.wake()
  await settled()
  t.equal(s.steps, 1, 'it still waits')
  s.loop.stop()
  await done
  t.equal(s.steps, 1)
  const asleep = scene(t)
  const slept = asleep.loop.run()
  await until(() => asleep.steps === 1)
  asleep.loop.stop()
  await slept
  t.equal(asleep.steps, 1)
})
