// A connection of `/ws` on a socket that is none, by an injected clock: who it is, what it may,
// when it ends. Source: CONTRACT 1.10.

import t from 'tap'
import { Type } from '@sinclair/typebox'
import type { Test } from 'tap'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { frameType } from './frames.ts'
import type { Connection, FrameType } from './frames.ts'
import { SocketStation } from './socket-station.ts'
import { type FakeSocket, LIFE_MS, accessScene, socketsOf } from './testing/socket-scene.ts'

function scene(t: Test, frames: readonly FrameType[] = []) {
  const access = accessScene(t)
  const { clock, parts, newToken, grantOn } = access
  const station = new SocketStation({ ...parts, frames })
  t.teardown(() => station.stop())
  const { open, pass } = socketsOf(station, clock)
  const grant = (...permissions: string[]): void => grantOn('registry', ...permissions)
  const signIn = async (token = newToken().token): Promise<FakeSocket> => {
    const socket = open()
    socket.says({ type: 'auth', token })
    await clock.advance(0)
    t.strictSame(socket.last, { type: 'authenticated' })
    return socket
  }
  return { ...access, grant, station, pass, open, signIn }
}

t.test('who says nothing is closed after ten seconds, not before', async (t) => {
  const { open, pass } = scene(t)
  const socket = open()
  await pass(LIMITS.live.authMs - LIMITS.live.sweepMs)
  t.equal(socket.code, null)
  await pass(2 * LIMITS.live.sweepMs)
  t.match(socket.last, { type: 'error', code: 'AUTH_FAILED' })
  t.equal(socket.code, 4401)
})

t.test('tokens are looked up for who sends them', async (t) => {
  const { open, grant, clock, newToken, askedFrom } = scene(t)
  const socket = open('198.51.100.7')
  socket.says({ type: 'auth', token: newToken().token })
  await clock.advance(0)
  grant('read')
  await clock.advance(0)
  t.strictSame(askedFrom, ['198.51.100.7', '198.51.100.7'], 'and again when a role changes')
})

t.test('a ping each 30 s; without a pong within 30 s it ends', async (t) => {
  const { signIn, pass } = scene(t)
  const [alive, dead] = [await signIn(), await signIn()]
  const { pingMs, pongMs } = LIMITS.live
  await pass(pingMs)
  t.strictSame([alive.last, dead.last], [{ type: 'ping' }, { type: 'ping' }])
  alive.says({ type: 'pong' })
  await pass(pongMs)
  t.equal(dead.code, 4408)
  t.equal(alive.code, null)
  t.equal(alive.sent.filter(({ type }) => type === 'ping').length, 2)
})

t.test('a token that expires ends its connection within a second', async (t) => {
  const { signIn, pass } = scene(t)
  const restore = overrideLimits({ 'live.pingMs': 2 * LIFE_MS })
  t.teardown(restore)
  const socket = await signIn()
  await pass(LIFE_MS - 500)
  t.equal(socket.code, null)
  await pass(1_000)
  t.match(socket.last, { type: 'error', code: 'AUTH_FAILED', message: /expired/ })
  t.equal(socket.code, 4401)
})

t.test('a token that is revoked, and a client that is suspended', async (t) => {
  const { system, client, newToken, signIn, clock, pass } = scene(t)
  const { token, sessionId } = newToken()
  const [mine, other] = [await signIn(token), await signIn()]
  system.put('revocation', sessionId, { at: '' })
  t.match(mine.last, { type: 'error', code: 'AUTH_FAILED' })
  t.strictSame([mine.code, other.code], [4401, null])
  system.put('client', 'web', { ...client, suspendedAt: new Date(0).toISOString() })
  await clock.advance(0)
  await pass(LIMITS.live.sweepMs)
  t.equal(other.code, 4401)
})

t.test('a role that changes takes effect at once, and is told', async (t) => {
  const seen: { connection: Connection | null; changes: number } = { connection: null, changes: 0 }
  const look = frameType('look', { at: Type.Optional(Type.String()) }, (connection) => {
    seen.connection = connection
    connection.access.onChange(() => seen.changes++)
  })
  const { signIn, grant, clock } = scene(t, [look])
  const socket = await signIn()
  socket.says({ type: 'look' })
  const may = (permission: string): boolean =>
    seen.connection!.access.identity!.acl.covers('registry', permission)
  t.strictSame([may('read'), may('write')], [true, false])
  grant('write')
  t.strictSame([may('read'), may('write')], [false, true], 'before anybody was told')
  await clock.advance(0)
  t.equal(seen.changes, 1)
  t.equal(socket.code, null)
})

t.test('a role that changes nothing for a caller tells it nothing, however often', async (t) => {
  const seen = { changes: 0, who: [] as string[] }
  const look = frameType('look', { name: Type.String() }, (connection, { name }) => {
    connection.access.onChange(() => {
      seen.changes++
      seen.who.push(name)
    })
  })
  const { signIn, system, clock, grantOn } = scene(t, [look])
  const sockets = [await signIn(), await signIn()]
  for (const [i, socket] of sockets.entries()) socket.says({ type: 'look', name: `${i}` })
  system.put('role', 'other', { description: '', acl: { entries: [] } })
  await clock.advance(0)
  t.equal(seen.changes, 0)
  // Each turn looks at one: changes that come as fast leave nobody out.
  t.teardown(overrideLimits({ 'live.recheckTurnMs': 0 }))
  for (let i = 0; i < 4; i++) {
    grantOn(`registry/k${i}`, 'read')
    await new Promise((resolve) => void setImmediate(resolve))
  }
  t.strictSame(seen.who.slice(0, 4), ['0', '1', '0', '1'])
})

t.test(
  'while nobody knows what was revoked nothing may be shown; in the end it closes',
  async (t) => {
    const seen: Connection[] = []
    const look = frameType('look', {}, (connection) => void seen.push(connection))
    const { signIn, known, pass } = scene(t, [look])
    const socket = await signIn()
    socket.says({ type: 'look' })
    known.isKnown = false
    known.ready = false
    t.equal(seen[0]!.access.identity, null)
    await pass(LIMITS.live.unknowableMs / 2)
    known.isKnown = true
    known.ready = true
    await pass(LIMITS.live.sweepMs)
    t.equal(seen[0]!.access.identity?.id, 'web', 'it stands after all')
    known.isKnown = false
    known.ready = false
    await pass(LIMITS.live.unknowableMs + 1_000)
    t.equal(socket.code, 1013)
  },
)

t.test('a token that can not be checked now is not refused', async (t) => {
  const { open, newToken, known, clock } = scene(t)
  known.ready = false
  const socket = open()
  socket.says({ type: 'auth', token: newToken().token, requestId: 'r' })
  await clock.advance(0)
  t.match(socket.last, { type: 'error', requestId: 'r', code: 'UNAVAILABLE' })
  t.equal(socket.code, 1013)
})

t.test('a connection that is closed while its token is looked up is nobody', async (t) => {
  const { open, newToken, known, clock, station } = scene(t)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  known.ready = promise
  const socket = open()
  socket.says({ type: 'auth', token: newToken().token })
  for (let i = 0; i <= LIMITS.live.framesWaitingMax; i++) socket.says({ type: 'ping' })
  t.equal(socket.code, 1008, 'more frames than may wait')
  resolve(true)
  await clock.advance(0)
  t.notMatch(socket.last, { type: 'authenticated' })
  t.equal(station.admit('192.0.2.1'), null)
})

t.test('frames that wait for tokens have a room, of which no address has all', async (t) => {
  const { open, newToken, known, clock } = scene(t)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  known.ready = promise
  const ping = { type: 'ping', requestId: 'x'.repeat(80) }
  const chars = JSON.stringify(ping).length
  t.teardown(overrideLimits({ 'live.framesWaitingCharsMax': 6 * chars }))
  const [first, second, other] = [open(), open(), open('192.0.2.2')]
  for (const one of [first, second, other]) one.says({ type: 'auth', token: newToken().token })
  for (let i = 0; i < 3; i++) first.says(ping)
  second.says(ping)
  other.says(ping)
  t.strictSame([first.code, second.code, other.code], [null, 1008, null])
  resolve(true)
  await clock.advance(0)
  const pongs = ({ sent }: FakeSocket): number => sent.filter(({ type }) => type === 'pong').length
  t.strictSame([pongs(first), pongs(other)], [3, 1])
  known.ready = new Promise(() => undefined)
  const third = open()
  third.says({ type: 'auth', token: newToken().token })
  for (let i = 0; i < 3; i++) third.says(ping)
  t.equal(third.code, null, 'what was taken waits no more')
})

t.test('sockets are counted by address and as strangers; who goes makes room', async (t) => {
  const { open, signIn, station } = scene(t)
  const restore = overrideLimits({ 'live.socketsMax': 6, 'live.strangersMax': 4 })
  t.teardown(restore)
  const refused = (address: string): string | null => station.admit(address)?.message ?? null
  const [one] = [open(), open()]
  t.match(refused('192.0.2.1'), /not said who they are/)
  t.equal(refused('192.0.2.2'), null)
  one.handler.closed()
  one.handler.closed()
  t.equal(refused('192.0.2.1'), null, 'closed once, however often it is told')
  const known = await signIn()
  await signIn()
  t.match(refused('192.0.2.1'), /of one address/)
  t.equal(refused('192.0.2.9'), null, 'who has all that one may keeps nobody else out')
  open('2001:db8::1')
  t.match(refused('2001:db8::3'), /of one address/, 'a /64 is one address')
  known.handler.closed()
  t.match(refused('2001:db8::3'), /not said who they are/)
})

t.test('a session has so many sockets, and one more has no effect', async (t) => {
  const { newToken, signIn, open, clock } = scene(t)
  const restore = overrideLimits({ 'live.socketsOfSessionMax': 2 })
  t.teardown(restore)
  const { token } = newToken()
  const [first] = [await signIn(token), await signIn(token)]
  const third = open()
  third.says({ type: 'auth', token })
  await clock.advance(0)
  t.match(third.last, { code: 'TOO_BUSY' })
  t.equal(third.code, 1013)
  first.handler.closed()
  await signIn(token)
})

t.test('what a handler throws is answered, ours without its words', async (t) => {
  const fail = (error: Error) => (): never => {
    throw error
  }
  const refused = new RequestError('NOT_FOUND', 'there is none', { what: 1 })
  const { signIn, clock } = scene(t, [
    frameType('refuse', {}, fail(refused)),
    frameType('break', {}, fail(new Error('a secret'))),
    frameType('later', {}, async () => fail(refused)()),
  ])
  const socket = await signIn()
  const error = { type: 'error', requestId: 'q' }
  socket.says({ type: 'refuse', requestId: 'q' })
  const details = { what: 1 }
  t.strictSame(socket.last, { ...error, code: 'NOT_FOUND', message: 'there is none', details })
  socket.says({ type: 'break', requestId: 'q' })
  t.match(socket.last, { ...error, code: 'INTERNAL_ERROR' })
  t.notMatch(JSON.stringify(socket.last), /secret/)
  socket.says({ type: 'later', requestId: 'q' })
  await clock.advance(0)
  t.match(socket.last, { ...error, code: 'NOT_FOUND' })
  socket.says({ type: 'refuse', requestId: 'q', more: 1 })
  t.match(socket.last, { ...error, code: 'MALFORMED_REQUEST', message: /more is not known/ })
  socket.says({ type: 'refuse', requestId: 7 })
  t.match(socket.last, { type: 'error', code: 'MALFORMED_REQUEST', message: /requestId/ })
})

t.test('frames come at a rate: so many at once, then so many a second', async (t) => {
  const { signIn, pass } = scene(t)
  const { framesAtOnceMax, framesPerSecondMax } = LIMITS.live
  const socket = await signIn()
  // The first was its token.
  for (let i = 1; i < framesAtOnceMax; i++) socket.says({ type: 'pong' })
  t.equal(socket.code, null)
  await pass(1_000)
  for (let i = 0; i < framesPerSecondMax; i++) socket.says({ type: 'pong' })
  t.equal(socket.code, null)
  socket.says({ type: 'pong' })
  t.equal(socket.code, 1008)
})
