// The life of the projector in its thread: when it sleeps, when it wakes, how it goes on after a
// failure. The projector is a puppet here.

import t, { type Test } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import type { Step } from '../../../cluster/feed/projector-options.ts'
import { IndexLoop } from './index-loop.ts'
import { SharedProgress } from './shared-progress.ts'

interface Puppet {
  readonly progress: SharedProgress
  readonly loop: IndexLoop
  readonly offsets: Map<number, number>
  readonly pauses: number[]
  readonly failures: string[]
  applied: number
  steps: number
  starts: number
  /** What the next steps answer; `idle` when there is nothing. */
  readonly script: (Step | Error)[]
  whole: boolean
}

function puppet(t: Test, startFails: Error[] = []): Puppet {
  const progress = new SharedProgress(1)
  const offsets = new Map<number, number>()
  const pauses: number[] = []
  const failures: string[] = []
  const projector = {
    start: () => {
      p.starts++
      const error = startFails.shift()
      return error === undefined ? Promise.resolve('kept' as const) : Promise.reject(error)
    },
    step: () => {
      p.steps++
      const next = p.script.shift()
      if (next instanceof Error) return Promise.reject(next)
      return Promise.resolve(next ?? { entries: 0, writes: 0, actors: 0, next: 'idle' as const })
    },
    offsets,
    timesMs: new Map([[0, 123]]),
    get whole() {
      return p.whole
    },
    parkedCount: 2,
  }
  const loop = new IndexLoop({
    projector,
    progress,
    generation: 'g',
    onApplied: () => p.applied++,
    onFailure: (error) => failures.push(String(error)),
    onBack: () => failures.push('back'),
    clock: () => 0,
    after: (ms, run) => {
      pauses.push(ms)
      const soon = setImmediate(run)
      return () => clearImmediate(soon)
    },
    defer: (run) => setImmediate(run),
  })
  const p: Puppet = {
    progress,
    loop,
    offsets,
    pauses,
    failures,
    applied: 0,
    steps: 0,
    starts: 0,
    script: [],
    whole: true,
  }
  const running = { ended: Promise.resolve() }
  setImmediate(() => {
    running.ended = loop.run()
  })
  t.teardown(async () => {
    loop.stop()
    await running.ended
  })
  return p
}

async function until(isSo: () => boolean): Promise<void> {
  const endsAtMs = performance.now() + 10_000
  while (!isSo()) {
    if (performance.now() > endsAtMs) throw new Error('it never came')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

async function turns(n: number): Promise<void> {
  for (let i = 0; i < n; i++) await new Promise((resolve) => setImmediate(resolve))
}

t.test('sleeps when there is nothing and wakes for new heads', async (t) => {
  const p = puppet(t)
  await until(() => p.steps === 1)
  await turns(20)
  t.equal(p.steps, 1)
  p.progress.setHead(0, 5)
  t.equal(p.progress.takeAsleep(), true, 'it must be woken')
  t.equal(p.progress.takeAsleep(), false, 'by one only')
  p.offsets.set(0, 5)
  p.loop.wake()
  await until(() => p.steps === 2)
  await until(() => p.progress.applied(0) === 5)
  t.equal(p.progress.appliedTimeMs(0), 123)
  t.equal(p.progress.counter('parked'), 2)
})

t.test('a head that comes while it falls asleep is not slept over', async (t) => {
  const p = puppet(t)
  p.progress.setHead(0, 5)
  await until(() => p.steps >= 3)
  p.offsets.set(0, 5)
  t.pass('it looks again as long as a head is above its offset')
})

t.test('goes on while there is more, waits a little for what is under way', async (t) => {
  const p = puppet(t)
  p.script.push(
    { entries: 3, writes: 4, actors: 0, next: 'now' },
    { entries: 0, writes: 0, actors: 0, next: 'later' },
    { entries: 1, writes: 1, actors: 0, next: 'idle' },
  )
  await until(() => p.steps === 3)
  t.strictSame(p.pauses, [LIMITS.storage.retryMs])
  t.equal(p.progress.counter('entries'), 4)
  t.equal(p.progress.counter('writes'), 5)
  t.equal(p.progress.counter('batches'), 2)
})

t.test('backs off from failures, up to a bound, and starts small again', async (t) => {
  const p = puppet(t)
  for (let i = 0; i < 12; i++) p.script.push(new Error('disk full'))
  p.script.push({ entries: 1, writes: 0, actors: 0, next: 'now' }, new Error('again'))
  await until(() => p.failures.length === 13)
  t.equal(p.pauses[0], LIMITS.storage.retryMs)
  t.equal(p.pauses[1], LIMITS.storage.retryMs * 2)
  t.equal(p.pauses[11], LIMITS.storage.retryMsMax)
  await until(() => p.pauses.length === 13)
  t.equal(p.pauses[12], LIMITS.storage.retryMs)
  t.equal(p.progress.counter('failures'), 13)
})

t.test('a start that fails is tried again', async (t) => {
  const p = puppet(t, [new Error('no file yet'), new Error('no file yet')])
  await until(() => p.steps === 1)
  t.equal(p.starts, 3)
  t.same(p.failures, [...Array(2).fill('Error: no file yet'), 'back'])
})

t.test('tells of its moves only when somebody waits; tells whether it is whole', async (t) => {
  const p = puppet(t)
  p.whole = false
  await until(() => p.steps === 1)
  t.equal(p.applied, 0)
  t.equal(p.progress.ready, false)
  p.progress.awaited = true
  p.whole = true
  p.loop.wake()
  await until(() => p.applied > 0)
  t.equal(p.progress.ready, true)
})
