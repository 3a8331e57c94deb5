// A short run with everything in it. `npm run soak -- --seconds 300` is the long one.

import t from 'tap'
import { aloneOnThisMachine } from './alone.ts'
import { faultEngines } from './harness/engines.ts'
import { soak, soakReport } from './soak.ts'

const SECONDS = 45
const TAKEOVER_MS = 5_000

t.setTimeout(30 * 60_000)

t.test('everything at once', { timeout: 25 * 60_000 }, async (t) => {
  await aloneOnThisMachine(async () => {
    const engines = await faultEngines()
    if ('skipped' in engines) {
      t.plan(0, engines.skipped)
      return
    }
    const seed = 1 + Math.floor(Math.random() * 9_999)
    t.comment(`seed ${seed}`)
    const tell = (line: string): void => t.comment(line)
    const result = await soak(t, { engines, seed, seconds: SECONDS, tell })
    for (const line of soakReport(result)) t.comment(line)
    t.equal(result.problems.length, 0, `of ${result.orders} orders, none is wrong`)
    t.ok(result.takeoversMs.length > 0, 'somebody died')
    const longest = Math.max(...result.takeoversMs)
    t.ok(longest < TAKEOVER_MS, `the longest takeover took ${longest} ms`)
  })
})
