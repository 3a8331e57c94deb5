// A subscription as its client keeps it: whatever changes, and however slowly the client reads, the
// changes that it is told make the list that is there. Source: CONTRACT 1.4.1, 1.10.

import fc from 'fast-check'
import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { GraphQl } from '../../graph/graphql/loader.ts'
import { SocketStation } from '../socket/socket-station.ts'
import { accessScene, socketsOf } from '../socket/testing/socket-scene.ts'
import { GraphQlStation } from './graphql-station.ts'
import { ListsTwin } from './testing/lists-twin.ts'

const LIMIT = 4
const QUERY = `subscription {
  things(filter: "colour == 'red'", orderBy: "name", limit: ${LIMIT}) {
    kind id index previousIndex
    node { ...Thing }
    nodes { ...Thing }
  }
}
fragment Thing on Thing { id: thingId name }`

interface Shown {
  readonly id: string
  readonly name: string
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

const idOf = (n: number): string => `00000000-0000-4000-8000-0000000000${n + 10}`

const event = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      id: fc.nat(9),
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      colour: fc.option(fc.constantFrom('red', 'red', 'blue')),
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
    const things = new Map<string, { readonly name: string; readonly colour: string }>()
    const reads = async (): Promise<void> => {
      socket.bufferedBytes = 0
      socket.handler.drained()
      await settled()
    }
    for (const one of events) {
      if (one === 'holds') socket.bufferedBytes = LIMITS.live.queryHoldBytes
      else if (one === 'reads') await reads()
      else {
        const { name, colour } = one
        const id = idOf(one.id)
        if (colour === null) things.delete(id)
        else things.set(id, { name, colour })
        lists.put(id, colour === null ? null : { name, colour })
      }
    }
    await reads()
    let list: Shown[] = []
    for (const { type, payload } of socket.sent.splice(1)) {
      if (type !== 'next') throw new Error(JSON.stringify(payload))
      list = made(list, (payload as { data: { things: Told } }).data.things)
    }
    socket.handler.closed()
    const right = Array.from(things, ([id, { name, colour }]) => ({ id, name, colour }))
      .filter(({ colour }) => colour === 'red')
      .toSorted((a, b) => (a.name + a.id < b.name + b.id ? -1 : 1))
      .slice(0, LIMIT)
      .map(({ id, name }) => ({ id, name }))
    return JSON.stringify(list) === JSON.stringify(right)
  })
  await fc.assert(property, { numRuns: 150 })
  t.pass('it does')
})
