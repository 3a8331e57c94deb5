// What is worked at in the background leaves the disk to commits. Source: PROTOCOL 3.16.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { UpkeepThrottle, UpkeepStopped } from './upkeep-throttle.ts'

t.test('so many bytes a second, and fewer while commits come', async (t) => {
  const pauses: number[] = []
  let isBusy = false
  const throttle = new UpkeepThrottle({
    pause: async (ms) => void pauses.push(ms),
    isBusy: () => isBusy,
  })
  const step = LIMITS.embedded.upkeepStepBytes
  const msOf = (bytes: number): number => (bytes / LIMITS.embedded.upkeepBytesPerSecond) * 1_000
  await throttle.take(step - 1)
  t.same(pauses, [], 'little steps go together')
  await throttle.take(1)
  t.same(pauses, [msOf(step)])
  await throttle.take(step - 1)
  t.equal(pauses.length, 1, 'what was waited for counts no more')
  isBusy = true
  await throttle.take(1 + step)
  t.same(pauses.slice(1), [msOf(2 * step) * LIMITS.embedded.upkeepBusyFactor])
})

t.test('it ends where the journal is closed, also while it waits', async (t) => {
  let goOn = (): void => undefined
  const pause = () => new Promise<void>((resolve) => (goOn = resolve))
  const throttle = new UpkeepThrottle({ pause, isBusy: () => false })
  const taken = throttle.take(LIMITS.embedded.upkeepStepBytes)
  throttle.stop()
  goOn()
  const isStopped = (error: unknown): boolean => error instanceof UpkeepStopped
  t.ok(await taken.then(() => false, isStopped))
  t.ok(await throttle.take(1).then(() => false, isStopped))
})
