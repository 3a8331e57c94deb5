// A mistake of ours in the middle of a bulk: the run ends, whatever it waits for at that moment.

import t from 'tap'
import { ledger } from '../../cluster/testing/ledger.ts'
import { settle, TestClock } from '../../cluster/testing/harness.ts'
import { LIMITS } from '../../config/limits.ts'
import type { Behaviour } from '../../protocol/behaviour.ts'
import type { Reply } from '../../protocol/message.ts'
import { actorOperations, type ActorsOptions } from './routes.ts'
import { BULK_REQUEST, SHOP } from './testing/bulk-request.ts'

const LINE = Buffer.from(JSON.stringify({ id: 'new', messages: [{ type: 'open', body: {} }] }))

t.test('a mistake while the body waits for room', async (t) => {
  const failing: ((error: Error) => void)[] = []
  const operation = actorOperations({
    actorSystem: {
      behaviours: new Map([['ledger', ledger as Behaviour]]),
      ask: () => new Promise<Reply>((_, reject) => failing.push(reject)),
    } as unknown as ActorsOptions['actorSystem'],
    consistency: { encode: () => '' },
    world: { clock: new TestClock(), random: () => undefined },
  }).find(({ path }) => path === '/resources/actors/{type}')!
  let taken = 0
  async function* lines() {
    while (taken < 2 * LIMITS.actors.bulkLinesInFlightMax) yield { number: ++taken, bytes: LINE }
  }
  let ended: unknown = null
  const stream = { lines: lines(), write: () => undefined, identityNow: () => SHOP }
  Promise.resolve(operation.stream!(BULK_REQUEST, stream)).catch(
    (error: unknown) => (ended = error),
  )
  for (let i = 0; i < 5; i++) await settle()
  t.equal(failing.length, LIMITS.actors.bulkLinesInFlightMax, 'the next line waits')
  t.equal(ended, null)

  failing[7]!(new TypeError('ours'))
  for (let i = 0; i < 5; i++) await settle()
  t.match(ended, new TypeError('ours'))
  t.ok(taken <= LIMITS.actors.bulkLinesInFlightMax + 2, 'no line behind it is asked for')
})
