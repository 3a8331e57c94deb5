// Asking for the index to be made anew, by the clock and an index that is none: one at a time, with
// a pause between, looked at so often and told in hundredths.

import t from 'tap'
import { TestClock, settle } from '../../cluster/testing/harness.ts'
import { LIMITS } from '../../config/limits.ts'
import { AskedRebuilds } from './asked-rebuilds.ts'
import { NO_REBUILD, type RebuildProgress } from './rebuild.ts'

class IndexTwin {
  now: RebuildProgress = NO_REBUILD
  begun = 0
  looks = 0
  fault: Error | null = null

  rebuild(): void {
    this.begun++
    this.now = { state: 'filling', done: 0, total: 0, startedAt: 7 }
  }

  async rebuildProgress(): Promise<RebuildProgress> {
    this.looks++
    if (this.fault !== null) throw this.fault
    return this.now
  }
}

function scene() {
  const [index, clock] = [new IndexTwin(), new TestClock()]
  const rebuilds = new AskedRebuilds(index, clock)
  const { progressGapMs, askedAgainMs } = LIMITS.indexing
  const after = async <T>(asked: Promise<T>, ms: number = progressGapMs): Promise<T | string> => {
    const answer = asked.catch(({ message }: Error) => message)
    await settle()
    await clock.advance(ms)
    return answer
  }
  return { index, clock, rebuilds, after, askedAgainMs }
}

t.test('one at a time, and the next after a while', async (t) => {
  const { index, clock, rebuilds, after, askedAgainMs } = scene()
  await after(Promise.all([rebuilds.rebuild(), rebuilds.rebuild()]))
  t.equal(index.begun, 1, 'who asks together has one')
  await after(rebuilds.rebuild())
  t.equal(index.begun, 1, 'it is under way')
  index.now = NO_REBUILD
  t.match(await after(rebuilds.rebuild()), /made anew just now: .* nothing was done/)
  await clock.advance(askedAgainMs)
  t.equal(await after(rebuilds.rebuild()), undefined)
  t.equal(index.begun, 2)
})

t.test('how far it is, in hundredths, also before it has a total', async (t) => {
  const { index, rebuilds, after } = scene()
  const idle = { state: 'idle', done: 0, total: 0, startedAt: null }
  t.strictSame(await after(rebuilds.progress()), idle)
  index.rebuild()
  const running = { state: 'running', done: 0, total: 100, startedAt: 7 }
  t.strictSame(await after(rebuilds.progress()), running)
  index.now = { state: 'taking-over', done: 1_999, total: 2_000, startedAt: 7 }
  t.strictSame(await after(rebuilds.progress()), { ...running, done: 99 })
})

t.test('a crowd looks as often as one, and none is told what was before it came', async (t) => {
  const { index, rebuilds, after } = scene()
  await after(rebuilds.progress(), 0)
  t.equal(index.looks, 1)
  const crowd = Promise.all(Array.from({ length: 100 }, () => rebuilds.progress()))
  await settle()
  t.equal(index.looks, 1, 'a moment apart')
  index.rebuild()
  const told = (await after(crowd)) as { state: string }[]
  t.equal(index.looks, 2)
  t.ok(told.every(({ state }) => state === 'running'))
  index.fault = new Error('away')
  t.equal(await after(rebuilds.progress()), 'away')
  index.fault = null
  t.match(await after(rebuilds.progress()), { state: 'running' })
})
