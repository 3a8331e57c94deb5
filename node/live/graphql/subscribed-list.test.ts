// A subscription as its client keeps it: whatever changes, and however slowly the client reads, the
// changes that it is told make the list that is there. Source: CONTRACT 1.4.1, 1.10.

import fc from 'fast-check'
import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { GraphQl } from '../../graph/graphql/loader.ts'
import { SocketStation } from '../socket/socket-station.ts'
import { accessScene, socketsOf } from '../socket/testing/socket-scene.ts'
import { GraphQlStation } from './graphql-station.ts'
import { itemId } from '../queries/testing/live-stage.ts'
import { ListsTwin } from './testing/lists-twin.ts'

const LIMIT = 4
const QUERY = `subscription {
  items(filter: "rank == 1", orderBy: "state", limit: ${LIMIT}) {
    kind id index previousIndex
    node { ...Item }
    nodes { ...Item }
  }
}
fragment Item on Item { id: itemId state }`

interface Shown {
  readonly id: string
  readonly state: string
}

interface Told {
  readonly kind: 'created' | 'added' | 'updated' | 'removed' | 'reset'
  readonly id: string | null
  readonly index: number | null
  readonly previousIndex: number | null
  readonly node: Shown | null
  readonly nodes: readonly Shown[] | null
}

/** As CONTRACT tells clients to do it. */
function made(list: readonly Shown[], { kind, id, index, previousIndex, node, nodes }: Told) {
  if (nodes !== null) return [...nodes]
  const next = [...list]
  if (kind === 'removed' && next.splice(index!, 1)[0]?.id !== id) throw new Error('another went')
  if (kind === 'updated') next.splice(previousIndex!, 1)
  if (kind === 'updated' || kind === 'added') next.splice(index!, 0, node!)
  return next
}

const event = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      id: fc.nat(9),
      state: fc.constantFrom('a', 'b', 'c', 'd'),
      rank: fc.option(fc.constantFrom(1, 1, 2)),
    }),
  },
  { weight: 1, arbitrary: fc.constant('holds' as const) },
  { weight: 1, arbitrary: fc.constant('reads' as const) },
)

t.test('what is told makes the list that is there, however slowly it is read', async (t) => {
  const { clock, parts, newToken, grantOn } = accessScene(t)
  grantOn('graph', 'query', 'field')
  const sockets = new SocketStation({ ...parts, frames: [] })
  t.teardown(() => sockets.stop())
  const settled = async (): Promise<void> => {
    for (let i = 0; i < 4; i++) await new Promise((resolve) => void setImmediate(resolve))
  }
  const property = fc.asyncProperty(fc.array(event, { maxLength: 40 }), async (events) => {
    const lists = new ListsTwin()
    const graphql = new GraphQl(lists.graph(() => Promise.reject(new Error('no query'))))
    await graphql.service()
    const options = { graphql, lists: lists.options, sockets, clock, log: parts.log }
    const socket = socketsOf(new GraphQlStation(options), clock).open()
    const authorization = `Bearer ${newToken().token}`
    socket.says({ type: 'connection_init', payload: { authorization } })
    while (socket.sent.length === 0) await settled()
    socket.says({ type: 'subscribe', id: '1', payload: { query: QUERY } })
    while (socket.sent.length < 2) await settled()
    const items = new Map<string, { readonly state: string; readonly rank: number }>()
    const reads = async (): Promise<void> => {
      socket.bufferedBytes = 0
      socket.handler.drained()
      await settled()
    }
    for (const one of events) {
      if (one === 'holds') socket.bufferedBytes = LIMITS.live.queryHoldBytes
      else if (one === 'reads') await reads()
      else {
        const { id, state, rank } = one
        if (rank === null) items.delete(itemId(id))
        else items.set(itemId(id), { state, rank })
        lists.put(id, rank === null ? null : { state, rank })
      }
    }
    await reads()
    let list: Shown[] = []
    for (const { type, payload } of socket.sent.splice(1)) {
      if (type !== 'next') throw new Error(JSON.stringify(payload))
      list = made(list, (payload as { data: { items: Told } }).data.items)
    }
    socket.handler.closed()
    const right = Array.from(items, ([id, { state, rank }]) => ({ id, state, rank }))
      .filter(({ rank }) => rank === 1)
      .toSorted((a, b) => (a.state + a.id < b.state + b.id ? -1 : 1))
      .slice(0, LIMIT)
      .map(({ id, state }) => ({ id, state }))
    return JSON.stringify(list) === JSON.stringify(right)
  })
  await fc.assert(property, { numRuns: 150 })
  t.pass('it does')
})
