// Subscriptions of one connection as its caller's permissions change, and as its client falls
// behind. Source: CONTRACT 1.10.

import t from 'tap'
import { TestClock } from '../../../cluster/testing/harness.ts'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { Acl, parseScope } from '../../../protocol/ace.ts'
import { Metrics } from '../../metrics.ts'
import type { Identity } from '../../access/identity.ts'
import { SOMEBODY } from '../../access/testing/sessions.ts'
import { ActorSystemTwin } from '../../testing/actor-system-twin.ts'
import type { Connection } from '../socket/frames.ts'
import { eventFrames } from './event-frames.ts'
import { EventStream } from './event-stream.ts'

function scene() {
  const clock = new TestClock()
  const { system } = new ActorSystemTwin([])
  const stream = new EventStream({
    ...{ system, clock, behaviours: new Map() },
    watch: { add() {}, want: async () => undefined },
  })
  const frames = eventFrames({ stream, behaviours: new Map(), metrics: new Metrics() })
  const sent: Record<string, unknown>[] = []
  const state = { identity: null as Identity | null, bufferedBytes: 0 }
  const [changed, closed]: [(() => void)[], (() => void)[]] = [[], []]
  const may = (scope: string): void => {
    const scopes = parseScope(scope)
    state.identity = { ...SOMEBODY, acl: new Acl(scopes.ok ? scopes.aces : []) }
    for (const run of changed) run()
  }
  const sendText = (text: string): boolean => sent.push(JSON.parse(text)) > 0
  const connection: Connection = {
    id: 1,
    access: {
      get identity() {
        return state.identity
      },
      onChange: (run) => void changed.push(run),
    },
    get bufferedBytes() {
      return state.bufferedBytes
    },
    sendText,
    send: (frame) => sendText(JSON.stringify(frame)),
    sendError: (_, about) => void sendText(JSON.stringify({ type: 'error', ...about })),
    onClose: (run) => void closed.push(run),
    onDrained() {},
  }
  const says = async (type: string, members: object): Promise<void> => {
    const row = frames.find((one) => one.type === type)!
    const handled = row.handle(connection, { type, ...members } as never)
    await Promise.all([handled, clock.advance(LIMITS.feed.watchGatherMs)])
  }
  const happens = (key: string): void => {
    const path = `registry/${key}`
    stream.publish({ path, root: 'registry', eventType: 'changed', data: {}, timestamp: '' })
  }
  return { stream, sent, state, closed, may, says, happens }
}

const at = (id: string, path: string) => ({ id, path, events: ['changed'] })

t.test(
  'a subscription that loses its permission ends and is named, the others go on',
  async (t) => {
    const { stream, sent, closed, may, says, happens } = scene()
    may('registry/a:read registry/b:read')
    await says('subscribeEvents', { subscriptions: [at('x', 'registry/a'), at('y', 'registry/b')] })
    t.match(sent.shift(), { type: 'subscribedEvents' })
    may('registry/b:read')
    t.strictSame(sent.shift(), { type: 'error', ids: ['x'] })
    happens('a')
    happens('b')
    t.match(sent.shift(), { type: 'event', subscriptionIds: ['y'], path: 'registry/b' })
    t.strictSame(sent, [])
    for (const run of closed) run()
    t.equal(stream.size, 0, 'nothing is left of a connection that is closed')
  },
)

t.test('nothing is shown while nobody knows who it is, or to who is far behind', async (t) => {
  const { sent, state, may, says, happens } = scene()
  may('registry:read')
  await says('subscribeEvents', { subscriptions: [at('x', 'registry')] })
  sent.length = 0
  const { identity } = state
  state.identity = null
  happens('a')
  state.identity = identity
  state.bufferedBytes = LIMITS.live.socketBufferBytesMax / 2 + 1
  happens('b')
  state.bufferedBytes = 0
  happens('c')
  t.strictSame(
    sent.map(({ path }) => path),
    ['registry/c'],
  )
})

t.test('a connection has so many of a path, and a caller no more than is free', async (t) => {
  const { sent, may, says, happens } = scene()
  may('registry:read')
  const { subscriptionsOfPathMax } = LIMITS.live
  const many = Array.from({ length: subscriptionsOfPathMax }, (_, i) => at(`s${i}`, 'registry/a'))
  await says('subscribeEvents', { subscriptions: many })
  await t.rejects(says('subscribeEvents', { subscriptions: [at('more', 'registry/a')] }), {
    errors: [{ code: 'TOO_LARGE', message: /at most 16 subscriptions of a path/ }],
  })
  await says('unsubscribeEvents', { ids: ['s0'] })
  await says('subscribeEvents', { subscriptions: [at('more', 'registry/a')] })
  sent.length = 0
  happens('a')
  t.equal((sent[0]!['subscriptionIds'] as string[]).length, subscriptionsOfPathMax)
  t.teardown(overrideLimits({ 'live.subscriptionsCharsMax': 17_000 }))
  const long = (i: number) => at(`l${i}`, `registry/${'x'.repeat(500)}/${i}`)
  await says('subscribeEvents', { subscriptions: [long(1)] })
  const refused = { code: 'TOO_BUSY', message: /no more than there is room for/ }
  await t.rejects(says('subscribeEvents', { subscriptions: [2, 3].map(long) }), {
    errors: [refused],
  })
  await says('unsubscribeEvents', { ids: many.map(({ id }) => id) })
  await says('subscribeEvents', { subscriptions: [2, 3].map(long) })
  t.match(sent.at(-1), { type: 'subscribedEvents' })
})
