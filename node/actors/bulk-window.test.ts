// The window of a bulk while its shards are busy for long: it shrinks for as long as refusals come.

import t from 'tap'
import { ledger } from '../../cluster/testing/ledger.ts'
import { settle } from '../../cluster/testing/harness.ts'
import { LIMITS } from '../../config/limits.ts'
import type { Behaviour } from '../../protocol/behaviour.ts'
import { errorItem } from '../../protocol/errors.ts'
import type { Reply } from '../../protocol/message.ts'
import { actorOperations, type ActorsOptions } from './routes.ts'
import { BULK_REQUEST, SHOP } from './testing/bulk-request.ts'

const LINE = Buffer.from(JSON.stringify({ id: 'new', messages: [{ type: 'open', body: {} }] }))
const BUSY: Reply = { outcome: 'refused', error: errorItem('TOO_BUSY', 'busy') }
const DONE: Reply = { outcome: 'answered', actorId: 'a', keys: [], results: [], position: null }
/** Lines that are sent again together. */
const TOGETHER = 8
const LINES = 2 * LIMITS.actors.bulkLinesInFlightMax

t.test('it shrinks again and again, however soon one refusal follows another', async (t) => {
  let nowMs = 0
  const timers: { readonly at: number; readonly run: () => void }[] = []
  let reply = (): Reply | Promise<Reply> => BUSY
  const operation = actorOperations({
    actorSystem: {
      behaviours: new Map([['ledger', ledger as Behaviour]]),
      ask: async () => reply(),
    } as unknown as ActorsOptions['actorSystem'],
    consistency: { encode: () => '' },
    world: {
      clock: {
        nowMs: () => nowMs,
        monotonicMs: () => nowMs,
        after: (ms, run) => (timers.push({ at: nowMs + ms, run }), () => {}),
        defer: (run) => run(),
      },
      random: () => undefined,
    },
  }).find(({ path }) => path === '/resources/actors/{type}')!
  let taken = 0
  async function* lines() {
    while (taken < LINES) yield { number: ++taken, bytes: LINE }
  }
  let answers = 0
  const write = (): undefined => void answers++
  const done = operation.stream!(BULK_REQUEST, { lines: lines(), write, identityNow: () => SHOP })
  const turns = async (): Promise<void> => {
    for (let i = 0; i < 10; i++) await settle()
  }
  await turns()
  const underWay = timers.length
  t.equal(underWay, LIMITS.actors.bulkLinesInFlightMax / 2, 'halved by the first refusal')
  // Each line once more, in their order.
  nowMs += LIMITS.actors.bulkRetryMs
  for (let sent = 0; sent < underWay; sent += TOGETHER) {
    nowMs += LIMITS.actors.bulkRetryMs / 2
    for (const timer of timers.splice(0, TOGETHER)) timer.run()
    await turns()
  }
  t.equal(timers.length, underWay)
  const later: (() => void)[] = []
  let successes = 100
  reply = () => (successes-- > 0 ? DONE : new Promise((resume) => later.push(() => resume(DONE))))
  const before = taken
  for (const timer of timers.splice(0)) timer.run()
  await turns()
  t.equal(answers, 100)
  t.equal(taken, before, 'these successes make no room for other lines yet')
  await turns()
  while (later.length > 0) {
    for (const go of later.splice(0)) go()
    await turns()
  }
  await done
  t.equal(answers, LINES)
})
