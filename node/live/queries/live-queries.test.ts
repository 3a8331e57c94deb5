// Live queries of several members over a wire that loses, doubles and delays, while shards move and
// members die: what a client has by its frames alone is in the end what the graph answers, and no
// frame contradicts another (K6). Source: PROTOCOL 3.15, 3.18, 4.1 (K6), 4.2 (F33).

import fc from 'fast-check'
import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { LiveCluster, SHARDS } from './testing/live-cluster.ts'
import type { Becomes, Fate } from './testing/live-cluster.ts'

const SHOWN = { orders: ['orderId', 'rank', 'version'], lines: ['orderId', 'lineId', 'version'] }

const QUERY = fc
  .record({
    edge: fc.constantFrom('orders' as const, 'lines' as const),
    filter: fc.constantFrom(undefined, 'rank < 3', 'rank == 1 or rank == 4', 'not (rank == 2)'),
    orderBy: fc.constantFrom(undefined, 'rank', 'rank desc'),
    limit: fc.constantFrom(1, 2, 3, 50),
  })
  .map(({ edge, filter, orderBy, limit }) => ({
    ...{ edge, limit, node: { fields: SHOWN[edge] } },
    ...(filter !== undefined && { filter }),
    ...(orderBy !== undefined && { orderBy }),
  }))

const BECOMES: fc.Arbitrary<Becomes> = fc.option(
  fc.record({ state: fc.constantFrom('a', 'b'), rank: fc.nat(5), line: fc.boolean() }),
  { freq: 6 },
)

const STEP = fc.oneof(
  { weight: 10, arbitrary: fc.record({ commit: fc.nat(6), becomes: BECOMES }) },
  { weight: 2, arbitrary: fc.record({ move: fc.nat(SHARDS - 1), to: fc.nat(2) }) },
  { weight: 6, arbitrary: fc.record({ pass: fc.constantFrom(1, 15, 400, 1_100) }) },
  { weight: 3, arbitrary: fc.record({ indexed: fc.nat(SHARDS - 1) }) },
  { weight: 1, arbitrary: fc.record({ open: QUERY, at: fc.nat(2) }) },
  { weight: 2, arbitrary: fc.record({ comeBack: fc.nat(5), at: fc.nat(2) }) },
  { weight: 1, arbitrary: fc.record({ slow: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ drain: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.constant({ kill: true as const }) },
  { weight: 1, arbitrary: fc.constant({ late: true as const }) },
)
type Step = typeof STEP extends fc.Arbitrary<infer T> ? T : never

const FATES = fc.array(
  fc.constantFrom<Fate>('comes', 'comes', 'comes', 'comes', 'lost', 'doubled', 'late'),
  { maxLength: 60, size: 'max' },
)

let joined = 0

async function take(all: LiveCluster, step: Step): Promise<void> {
  const names = [...all.members.keys()]
  const memberAt = (at: number): string => names[at % names.length]!
  const clientAt = (at: number) => all.clients[at % all.clients.length]
  if ('commit' in step) all.commit(step.commit, step.becomes)
  else if ('move' in step) all.move(step.move, memberAt(step.to))
  else if ('pass' in step) await all.clock.advance(step.pass)
  else if ('indexed' in step) all.indexed(step.indexed)
  else if ('open' in step) all.open(step.open, memberAt(step.at))
  else if ('comeBack' in step) {
    const client = clientAt(step.comeBack)
    client?.lost()
    client?.connect(all.members.get(memberAt(step.at))!)
  } else if ('slow' in step) {
    const client = clientAt(step.slow)
    if (client !== undefined) client.bufferedBytes = LIMITS.live.queryHoldBytes
  } else if ('drain' in step) clientAt(step.drain)?.drain()
  else if ('kill' in step) {
    all.join(`m${++joined}`)
    all.kill(names[0]!)
  } else await all.comeLate()
}

t.test('clients have what the graph has, whatever is lost on the way', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(QUERY, { minLength: 1, maxLength: 3 }),
      fc.array(STEP, { minLength: 20, maxLength: 60, size: 'max' }),
      FATES,
      async (queries, steps, fates) => {
        const all = new LiveCluster(['a', 'b', 'c'])
        try {
          for (const query of queries) all.open(query, 'a')
          await all.clock.advance(LIMITS.feed.watchEveryMs)
          let next = 0
          all.fate = () => fates[next++ % Math.max(1, fates.length)] ?? 'comes'
          for (const step of steps) await take(all, step)
          for (const client of all.clients) client.drain()
          await all.quiet()
          const faults = all.faults()
          if (faults.length > 0) throw new Error(faults.join('\n'))
        } finally {
          await all.stop()
        }
      },
    ),
    { numRuns: 30 },
  )
  t.pass()
})

const ALL_ORDERS = { edge: 'orders', limit: 5, node: { fields: SHOWN.orders } }
const ALL_LINES = { edge: 'lines', limit: 5, node: { fields: SHOWN.lines } }
const WITH_LINE: Becomes = { state: 'a', rank: 1, line: true }

t.test('an owner that has not heard of a type that was just asked for hides nothing', async (t) => {
  const all = new LiveCluster(['a', 'b', 'c'])
  all.move(2, 'b')
  all.open(ALL_ORDERS, 'a')
  all.commit(1, WITH_LINE)
  all.indexedAll()
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  all.fate = ({ kind }, to) => (kind === 'watch' && to === 'c' ? 'lost' : 'comes')
  all.open(ALL_LINES, 'a')
  await all.clock.advance(LIMITS.feed.watchKnownMs + LIMITS.live.queryRowsMs)
  t.equal(all.clients[1]!.frames.length, 1, 'the one that is read by now owns nothing')
  all.move(1, 'c')
  all.commit(1, WITH_LINE)
  all.indexedAll()
  await all.clock.advance(LIMITS.feed.watchGatherMs)
  await all.quiet()
  t.strictSame(all.faults(), [])
  const told = all.clients.map(({ frames }) => frames.map(({ type }) => type))
  t.strictSame(told[1], ['liveQueryCreated', 'liveQueryUpdate'], 'it never goes')
  t.equal(all.clients[0]!.view.anew, 1, 'who had it all is not read again')
  await all.stop()
})

t.test('what the index has before the feed does not go back when the feed comes', async (t) => {
  const all = new LiveCluster(['a', 'b', 'c'])
  all.open(ALL_ORDERS, 'a')
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  all.fate = ({ kind }) => (kind === 'fed' ? 'late' : 'comes')
  for (let i = 0; i < 3; i++) {
    all.commit(1, WITH_LINE)
    await all.clock.advance(LIMITS.feed.watchGatherMs)
  }
  all.indexedAll()
  all.open(ALL_ORDERS, 'a')
  await all.clock.advance(3 * LIMITS.feed.watchKnownMs)
  await all.quiet()
  t.strictSame(all.faults(), [])
  await all.stop()
})

t.test('a session has so many, on whatever connections, and a place is free again', async (t) => {
  t.teardown(overrideLimits({ 'live.queriesOfSessionMax': 2 }))
  const all = new LiveCluster(['a'])
  const [first, , third] = [0, 1, 2].map(() => all.open(ALL_ORDERS, 'a'))
  await all.clock.advance(1)
  t.match(third!.frames, [{ type: 'liveQueryError', code: 'TOO_BUSY' }])
  third!.lost()
  first!.lost()
  third!.connect(all.members.get('a')!)
  await all.quiet()
  t.equal(third!.frames.at(-1)?.type, 'liveQueryCreated')
  await all.stop()
})

t.test('who does not read is told the difference in the end, others what happens', async (t) => {
  const all = new LiveCluster(['a', 'b', 'c'])
  const [slow, quick] = [all.open(ALL_ORDERS, 'a'), all.open({ ...ALL_ORDERS, limit: 6 }, 'a')]
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  slow.bufferedBytes = LIMITS.live.queryHoldBytes
  for (let i = 0; i < 300; i++) {
    all.commit(i % 7, { state: 'a', rank: i % 5, line: false })
    if (i % 10 === 9) await all.clock.advance(LIMITS.feed.watchGatherMs)
  }
  all.indexedAll()
  t.equal(slow.frames.length, 1, 'nothing is written for it')
  t.ok(quick.frames.length > 100, `${quick.frames.length} frames`)
  slow.drain()
  await all.clock.advance(LIMITS.live.queryRetryMs)
  t.ok(slow.frames.length <= 1 + ALL_ORDERS.limit, `${slow.frames.length} frames`)
  await all.quiet()
  t.strictSame(all.faults(), [])
  await all.stop()
})

t.test('many that have waited for one list begin some at a time', async (t) => {
  t.teardown(overrideLimits({ 'live.queriesBeginTogether': 3 }))
  const all = new LiveCluster(['a'])
  const clients = Array.from({ length: 20 }, () => all.open(ALL_ORDERS, 'a'))
  const begun = (): number => clients.filter(({ frames }) => frames.length > 0).length
  let [most, last] = [0, 0]
  for (let i = 0; i < 200 && last < clients.length; i++) {
    await new Promise<void>((resolve) => setImmediate(resolve))
    most = Math.max(most, begun() - last)
    last = begun()
  }
  t.equal(last, clients.length)
  t.ok(most <= 3, `${most} at once`)
  await all.stop()
})
