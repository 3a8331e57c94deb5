// Events over `/ws`: topics, names, who may see them, and what ends. Source: CONTRACT 1.10,
// specification "Events".

import t from 'tap'
import { startNode } from '../harness/node-process.ts'
import { create } from '../harness/orders.ts'
import { signIn } from '../harness/socket-client.ts'
import type { SocketClient } from '../harness/socket-client.ts'

const node = await startNode(t)
const ACTOR_EVENTS = ['created', 'checkpoint', 'deleted']

interface Subscription {
  readonly id: string
  readonly path: string
  readonly events: readonly string[]
}

function sub(id: string, path: string, events: readonly string[] = ACTOR_EVENTS): Subscription {
  return { id, path, events }
}

async function watching(subscriptions: readonly Subscription[], token?: string) {
  const client = await signIn(node, token)
  client.send({ type: 'subscribeEvents', requestId: 's', subscriptions })
  const answer = await client.frame('subscribedEvents')
  t.strictSame(answer['subscriptions'], subscriptions)
  t.equal(answer['requestId'], 's')
  return client
}

/** All events up to one of the registry that is written now: what was not told is not told. */
async function toldSoFar(client: SocketClient): Promise<readonly string[]> {
  const key = `marks/${Math.random()}`
  const written = await node.ask(`/resources/registry/${key}`, { body: 1 })
  if (written.status !== 200) throw new Error(written.text)
  await client.frame('event', ({ path }) => path === `registry/${key}`)
  return client.frames
    .splice(0)
    .map((frame) => `${String(frame['eventType'])} ${String(frame['path'])}`)
}

async function newOrder(): Promise<{ readonly id: string; readonly path: string }> {
  const answer = await node.order('new', [create()])
  if (answer.status !== 200) throw new Error(answer.text)
  const id = answer.json<{ paths: string[] }>().paths[0]!.split('/').at(-1)!
  return { id, path: `actors/order/${id}` }
}

t.test('an order that is made, changed and deleted', async (t) => {
  const client = await watching([sub('all', 'actors/order'), sub('news', 'actors', ['created'])])
  const { id, path } = await newOrder()
  const created = await client.frame('event', (frame) => frame['path'] === path)
  t.match(created, { eventType: 'created', data: { actor: { type: 'order', id } } })
  t.strictSame([...(created['subscriptionIds'] as string[])].sort(), ['all', 'news'])
  const checkpoint = await client.frame('event', (frame) => frame['path'] === path)
  t.match(checkpoint, {
    subscriptionIds: ['all'],
    eventType: 'checkpoint',
    timestamp: /^\d{4}-.*Z$/,
    data: {
      path: `/resources/actors/order/${id}`,
      actorType: 'order',
      actorId: id,
      messages: ['create'],
      actor: { type: 'order', id },
    },
  })
  const asked = await node.order(id, [{ type: 'getCheckpoints', body: {} }])
  const [known] = asked.json<{ data: { checkpointId: string; timestamp: string }[] }>().data
  const { checkpointId, timestamp } = checkpoint['data'] as Record<string, string>
  t.match(
    { checkpointId, timestamp },
    { checkpointId: known!.checkpointId, timestamp: known!.timestamp },
  )
  await node.order(id, [{ type: 'delete', body: {} }])
  t.match(await client.frame('event'), { eventType: 'checkpoint', data: { messages: ['delete'] } })
  t.match(await client.frame('event'), { eventType: 'deleted', path })
  client.close()
})

t.test('one order, and no other; what changed nothing is no event', async (t) => {
  const [one, other] = [await newOrder(), await newOrder()]
  const client = await watching([
    sub('one', `/${one.path}`.slice(1), ['checkpoint']),
    sub('marks', 'registry/marks', ['changed']),
  ])
  const text = { type: 'setPurchaseOrderNumber', value: '1' }
  await node.order(other.id, [{ type: 'executeCommands', body: { commands: [text] } }])
  await node.order(one.id, [{ type: 'nothing', body: {} }])
  await node.order(one.id, [{ type: 'getCheckpoints', body: {} }])
  await node.order(one.id, [{ type: 'delete', body: {} }])
  t.match(await client.frame('event'), { path: one.path, data: { messages: ['delete'] } })
  t.strictSame(await toldSoFar(client), [])
  client.send({ type: 'unsubscribeEvents', requestId: 'u', ids: ['one', 'never'] })
  const ids = ['one', 'never']
  t.strictSame(await client.frame('unsubscribedEvents'), {
    type: 'unsubscribedEvents',
    requestId: 'u',
    ids,
  })
  client.close()
})

t.test('the registry: a key, and all below a path', async (t) => {
  const client = await watching([
    sub('below', 'registry/shop', ['changed', 'deleted']),
    sub('marks', 'registry/marks', ['changed']),
  ])
  for (const key of ['shop', 'shop/a', 'shopping', 'shop/a/b']) {
    await node.ask(`/resources/registry/${key}`, { body: { secret: 1 } })
  }
  await node.ask('/resources/registry/shop/a', { method: 'DELETE' })
  const first = await client.frame('event')
  t.match(first, { eventType: 'changed', path: 'registry/shop', data: { key: 'shop', version: 1 } })
  t.notMatch(JSON.stringify(first), /secret/)
  t.strictSame(await toldSoFar(client), [
    'changed registry/shop/a',
    'changed registry/shop/a/b',
    'deleted registry/shop/a',
  ])
  client.close()
})

t.test('who may see what: a prefix shows what is granted below it, and nothing else', async (t) => {
  const [mine, other] = [await newOrder(), await newOrder()]
  const token = await node.token(`actors/order/${mine.id}:query registry/marks:read`)
  const client = await watching(
    [sub('all', 'actors'), sub('marks', 'registry', ['changed'])],
    token,
  )
  await node.ask('/resources/registry/hidden', { body: 1 })
  for (const { id } of [other, mine]) await node.order(id, [{ type: 'delete', body: {} }])
  await client.frame('event', ({ eventType }) => eventType === 'deleted')
  t.strictSame(await toldSoFar(client), [`checkpoint ${mine.path}`])
  client.send({ type: 'subscribeEvents', requestId: 'f', subscriptions: [sub('x', other.path)] })
  t.match(await client.frame('error'), {
    requestId: 'f',
    code: 'FORBIDDEN',
    message: new RegExp(`${other.path}:query`),
  })
  client.close()
})

t.test('what is asked wrongly has no effect, not half of one', async (t) => {
  const client = await watching([sub('marks', 'registry/marks', ['changed'])])
  const good = sub('good', 'actors/order')
  for (const [wrong, code, message] of [
    [sub('x', 'nowhere'), 'INVALID_PARAMETERS', /begins with actors or registry/],
    [sub('x', 'jobs', ['jobStarted']), 'NOT_AVAILABLE', /jobs/],
    [sub('x', 'actors/nothing'), 'INVALID_PARAMETERS', /no actors of type "nothing"/],
    [sub('x', 'actors/session'), 'INVALID_PARAMETERS', /types: order/],
    [sub('x', 'actors/order/1'), 'INVALID_PARAMETERS', /UUID/],
    [sub('x', 'actors//'), 'INVALID_PARAMETERS', /empty segment/],
    [sub('x', 'actors/order', ['changed']), 'INVALID_PARAMETERS', /checkpoint, created, deleted/],
    [sub('x', 'actors/order', []), 'MALFORMED_REQUEST', /events/],
    [sub('marks', 'actors/order'), 'DUPLICATE_ID', /marks/],
    [sub('good', 'actors'), 'DUPLICATE_ID', /good/],
  ] as const) {
    client.send({ type: 'subscribeEvents', subscriptions: [good, wrong] })
    t.match(await client.frame('error'), { code, message })
  }
  await newOrder()
  t.strictSame(await toldSoFar(client), [])
  client.close()
})
