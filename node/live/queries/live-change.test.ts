// Standing queries whose callers may see other things, and whose fields become others: each begins
// anew by what it means then, or ends. Source: CONTRACT 1.10 "Who may", PROTOCOL 3.13.8, 3.15.

import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import type { NodeType } from '../../../protocol/graph/node-type.ts'
import { LiveCluster, TYPES, idOf } from './testing/live-cluster.ts'
import type { LiveClient } from './testing/live-client.ts'

const [A, B]: [string, string] = [idOf(1), idOf(2)]
const ORDERS = { edge: 'orders', orderBy: 'rank', limit: 5 }
const QUERY = { ...ORDERS, node: { fields: ['orderId', 'rank', 'version'] } }
const FIELDS = 'graph/order:field:orderId graph/order:field:version graph/order:field:rank'

/** Two orders that are shown, on one of three members. */
async function scene(t: Test, query: typeof QUERY & { readonly filter?: string } = QUERY) {
  const all = new LiveCluster(['a', 'b', 'c'])
  t.teardown(() => all.stop())
  all.commit(1, { state: 'x', rank: 1, line: true }, { season: 'x', other: 'y' })
  all.commit(2, { state: 'y', rank: 2, line: true }, { season: 'y', other: 'x' })
  all.indexedAll()
  const client = all.open(query, 'a')
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  return { all, client }
}

/** What came since this was last asked, as a line a frame. */
function told({ frames }: LiveClient, from: { at: number }): string[] {
  const some = frames.slice(from.at)
  from.at = frames.length
  return some.map((frame) => {
    const { type, code, nodes, node } = frame
    const shown = (nodes ?? (node === undefined ? [] : [node])) as { readonly orderId: string }[]
    const ids = shown.map(({ orderId }) => (orderId === A ? 'A' : orderId === B ? 'B' : orderId))
    return [type, ...(code === undefined ? [] : [code as string]), ...ids].join(' ')
  })
}

t.test('a role that changes', async (t) => {
  const { all, client } = await scene(t)
  const from = { at: 0 }
  t.strictSame(told(client, from), ['liveQueryCreated A B'])
  client.may(`graph/order:query ${FIELDS}`)
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  t.strictSame(told(client, from), [], 'it shows the same')
  client.may(`graph/order/${A}:query ${FIELDS}`)
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  t.strictSame(told(client, from), ['liveQueryReset A'])
  all.commit(2, { state: 'y', rank: 0, line: true })
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  t.strictSame(told(client, from), [], 'of what it may not see nothing is told')
  client.may(null)
  all.commit(1, { state: 'x', rank: 3, line: true })
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  t.strictSame(told(client, from), [], 'while nobody can tell who it is nothing is told')
  client.may(`graph/order/${A}:query ${FIELDS}`)
  await all.clock.advance(LIMITS.live.queryRetryMs)
  t.strictSame(told(client, from), ['liveQueryUpdate A'])
  client.may('graph/order:query graph/order:field:orderId')
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  t.strictSame(told(client, from), ['liveQueryError FORBIDDEN_FIELD'])
})

t.test('access attributes that change, and values that nodes come to have', async (t) => {
  const { all, client } = await scene(t)
  const from = { at: 0 }
  const scope = `state@graph/order:query ${FIELDS}`
  client.may(scope, { state: ['x'] })
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  t.strictSame(told(client, from), ['liveQueryCreated A B', 'liveQueryReset A'])
  client.may(scope, { state: ['y'] })
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  t.strictSame(told(client, from), ['liveQueryReset B'])
  all.commit(1, { state: 'y', rank: 1, line: true })
  all.commit(2, { state: 'x', rank: 2, line: true })
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  t.strictSame(told(client, from).sort(), ['liveQueryAdd A', 'liveQueryRemove'])
  client.may(scope)
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  t.match(told(client, from), [/^liveQueryError FORBIDDEN/])
})

/** The node types with a custom field `season` of the order. */
function withSeason(type: 'text' | 'number', source: string): NodeType[] {
  const field = { name: 'season', type, custom: true, source: ['dynamic', source] }
  return TYPES.map((one) =>
    one.name === 'order' ? { ...one, fields: [...one.fields, field] } : one,
  )
}

t.test('a custom field that is defined, moved, of another type, and gone', async (t) => {
  const season = {
    ...{ ...ORDERS, filter: "season == 'x'" },
    node: { fields: ['orderId', 'season', 'version'] },
  }
  const { all, client: plain } = await scene(t)
  const early = all.open(season, 'a')
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  t.match(told(early, { at: 0 }), [/^liveQueryError INVALID/])
  all.serve(withSeason('text', 'season'))
  const client = all.open(season, 'a')
  const by = all.open({ ...QUERY, orderBy: 'season desc' }, 'b')
  const [from, sorted] = [{ at: 0 }, { at: 0 }]
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  t.strictSame(told(client, from), ['liveQueryCreated A'])
  t.strictSame(told(by, sorted), ['liveQueryCreated B A'])

  all.commit(2, { state: 'y', rank: 2, line: true }, { season: 'x', other: 'x' })
  all.indexedAll()
  await all.clock.advance(LIMITS.feed.watchEveryMs)
  t.strictSame(told(client, from), ['liveQueryAdd B'], 'changes have the field, too')
  t.match(client.frames.at(-1), { node: { season: 'x' } })
  told(by, sorted)

  all.serve(withSeason('text', 'other'))
  await all.clock.advance(2 * LIMITS.feed.watchEveryMs)
  t.strictSame(told(client, from), ['liveQueryReset B'], 'it is taken from elsewhere')
  t.strictSame(told(by, sorted), ['liveQueryReset A B'])
  all.serve(withSeason('number', 'rank'))
  all.commit(1, { state: 'x', rank: 1, line: true }, { rank: 7 })
  all.commit(2, { state: 'y', rank: 2, line: true }, { rank: 10 })
  all.indexedAll()
  await all.clock.advance(2 * LIMITS.feed.watchEveryMs)
  t.match(told(client, from), [/^liveQueryError INVALID/], 'it is compared with a text')
  t.strictSame(told(by, sorted), ['liveQueryReset B A'], 'sorted as numbers')
  all.serve(TYPES)
  await all.clock.advance(2 * LIMITS.feed.watchEveryMs)
  t.match(told(by, sorted), [/^liveQueryError INVALID/])
  t.equal(plain.view.anew, 0)
  plain.take()
  t.equal(plain.view.anew, 1, 'who does not name it is left alone')
})
