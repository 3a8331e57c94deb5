// The reader thread seen from the main thread: every query gets an answer, whatever becomes of the
// thread.

import t, { type Test } from 'tap'
import { RequestError } from '../../protocol/errors.ts'
import { systemClock } from '../../cluster/clock.ts'
import type { ReadyPlan } from './plan-cache.ts'
import { ReaderThread } from './reader-thread.ts'

const entry = new URL('./testing/reader-twin.ts', import.meta.url)

function thread(t: Test, bounds: { queueMax?: number; stuckMs?: number } = {}) {
  const errors: string[] = []
  const log = {
    info: () => undefined,
    warn: () => undefined,
    error: (_fields: object, text: string) => void errors.push(text),
  }
  const journal = { dir: '', end: new SharedArrayBuffer(8) }
  const reader = new ReaderThread({ journal, clock: systemClock(), log, entry, ...bounds })
  t.teardown(() => reader.close())
  return { reader, errors }
}

function plan(order: string): ReadyPlan {
  return { plan: { steps: [] }, json: JSON.stringify(order), usesHistory: false }
}

async function codeOf(run: Promise<unknown>): Promise<string> {
  try {
    return `answered ${String(await run)}`
  } catch (error) {
    return error instanceof RequestError ? error.errors[0]!.code : String(error)
  }
}

/** Asks until the thread is there again. */
async function answered(reader: ReaderThread): Promise<string> {
  const endsAtMs = performance.now() + 20_000
  for (;;) {
    const code = await codeOf(reader.run(plan('ok'), 20_000, 1))
    if (code !== 'UNAVAILABLE' || performance.now() > endsAtMs) return code
    await new Promise((resolve) => setImmediate(resolve))
  }
}

t.test('answers, refusals and failures come back to who asked', async (t) => {
  const { reader, errors } = thread(t)
  const all = ['ok', 'refuse', 'fail'].map((order) => codeOf(reader.run(plan(order), 20_000, 1)))
  t.strictSame(await Promise.all(all), ['answered "ok"', 'INVALID_QUERY', 'Error: it broke'])
  t.match(reader.stats, { queries: 3, queryUs: 7, failed: 2, refused: 0 })
  t.strictSame(errors, ['a graph query has failed'])
  const refused = await reader.run(plan('refuse'), 20_000, 1).catch((e: unknown) => e)
  t.match((refused as RequestError).errors, [{ message: 'no', details: { a: 1 } }])
})

t.test('past its bound the queue says 429 at once', async (t) => {
  const { reader } = thread(t, { queueMax: 2 })
  const waiting = [reader.run(plan('a'), 20_000, 1), reader.run(plan('b'), 20_000, 1)]
  t.equal(await codeOf(reader.run(plan('c'), 20_000, 1)), 'TOO_BUSY')
  t.strictSame(await Promise.all(waiting), ['"a"', '"b"'])
  t.equal(reader.stats.refused, 1)
  t.equal(reader.waiting, 0)
})

for (const order of ['die', 'throw']) {
  t.test(`a thread that ends (${order}) is replaced; who waited gets 503`, async (t) => {
    const { reader } = thread(t)
    const waiting = [order, 'ok'].map((o) => codeOf(reader.run(plan(o), 20_000, 1)))
    t.strictSame(await Promise.all(waiting), ['UNAVAILABLE', 'UNAVAILABLE'])
    t.equal(await answered(reader), 'answered "ok"')
    t.equal(reader.stats.restarts, 1)
  })
}

t.test('a thread that is stuck past the deadline is replaced', async (t) => {
  const { reader, errors } = thread(t, { stuckMs: 30 })
  t.equal(await answered(reader), 'answered "ok"')
  const waiting = ['hang', 'ok'].map((o) => codeOf(reader.run(plan(o), 20, 1)))
  t.strictSame(await Promise.all(waiting), ['UNAVAILABLE', 'UNAVAILABLE'])
  t.match(errors, ['the graph reader thread is stuck; replaced'])
  t.equal(await answered(reader), 'answered "ok"')
})

t.test('closing refuses what waits and starts nothing again', async (t) => {
  const { reader } = thread(t)
  const waiting = codeOf(reader.run(plan('hang'), 20_000, 1))
  await reader.close()
  t.equal(await waiting, 'UNAVAILABLE')
  t.equal(await codeOf(reader.run(plan('ok'), 20_000, 1)), 'UNAVAILABLE')
  t.equal(reader.stats.restarts, 0)
})
