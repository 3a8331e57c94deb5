// Reader threads seen from the main thread: every query gets an answer, whatever becomes of the
// threads.

import t, { type Test } from 'tap'
import { RequestError } from '../../../protocol/errors.ts'
import { systemClock } from '../../../cluster/clock.ts'
import { LiveSchema } from '../live-schema.ts'
import type { ReadyPlan } from './plan-cache.ts'
import { ReaderPool } from './reader-pool.ts'
import { ReaderThread } from './reader-thread.ts'

const entry = new URL('./testing/reader-twin.ts', import.meta.url)

const CALLER = { group: 'client/a', name: 's' }

function pool(t: Test, stuckMs: number | null = null) {
  const errors: string[] = []
  const log = {
    info: () => undefined,
    warn: () => undefined,
    error: (_fields: object, text: string) => void errors.push(text),
  }
  const journal = { dir: '', end: new SharedArrayBuffer(8) }
  const clock = systemClock()
  const { current } = new LiveSchema([])
  const read = () => ({ version: current, number: 0 })
  const options = { journal, clock, log, entry, read, ...(stuckMs !== null && { stuckMs }) }
  const reader = new ReaderPool({
    clock,
    threads: 1,
    startThread: (stats, onChange) => new ReaderThread(options, stats, onChange),
  })
  t.teardown(() => reader.close())
  const run = (order: string, deadlineMs = 20_000): Promise<string> =>
    reader.run(plan(order), deadlineMs, () => 1, CALLER)
  return { reader, errors, run, ask: (order: string, ms?: number) => codeOf(run(order, ms)) }
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
async function answered(ask: (order: string) => Promise<string>): Promise<string> {
  const endsAtMs = performance.now() + 20_000
  for (;;) {
    const code = await ask('ok')
    if (code !== 'UNAVAILABLE' || performance.now() > endsAtMs) return code
    await new Promise((resolve) => setImmediate(resolve))
  }
}

t.test('answers, refusals and failures come back to who asked', async (t) => {
  const { reader, errors, run, ask } = pool(t)
  const all = ['ok', 'refuse', 'fail'].map((order) => ask(order))
  t.strictSame(await Promise.all(all), ['answered "ok"', 'INVALID_QUERY', 'Error: it broke'])
  t.match(reader.stats, { queries: 3, queryUs: 7, failed: 2, refused: 0 })
  t.strictSame(errors, ['a graph query has failed'])
  const refused = await run('refuse').catch((e: unknown) => e)
  t.match((refused as RequestError).errors, [{ message: 'no', details: { a: 1 } }])
})

for (const order of ['die', 'throw']) {
  t.test(`a thread that ends (${order}) is replaced; who waited gets 503`, async (t) => {
    const { reader, ask } = pool(t)
    const waiting = [order, 'ok'].map((o) => ask(o))
    t.strictSame(await Promise.all(waiting), ['UNAVAILABLE', 'UNAVAILABLE'])
    t.equal(await answered(ask), 'answered "ok"')
    t.equal(reader.stats.restarts, 1)
  })
}

t.test('a thread that is stuck past the deadline is replaced', async (t) => {
  const { errors, ask } = pool(t, 30)
  t.equal(await answered(ask), 'answered "ok"')
  const waiting = ['hang', 'ok'].map((o) => ask(o, 20))
  t.strictSame(await Promise.all(waiting), ['UNAVAILABLE', 'UNAVAILABLE'])
  t.match(errors, ['a graph reader thread is stuck; replaced'])
  t.equal(await answered(ask), 'answered "ok"')
})

t.test('closing refuses what waits and starts nothing again', async (t) => {
  const { reader, ask } = pool(t)
  const waiting = ask('hang')
  await reader.close()
  t.equal(await waiting, 'UNAVAILABLE')
  t.equal(await ask('ok'), 'UNAVAILABLE')
  t.equal(reader.stats.restarts, 0)
})
