// What a caller can make a node do over GraphQL's sockets: floods of subscriptions and of documents
// that are dear to check, large messages, lists that are never read. Source: CONTRACT 1.4.1, 1.10.

import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { onCluster } from '../harness/driver.ts'
import { startNode } from '../harness/node-process.ts'
import { create } from '../harness/orders.ts'
import { SocketClient } from '../harness/socket-client.ts'
import type { Crowd } from './bystander.ts'
import { entered, frame, leavesNoSocket, until } from './raw-sockets.ts'

if (process.platform !== 'linux' || onCluster) {
  t.plan(0, 'it reads what Linux says of a process, of a node by itself')
  process.exit(0)
}
const node = await startNode(t)
const authorization = `Bearer ${await node.token()}`
const ORDERS = 60
const newOrder = { id: 'new', messages: [create()] }
await node.bulk(Array.from({ length: ORDERS }, () => newOrder))
for (let i = 0; i < 300; i++) await node.send('/health/live')
const PATH = ['/graphql', 'graphql-transport-ws'] as const
const INIT = { type: 'connection_init', payload: { authorization } }
const ONE = 'subscription { orders(limit: 1) { kind } }'
const LIST =
  'subscription { orders(limit: 20) { kind node { orderNumber } nodes { orderNumber } } }'

const asks = (id: number | string, query: string) => ({
  type: 'subscribe',
  id: String(id),
  payload: { query },
})
const said = (message: object): Buffer => frame(JSON.stringify(message))

function leavesNothing(t: Test, attack: (crowd: Crowd) => Promise<unknown>): Promise<void> {
  return leavesNoSocket(t, node, async (crowd) => {
    await attack(crowd)
    crowd.leave()
    const none = async (): Promise<boolean> => (await node.metric('kontor_live_queries')) === 0
    await until(t, 'no list stands', none)
  })
}

async function known(): Promise<SocketClient> {
  const socket = new WebSocket(`ws://127.0.0.1:${node.port}/graphql`, 'graphql-transport-ws')
  const client = new SocketClient(socket)
  await new Promise((resolve) => socket.addEventListener('open', resolve))
  client.send(INIT)
  await client.frame('connection_ack')
  return client
}

// What the first of all takes is no attack's.
const first = await known()
for (let i = 0; i < 50; i++) first.send(asks(i, LIST))
for (let i = 0; i < 50; i++) await first.frame('next')
first.close()

t.test('a thousand subscriptions on one socket: so many stand, the others are told', async (t) => {
  const { queriesMax, framesAtOnceMax } = LIMITS.live
  await leavesNothing(t, async () => {
    const client = await known()
    const most = framesAtOnceMax - 2
    for (let i = 0; i < most; i++) client.send(asks(i, ONE))
    const answered = async (): Promise<boolean> => client.frames.length === most
    await until(t, 'each is answered', answered)
    const refused = client.frames.filter(({ type }) => type === 'error')
    t.equal(refused.length, most - queriesMax)
    t.match(refused[0], { payload: [{ extensions: { code: 'TOO_LARGE' } }] })
    t.equal(await node.metric('kontor_live_queries'), queriesMax)
    client.close()
    const flood = await known()
    for (let i = 0; i < 1_000; i++) flood.send(asks(i, LIST))
    t.equal((await flood.ended()).code, 1008)
  })
})

const aliases = Array.from({ length: 90 }, (_, i) => `a${i}: node { o${i}: orderNumber }`).join(' ')
const DEAR = [
  `subscription { orders { kind ${aliases} } }`,
  `{ ${Array.from({ length: 2_500 }, (_, i) => `a${i}: __typename`).join(' ')} }`,
  `{ orders { ...A } } fragment A on Order { ...B } fragment B on Order { ...A }`,
  `{${'orders{deliveries{order'.repeat(100)}`,
  `subscription { orders { ${'node { orderNumber } '.repeat(900)} } }`,
  `{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }`,
]

/** Valid, and each field of a name is compared with each other one: tens of milliseconds. */
const NAMES =
  'orderId orderNumber customerNumber orderState createdAt orderTotal locale taxIncluded'
const DEAREST = NAMES.split(' ').map((name) => `${name} `.repeat(60))

t.test('documents that are dear to check, on many sockets', async (t) => {
  await leavesNothing(t, async (crowd) => {
    const dearest = Array.from({ length: 20 }, (_, i) =>
      said(asks(`d${i}`, `subscription { orders { node { ${DEAREST.join('')} } } } # ${i}`)),
    )
    const dear = await entered(crowd, PATH, said(INIT))
    await new Promise((resolve) => void dear.once('data', resolve))
    dear.write(Buffer.concat(dearest))
    const client = await known()
    for (const [i, query] of DEAR.entries()) client.send(asks(i, query))
    const ends = async (): Promise<boolean> => client.frames.length === DEAR.length
    await until(t, 'each is answered', ends)
    for (const { type, id } of client.frames) {
      t.equal(type, ['0', '4'].includes(String(id)) ? type : 'error', String(id))
    }
    const many = Buffer.concat(
      Array.from({ length: 180 }, (_, i) => said(asks(`${i}`, `${DEAR[i % DEAR.length]} # ${i}`))),
    )
    for (let i = 0; i < 10; i++) {
      const socket = await entered(crowd, PATH, said(INIT))
      await new Promise((resolve) => void socket.once('data', resolve))
      socket.write(many)
    }
    await crowd.settled()
    const after = await known()
    after.send(asks('1', '{ __typename }'))
    await after.frame('next')
    for (const one of [client, after]) one.close()
  })
})

t.test('a message of 1 MB, half of one, and many of 60 KB', async (t) => {
  const large = said(asks('1', `{ orders { ${'orderNumber '.repeat(90_000)} } }`))
  const fits = said(asks('1', `{ orders { ${'orderNumber '.repeat(5_000)} } }`))
  await leavesNothing(t, async (crowd) => {
    for (let i = 0; i < 50; i++) {
      await entered(crowd, PATH, said(INIT), large)
      await entered(crowd, PATH, said(INIT), large.subarray(0, 60_000))
      await entered(crowd, PATH, large)
    }
    for (let i = 0; i < 10; i++) {
      const socket = await entered(crowd, PATH, said(INIT))
      await new Promise((resolve) => void socket.once('data', resolve))
      for (let n = 0; n < 20; n++) socket.write(fits)
    }
    await crowd.settled()
  })
  const client = await known()
  client.send(asks('1', 'x'.repeat(LIMITS.live.frameBytesMax)))
  t.equal((await client.ended()).code, 1009)
})

t.test('lists that are never read while all of them change', async (t) => {
  await leavesNothing(t, async (crowd) => {
    const lists = Buffer.concat(Array.from({ length: 15 }, (_, i) => said(asks(i, LIST))))
    for (let i = 0; i < 40; i++) {
      const socket = await entered(crowd, PATH, said(INIT))
      await new Promise((resolve) => void socket.once('data', resolve))
      socket.write(lists)
      socket.pause()
    }
    const all = async (): Promise<boolean> => (await node.metric('kontor_live_queries')) === 600
    await until(t, 'all stand', all)
    for (let i = 0; i < 30; i++) await node.order('new', [create()])
    const reader = await known()
    reader.send(asks('1', LIST))
    await reader.frame('next')
    reader.close()
  })
})
