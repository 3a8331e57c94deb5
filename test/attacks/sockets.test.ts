// What strangers and callers can make a node do over `/ws`: sockets that say nothing, that never
// read, that flood. Source: CONTRACT 1.10.

import t from 'tap'
import type { Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { onCluster } from '../harness/driver.ts'
import { startNode } from '../harness/node-process.ts'
import { create } from '../harness/orders.ts'
import { signIn } from '../harness/socket-client.ts'
import type { Crowd } from './bystander.ts'
import { entered, frame, leavesNoSocket, until, upgradeOf } from './raw-sockets.ts'

const MiB = 1024 * 1024

if (process.platform !== 'linux' || onCluster) {
  t.plan(0, 'it reads what Linux says of a process, of a node by itself')
  process.exit(0)
}
const node = await startNode(t)
const token = await node.token()
await node.order('new', [create()])
for (let i = 0; i < 300; i++) await node.send('/health/live')

const AUTH = frame(JSON.stringify({ type: 'auth', token }))

const leavesNothing = (t: Test, attack: (crowd: Crowd) => Promise<unknown>): Promise<void> =>
  leavesNoSocket(t, node, attack)

t.test('a thousand sockets that never say who they are', async (t) => {
  await leavesNothing(t, async (crowd) => {
    for (let i = 0; i < 1_000; i++) crowd.send(upgradeOf('/ws'))
    await crowd.settled()
    // An address has no more than are free.
    const most = LIMITS.live.strangersMax / 2
    await until(
      t,
      'as many as may are in',
      async () => (await node.metric('kontor_sockets')) === most,
    )
    t.equal(await node.metric('kontor_socket_strangers'), most)
  })
  const after = await signIn(node)
  after.close()
})

t.test('a thousand sockets of one caller, of which most never read', async (t) => {
  const subscribe = JSON.stringify({
    type: 'subscribeEvents',
    subscriptions: [
      { id: 's'.repeat(100), path: 'actors/order', events: ['created', 'checkpoint'] },
    ],
  })
  await leavesNothing(t, async (crowd) => {
    for (let i = 0; i < 10; i++) {
      const some = Array.from({ length: 100 }, () => entered(crowd, '/ws', AUTH, frame(subscribe)))
      for (const socket of await Promise.all(some)) socket.pause()
    }
    await until(t, 'all are in', async () => (await node.metric('kontor_sockets')) === 1_000)
    for (let i = 0; i < 50; i++) {
      const { status } = await node.order('new', [create()])
      t.equal(status, 200)
    }
  })
})

t.test('live queries of clients that never read, while orders change', async (t) => {
  const query = { edge: 'orders', limit: 500, node: { fields: ['orderId', 'orderNumber'] } }
  const created = await Promise.all(Array.from({ length: 40 }, () => node.order('new', [create()])))
  const asked = Array.from({ length: LIMITS.live.queriesMax }, (_, i) =>
    frame(JSON.stringify({ type: 'createLiveQuery', liveQueryId: `q${i}`, query })),
  )
  const reader = await signIn(node)
  reader.send({ type: 'createLiveQuery', liveQueryId: 'q', query })
  await reader.frame('liveQueryCreated')
  await leavesNothing(t, async (crowd) => {
    const some = Array.from({ length: 10 }, () => entered(crowd, '/ws', AUTH, ...asked))
    for (const socket of await Promise.all(some)) socket.pause()
    await until(t, 'all stand', async () => (await node.metric('kontor_live_queries')) > 900)
    for (let i = 0; i < 100; i++) {
      const id = created[i % created.length]!.json<{ paths: string[] }>()
        .paths[0]!.split('/')
        .at(-1)!
      const commands = [{ type: 'setOrderNumber', value: `SLOW-${i}` }]
      await node.order(id, [{ type: 'applyCommands', body: { commands } }])
    }
    await reader.frame('liveQueryUpdate', ({ node: shown }) => {
      return (shown as { orderNumber: string }).orderNumber === 'SLOW-99'
    })
    t.ok((await node.metric('kontor_socket_buffers_bytes')) <= LIMITS.live.socketBuffersBytesMax)
    reader.close()
  })
  const isOver = async (): Promise<boolean> => (await node.metric('kontor_live_queries')) === 0
  await until(t, 'none stands any more', isOver)
})

t.test('frames that are huge, half, empty or many', async (t) => {
  const half = frame('x'.repeat(100_000), 10 * MiB)
  await leavesNothing(t, async (crowd) => {
    for (let i = 0; i < 100; i++) {
      await entered(crowd, '/ws', half)
      await entered(crowd, '/ws', AUTH, half)
      await entered(crowd, '/ws', AUTH, frame('{"type":"pong"}'.padEnd(60_000)))
    }
    const ping = frame('{"type":"ping"}')
    const pings = Buffer.concat(Array.from({ length: 20_000 }, () => ping))
    for (let i = 0; i < 10; i++) (await entered(crowd, '/ws', AUTH, pings)).pause()
    await crowd.settled()
  })
  t.ok(node.isUp)
})
