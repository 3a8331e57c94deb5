// The sample loader against a small actor system that remembers keys and refuses on demand.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { ActorRequest, ActorSystem } from '../../cluster/actor-system.ts'
import { errorItem } from '../../protocol/errors.ts'
import type { Reply } from '../../protocol/message.ts'
import { readSampleFile } from './file.ts'
import { fileMarker } from './marker.ts'
import { loadSample, sampleOrders, type SampleMarker, type SampleOptions } from './sample.ts'

/** The line of an order. */
const line = (orderNumber: string) => `${JSON.stringify({ orderNumber, taxIncluded: true })}\n`

function answered(success: boolean, code: 'ALREADY_EXISTS' | 'INVALID_COMMAND'): Reply {
  return {
    outcome: 'answered',
    actorId: null,
    keys: [],
    position: null,
    results: [
      success
        ? { type: 'create', success: true }
        : { type: 'create', success: false, errors: [errorItem(code, 'no')] },
    ],
  }
}

interface Fake {
  readonly options: SampleOptions
  readonly asked: ActorRequest[]
  state: 'begun' | 'done' | null
  underWayMax: number
}

function fake(reply: (request: ActorRequest, n: number) => Reply, head = 0, text = ''): Fake {
  let underWay = 0
  const made: Fake = {
    asked: [],
    state: null,
    underWayMax: 0,
    options: {
      by: 'client',
      readText: () => text,
      delay: () => Promise.resolve(),
      marker: {
        read: () => made.state,
        write: (state) => {
          made.state = state
        },
      } satisfies SampleMarker,
      actorSystem: {
        heads: () => [
          { shard: -1, offset: 5 },
          { shard: 0, offset: head },
        ],
        async ask(request) {
          made.underWayMax = Math.max(made.underWayMax, ++underWay)
          made.asked.push(request)
          await Promise.resolve()
          underWay--
          return reply(request, made.asked.length)
        },
      } as Partial<ActorSystem> as ActorSystem,
    },
  }
  return made
}

const numbers = (requests: readonly ActorRequest[]): string[] =>
  requests.map((request) => (request.messages[0]!.body as { orderNumber: string }).orderNumber)

t.test('an empty store gets every order of the bundled file, some at a time', async (t) => {
  const f = fake(() => answered(true, 'ALREADY_EXISTS'), 0, readSampleFile())
  const outcome = await loadSample(f.options)
  t.same(outcome, { outcome: 'loaded', orders: 300 })
  t.equal(new Set(numbers(f.asked)).size, 300)
  t.equal(new Set(f.asked.map((request) => request.idempotencyKey)).size, 300)
  t.ok(f.asked.every((request) => request.idempotencyKey!.startsWith('sample-')))
  t.equal(f.underWayMax, LIMITS.sample.inFlightMax)
  t.equal(f.state, 'done')
  t.same(await loadSample(f.options), { outcome: 'skipped' }, 'not loaded a second time')
  t.equal(f.asked.length, 300)
})

t.test('a store in use is left alone, and its file is not read', async (t) => {
  const f = fake(() => answered(true, 'ALREADY_EXISTS'), 7)
  t.same(await loadSample({ ...f.options, readText: () => t.fail('read') as never }), {
    outcome: 'skipped',
  })
  t.equal(f.asked.length, 0)
  t.equal(f.state, null)
})

t.test('a load that had begun goes on in a store that is in use', async (t) => {
  const f = fake(
    (request) => answered(numbers([request])[0] === '2', 'ALREADY_EXISTS'),
    7,
    line('1') + line('2'),
  )
  f.state = 'begun'
  t.same(await loadSample(f.options), { outcome: 'loaded', orders: 2 })
  t.equal(f.state, 'done')
})

t.test('what may be sent again is sent again with the same key', async (t) => {
  const busy: Reply = { outcome: 'refused', error: errorItem('TOO_BUSY', 'later') }
  const lost: Reply = { outcome: 'unknown', error: errorItem('OUTCOME_UNKNOWN', 'who knows') }
  const f = fake((_, n) => [busy, lost][n - 1] ?? answered(true, 'ALREADY_EXISTS'), 0, line('1'))
  t.equal((await loadSample(f.options)).outcome, 'loaded')
  t.equal(f.asked.length, 3)
  t.equal(new Set(f.asked.map((request) => request.idempotencyKey)).size, 1)
})

t.test('a failure that stays is told, and the load is not called done', async (t) => {
  const refused = fake(() => answered(false, 'INVALID_COMMAND'), 0, line('1'))
  t.match(await loadSample(refused.options), { outcome: 'failed', reason: /INVALID_COMMAND: no/ })
  t.equal(refused.state, 'begun')

  const busy: Reply = { outcome: 'refused', error: errorItem('TOO_BUSY', 'later') }
  const always = fake(() => busy, 0, line('1'))
  t.match(await loadSample(always.options), { outcome: 'failed', reason: /TOO_BUSY/ })
  t.equal(always.asked.length, LIMITS.sample.attemptsMax)

  const torn = fake(() => answered(true, 'ALREADY_EXISTS'), 0, 'what,is,this\n')
  t.match(await loadSample(torn.options), { outcome: 'failed', reason: /not valid JSON/ })
})

t.test('the marker file keeps its state', (t) => {
  const dir = t.testdir()
  t.equal(fileMarker(dir).read(), null)
  fileMarker(dir).write('begun')
  t.equal(fileMarker(dir).read(), 'begun')
  fileMarker(dir).write('done')
  t.equal(fileMarker(dir).read(), 'done')
  t.throws(() => fileMarker(`${dir}/nowhere`).write('done'))
  t.end()
})

t.test('orders of a text: bodies as they stand, keys of what they say', (t) => {
  const [one, two, other, none] = sampleOrders(line('1') + line('1') + line('2'))
  t.strictSame(one!.body, { orderNumber: '1', taxIncluded: true })
  t.strictSame(two, one)
  t.not(other!.idempotencyKey, one!.idempotencyKey)
  // What a load of an older version has begun goes on under the same keys.
  t.equal(one!.idempotencyKey, 'sample-83c1a350e081753f1168b3fe86ca760c7d58e78a')
  t.equal(none, undefined)
  t.end()
})
