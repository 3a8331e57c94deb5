// A connection of `/graphql` on a socket that is none, by an injected clock: who it is, when it
// ends, and what a client that reads slowly is told. Source: CONTRACT 1.4.1, 1.10.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { type FakeSocket, LIFE_MS } from '../socket/testing/socket-scene.ts'
import { itemId } from '../queries/testing/live-stage.ts'
import {
  LIST,
  connectionScene as scene,
  settled,
  subscribe,
  until,
} from './testing/connection-scene.ts'

const [A, B, C] = [1, 2, 3] as const

const item = (state: string) => ({ state, rank: 1 })

/** What the one subscription was told since it was last asked. */
function told(socket: FakeSocket): unknown[] {
  return socket.sent.splice(0).map((frame) => {
    const { data } = (frame['payload'] ?? {}) as { data?: { items: unknown } }
    return data?.items ?? frame
  })
}

async function following(socket: FakeSocket): Promise<void> {
  subscribe(socket)
  await until('it stands', () => socket.last?.['type'] === 'next')
  await settled()
  socket.sent.length = 0
}

t.test('who says nothing is closed with 4408 after ten seconds, not before', async (t) => {
  const { open, pass } = scene(t)
  const socket = open()
  await pass(LIMITS.live.authMs - LIMITS.live.sweepMs)
  t.equal(socket.code, null)
  await pass(2 * LIMITS.live.sweepMs)
  t.strictSame([socket.code, socket.reason], [4408, 'Connection initialisation timeout'])
})

t.test('another subprotocol is closed with 4406', async (t) => {
  const { open } = scene(t)
  const socket = open('192.0.2.1', '')
  await until('it is closed', () => socket.code !== null)
  t.equal(socket.code, 4406)
})

t.test('a ping each 30 s, without a pong it ends; pings are answered', async (t) => {
  const { signIn, pass } = scene(t)
  const [alive, dead] = [await signIn(), await signIn()]
  const { pingMs, pongMs } = LIMITS.live
  await pass(pingMs)
  t.strictSame([alive.last, dead.last], [{ type: 'ping' }, { type: 'ping' }])
  alive.says({ type: 'pong' })
  alive.says({ type: 'ping', payload: { at: 1 } })
  await settled()
  t.strictSame(alive.last, { type: 'pong', payload: { at: 1 } })
  await pass(pongMs)
  t.strictSame([alive.code, dead.code], [null, 1013])
})

t.test('a token that expires or is revoked ends its connection with 4403', async (t) => {
  const { signIn, pass, system, newToken, lists } = scene(t)
  t.teardown(overrideLimits({ 'live.pingMs': 2 * LIFE_MS }))
  const { token, sessionId } = newToken()
  const [revoked, expires] = [await signIn(token), await signIn()]
  await following(revoked)
  await following(expires)
  t.equal(lists.standing, 2)
  system.put('revocation', sessionId, { at: '' })
  t.strictSame([revoked.code, expires.code], [4403, null])
  t.equal(lists.standing, 1, 'its list ends with it')
  await pass(LIFE_MS + 1_000)
  t.equal(expires.code, 4403)
  t.match(expires.reason, /expired/)
  t.equal(lists.standing, 0)
})

t.test('while nobody knows what was revoked nothing is told, then it ends with 1013', async (t) => {
  const { signIn, known, pass, lists } = scene(t)
  const socket = await signIn()
  await following(socket)
  Object.assign(known, { isKnown: false, ready: new Promise<boolean>(() => undefined) })
  lists.put(A, item('a'))
  await settled()
  t.strictSame(told(socket), [])
  await pass(LIMITS.live.unknowableMs + 2 * LIMITS.live.sweepMs)
  t.equal(socket.code, 1013)
})

t.test('a role that changes: another list, or none', async (t) => {
  const { signIn, grant, grantOn, clock, lists } = scene(t)
  lists.put(A, item('a'))
  lists.put(B, item('b'))
  const socket = await signIn()
  await following(socket)
  grantOn('graph/item', `query`, 'field', 'other')
  await clock.advance(0)
  await settled()
  t.strictSame(told(socket), [], 'what shows the same is not told again')
  grant([`graph/item/${itemId(B)}`, 'query'], ['graph/item', 'field'])
  await clock.advance(0)
  await settled()
  t.strictSame(told(socket), [
    { kind: 'reset', id: null, index: null, node: null, nodes: [{ state: 'b' }] },
  ])
  lists.put(A, item('a2'))
  lists.put(B, item('b2'))
  await settled()
  t.match(told(socket), [{ kind: 'updated', node: { state: 'b2' } }])
  grantOn(`graph/item/${itemId(B)}`, 'query')
  await clock.advance(0)
  await settled()
  const [error] = told(socket) as [{ type: string; payload: unknown }]
  t.match(error, { type: 'error', id: '1', payload: [{ extensions: { code: 'INVALID_QUERY' } }] })
  t.equal(lists.standing, 0)
  t.equal(socket.code, null, 'others on the connection go on')
})

t.test('a client that does not read is told the difference when it does', async (t) => {
  const { signIn, lists, pass } = scene(t)
  const socket = await signIn()
  await following(socket)
  socket.bufferedBytes = LIMITS.live.queryHoldBytes
  for (let i = 0; i < 50; i++) lists.put(A, item(`a${i}`))
  lists.put(B, item('b'))
  lists.put(C, item('c'))
  lists.put(B, null)
  await settled()
  t.strictSame(told(socket), [])
  socket.bufferedBytes = 0
  socket.handler.drained()
  await settled()
  t.match(told(socket), [
    { kind: 'added', index: 0, node: { state: 'a49' } },
    { kind: 'added', index: 1, node: { state: 'c' } },
  ])
  socket.bufferedBytes = LIMITS.live.queryHoldBytes
  for (let i = 0; i < 9; i++) lists.put(10 + i, item(`x${i}`))
  for (const id of [A, C]) lists.put(id, item('z'))
  // What was written and taken within one tick is not told by a drain.
  socket.bufferedBytes = 0
  await pass(LIMITS.live.sweepMs)
  lists.put(B, item('b'))
  await settled()
  const list = told(socket) as { kind: string; nodes: { name: string }[] | null }[]
  t.equal(list.length, 12)
})

t.test('complete ends a list, and nothing more of it is told; its id is free', async (t) => {
  const { signIn, lists } = scene(t)
  const socket = await signIn()
  await following(socket)
  socket.says({ type: 'complete', id: '1' })
  await settled()
  t.equal(lists.standing, 0)
  lists.put(A, item('a'))
  await settled()
  t.strictSame(told(socket), [])
  await following(socket)
  lists.put(B, item('b'))
  await settled()
  t.match(told(socket), [{ kind: 'added', index: 1 }])
  socket.handler.closed()
  t.equal(lists.standing, 0)
})

t.test('a list that ends while it is read leaves nothing', async (t) => {
  const { signIn, lists } = scene(t)
  const gate = Promise.withResolvers<void>()
  lists.gate = gate.promise
  const [one, two] = [await signIn(), await signIn()]
  for (const socket of [one, two]) subscribe(socket)
  await until('both stand', () => lists.standing === 2)
  one.says({ type: 'complete', id: '1' })
  await settled()
  two.handler.closed()
  gate.resolve()
  await settled()
  t.equal(lists.standing, 0)
  t.equal(one.sent.filter(({ type }) => type === 'next').length, 0)
})

t.test('an id that is used again at once is the other list', async (t) => {
  const { signIn, lists } = scene(t)
  const gate = Promise.withResolvers<void>()
  lists.gate = gate.promise
  const socket = await signIn()
  subscribe(socket)
  await settled()
  socket.says({ type: 'complete', id: '1' })
  await settled()
  subscribe(socket)
  await settled()
  gate.resolve()
  await settled()
  t.equal(lists.standing, 1)
  t.match(told(socket), [{ type: 'connection_ack' }, { kind: 'created' }])
  socket.says({ type: 'complete', id: '1' })
  await settled()
  t.equal(lists.standing, 0)
})

t.test('so many operations at once, ids of so many characters', async (t) => {
  const { signIn, lists } = scene(t)
  t.teardown(overrideLimits({ 'live.queriesMax': 2 }))
  const socket = await signIn()
  for (const id of ['1', '2', '3']) subscribe(socket, id)
  await until('one is refused', () => socket.sent.some(({ type }) => type === 'error'))
  t.match(
    socket.sent.filter(({ type }) => type === 'error'),
    [{ id: '3', payload: [{ extensions: { code: 'TOO_LARGE' } }] }],
  )
  t.equal(lists.standing, 2)
  socket.says({ type: 'complete', id: '1' })
  subscribe(socket, 'x'.repeat(LIMITS.live.queryIdCharsMax + 1))
  await settled()
  const refused = socket.sent.findLast(({ type }) => type === 'error')
  t.match(refused, { payload: [{ message: /an id has at most/ }] })
  subscribe(socket, '4')
  await settled()
  t.equal(lists.standing, 2)
})

t.test('subscriptions of one connection have so many characters', async (t) => {
  const { signIn, lists } = scene(t)
  const query = `${LIST} # ${'x'.repeat(500)}`
  t.teardown(overrideLimits({ 'live.subscribedCharsMax': query.length + LIST.length }))
  const socket = await signIn()
  subscribe(socket, '1', query)
  await settled()
  subscribe(socket, '2', query)
  await settled()
  t.match(socket.last, { id: '2', payload: [{ extensions: { code: 'TOO_LARGE' } }] })
  socket.says({ type: 'complete', id: '1' })
  await settled()
  subscribe(socket, '2', query)
  await settled()
  t.equal(lists.standing, 1)
})

t.test('queries: answers, refusals, and our own faults', async (t) => {
  const answers: (string | Error)[] = [
    '{"__e0":[{"state":"a"}]}',
    new RequestError('TOO_BUSY', 'too many', { path: '/0' }),
    new Error('a mistake of ours'),
  ]
  const { signIn, faults } = scene(t, () => {
    const answer = answers.shift()!
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve({ json: answer })
  })
  const socket = await signIn()
  const query = '{ items { state } }'
  subscribe(socket, 'q', query)
  await until('it is complete', () => socket.last?.['type'] === 'complete')
  t.strictSame(socket.sent.splice(0), [
    { type: 'connection_ack' },
    { id: 'q', type: 'next', payload: { data: { items: [{ state: 'a' }] } } },
    { id: 'q', type: 'complete' },
  ])
  subscribe(socket, 'q', query)
  await until('it is refused', () => socket.sent.length > 0)
  t.match(socket.last, {
    type: 'error',
    payload: [{ message: 'too many', path: ['items'], extensions: { code: 'TOO_BUSY' } }],
  })
  subscribe(socket, 'q', query)
  await until('it is closed', () => socket.code !== null)
  t.strictSame([socket.code, socket.reason], [4500, 'a fault of the node'])
  t.match(faults, [{ err: { message: 'a mistake of ours' } }])
})

t.test('messages that wait for their turn have a bound, of one and of a caller', async (t) => {
  const { signIn, open } = scene(t)
  const pong = { type: 'pong', payload: { text: 'x'.repeat(500) } }
  const sent = JSON.stringify(pong).length
  const [one, two, three] = [await signIn(), await signIn(), await signIn()]
  const says = (socket: FakeSocket, times: number): void => {
    for (let i = 0; i < times; i++) socket.says(pong)
  }
  const ofOne = overrideLimits({ 'live.messagesCharsMax': 3 * sent })
  says(one, 3)
  await settled()
  says(one, 3)
  says(two, 4)
  t.strictSame([one.code, two.code], [null, 1008])
  await settled()
  ofOne()
  t.teardown(overrideLimits({ 'live.messagesOfAllCharsMax': 6 * sent }))
  const stranger = open('192.0.2.2')
  says(one, 2)
  says(three, 2)
  says(stranger, 1)
  t.strictSame([one.code, three.code], [null, 1008], 'a caller has no more than is free')
  t.equal(stranger.code, null, 'and whoever comes next finds some')
  await settled()
  says(one, 3)
  t.equal(one.code, null, 'what a closed one had waits no more')
  await settled()
  says(one, 3)
  t.equal(one.code, null, 'nor what was taken')
})

t.test('a session has so many sockets, and one that is closed is none', async (t) => {
  const { signIn, open, newToken } = scene(t)
  t.teardown(overrideLimits({ 'live.socketsOfSessionMax': 1 }))
  const { token } = newToken()
  const first = await signIn(token)
  const second = open()
  second.says({ type: 'connection_init', payload: { authorization: `Bearer ${token}` } })
  await until('it is closed', () => second.code !== null)
  t.match([second.code, second.reason], [1013, /at most 1 sockets/])
  first.handler.closed()
  await signIn(token)
})

t.test('floods, large first messages, and a node that stops', async (t) => {
  const { signIn, open, sockets } = scene(t)
  const flood = await signIn()
  for (let i = 0; i <= LIMITS.live.framesAtOnceMax; i++) flood.says({ type: 'pong' })
  t.equal(flood.code, 1008)
  const large = open()
  large.says({ type: 'ping', payload: { x: 'x'.repeat(LIMITS.live.authFrameBytesMax) } })
  t.equal(large.code, 1009)
  const stays = await signIn()
  t.equal(sockets.admission.sockets, 1)
  t.equal(sockets.admission.strangers, 0)
  stays.handler.leaving()
  t.equal(stays.code, 1001)
  t.equal(sockets.admission.sockets, 0)
})
