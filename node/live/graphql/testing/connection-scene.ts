// The stage of tests of `/graphql` over a socket: connections on sockets that are none, by an
// injected clock, over lists in memory.

import type { Test } from 'tap'
import { GraphQl } from '../../../graph/graphql/loader.ts'
import { ITEM } from '../../queries/testing/live-stage.ts'
import { SocketStation } from '../../socket/socket-station.ts'
import { type FakeSocket, accessScene, socketsOf } from '../../socket/testing/socket-scene.ts'
import { GraphQlStation } from '../graphql-station.ts'
import { ListsTwin } from './lists-twin.ts'

type Answer = () => Promise<{ json: string }>

const ALL = ['query', 'field']

export function connectionScene(
  t: Test,
  answer: Answer = () => Promise.resolve({ json: '{"__e0":[]}' }),
  type = ITEM,
) {
  const access = accessScene(t)
  const { clock, parts, newToken, grantOn } = access
  grantOn('graph/item', ...ALL)
  const sockets = new SocketStation({ ...parts, frames: [] })
  t.teardown(() => sockets.stop())
  const lists = new ListsTwin(type)
  const faults: unknown[] = []
  const log = { ...parts.log, error: (about: object) => void faults.push(about) }
  const graphql = new GraphQl(lists.graph(() => answer()))
  const station = new GraphQlStation({ graphql, lists: lists.options, sockets, clock, log })
  const { open, pass } = socketsOf(station, clock, sockets)
  const signIn = async (token = newToken().token): Promise<FakeSocket> => {
    const socket = open()
    socket.says({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } })
    await until('it is let in', () => socket.sent.length > 0 || socket.code !== null)
    t.strictSame(socket.last, { type: 'connection_ack' })
    return socket
  }
  return { ...access, lists, faults, station, sockets, pass, open, signIn }
}

export async function until(what: string, holds: () => boolean): Promise<void> {
  const end = performance.now() + 10_000
  while (!holds()) {
    if (performance.now() > end) throw new Error(`not in time: ${what}`)
    await new Promise((resolve) => void setImmediate(resolve))
  }
}

/** Whatever was on its way has been done. */
export async function settled(): Promise<void> {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => void setImmediate(resolve))
}

export const LIST =
  'subscription { items(orderBy: "state") { kind id index node { state } nodes { state } } }'

export function subscribe(socket: FakeSocket, id = '1', query = LIST): void {
  socket.says({ type: 'subscribe', id, payload: { query } })
}
