// What is pushed shows no more than what is asked for: the frames of live queries, of subscriptions
// and of events while orders come, change and go, for every kind of entry, against what a plain
// look at each order says. Source: CONTRACT 1.10 "Who may", specification "Scopes and ACEs".

import { randomUUID } from 'node:crypto'
import { createClient } from 'graphql-ws'
import t, { type Test } from 'tap'
import type { InnerNode } from '../harness/node-in-process.ts'
import { apply, create, type Command, type Message } from '../harness/orders.ts'
import { until } from '../harness/patience.ts'
import { connect, signIn, type SocketClient } from '../harness/socket-client.ts'
import { ATTRIBUTES, BESIDE, ENTRIES, NORTH, SOUTH, started } from './permissions/stage.ts'

const EAST: string = randomUUID()
const SHOWN = ['orderId', 'externalReference']

/** As far as an entry may go by it. */
interface Known {
  readonly customerNumber: string
  readonly shop: string
}

/** Whether entries open an order, by the letter of the specification. */
function opens(entries: string, orderId: string, { customerNumber, shop }: Known): boolean {
  return entries.split(' ').some((entry) => {
    switch (entry) {
      case 'graph/order:query':
      case `graph/order/${orderId}:query`:
        return true
      case 'customerNumber@graph/order:query':
      case 'customerNumber@graph:query':
        return ATTRIBUTES.customerNumber.includes(customerNumber)
      case 'dynamic.shop@graph/order:query':
        return ATTRIBUTES['dynamic.shop'].includes(shop)
      default:
        return false
    }
  })
}

interface Step {
  readonly orderId: string
  /** null: the order is gone. */
  readonly after: Known | null
  readonly messages: readonly Message[]
}

const [NORTHERN, SOUTHERN] = [
  { customerNumber: 'north', shop: 'n' },
  { customerNumber: 'south', shop: 's' },
]

const refer = (value: string): Command => ({ type: 'setExternalReference', value })
const belong = ({ customerNumber, shop }: Known): Command[] => [
  { type: 'setCustomerNumber', value: customerNumber },
  { type: 'setDynamicFields', fields: { shop } },
]

/** What happens, one after another; each changes what is shown of one order. */
const STEPS: readonly Step[] = [
  { orderId: NORTH, after: NORTHERN, messages: [apply(refer('1'))] },
  { orderId: SOUTH, after: SOUTHERN, messages: [apply(refer('2'))] },
  { orderId: SOUTH, after: NORTHERN, messages: [apply(refer('3'), ...belong(NORTHERN))] },
  { orderId: SOUTH, after: NORTHERN, messages: [apply(refer('4'))] },
  { orderId: SOUTH, after: SOUTHERN, messages: [apply(refer('5'), ...belong(SOUTHERN))] },
  { orderId: SOUTH, after: SOUTHERN, messages: [apply(refer('6'))] },
  { orderId: EAST, after: SOUTHERN, messages: [create({}, refer('7'), ...belong(SOUTHERN))] },
  { orderId: EAST, after: NORTHERN, messages: [apply(refer('8'), ...belong(NORTHERN))] },
  { orderId: EAST, after: null, messages: [{ type: 'delete', body: {} }] },
  { orderId: NORTH, after: NORTHERN, messages: [apply(refer('10'))] },
]

/** What who has these entries is to be told, in order: kind, order, what is shown. */
function expected(entries: string): readonly string[] {
  const known = new Map<string, Known | null>([
    [NORTH, NORTHERN],
    [SOUTH, SOUTHERN],
  ])
  return STEPS.flatMap(({ orderId, after }, i) => {
    const before = known.get(orderId) ?? null
    known.set(orderId, after)
    const was = before !== null && opens(entries, orderId, before)
    const is = after !== null && opens(entries, orderId, after)
    const id = orderId === NORTH ? 'north' : orderId === SOUTH ? 'south' : 'east'
    if (!is) return was ? [`Remove ${id}`] : []
    return [`${was ? 'Update' : 'Add'} ${id} ${i + 1}`]
  })
}

const named = (orderId: unknown): string =>
  orderId === NORTH ? 'north' : orderId === SOUTH ? 'south' : orderId === EAST ? 'east' : '?'

type Shown = Readonly<Record<string, unknown>>

interface Watcher {
  readonly entries: string
  readonly way: string
  readonly told: () => readonly string[]
  /** Resolves when what was pushed before is in `told`. */
  readonly settle: () => Promise<void>
}

async function liveQuery(t: Test, node: InnerNode, entries: string): Promise<Watcher> {
  const client = await signIn(node, await node.token(`${BESIDE} ${REFERENCE} ${entries}`))
  t.teardown(() => client.close())
  const query = { edge: 'orders', orderBy: 'orderId', node: { fields: SHOWN } }
  client.send({ type: 'createLiveQuery', liveQueryId: 'q', query })
  await client.frame('liveQueryCreated')
  return {
    ...{ entries, way: 'live query' },
    told: () => client.frames.map(pushed),
    settle: () => settle(client),
  }
}

function pushed({ type, id, node }: SocketClient['frames'][number]): string {
  const kind = type.replace('liveQuery', '')
  if (kind === 'Remove') return `${kind} ${named(id)}`
  const { orderId, externalReference } = node as Shown
  return `${kind} ${named(orderId)} ${String(externalReference)}`
}

/** Another list is read as all stands now: what was known before it was told before it. */
async function settle(client: SocketClient): Promise<void> {
  const query = { edge: 'orders', node: { fields: ['orderId'] } }
  client.send({ type: 'createLiveQuery', liveQueryId: 'last', query })
  await client.frame('liveQueryCreated', ({ liveQueryId }) => liveQueryId === 'last')
  client.send({ type: 'deleteLiveQuery', liveQueryId: 'last' })
  await client.frame('liveQueryDeleted')
}

const KINDS = { added: 'Add', updated: 'Update', removed: 'Remove' } as const

const SUBSCRIPTION = `subscription {
  orders(orderBy: "orderId") { kind id node { ${SHOWN.join(' ')} } nodes { orderId } }
}`

async function subscription(t: Test, node: InnerNode, entries: string): Promise<Watcher> {
  const token = await node.token(`${BESIDE} ${REFERENCE} ${entries}`)
  const client = createClient({
    url: `ws://127.0.0.1:${node.port}/graphql`,
    connectionParams: { authorization: `Bearer ${token}` },
    retryAttempts: 0,
  })
  t.teardown(() => client.dispose())
  const told: string[] = []
  const list = (take: (change: Shown) => void): void =>
    void client.subscribe<{ orders: Shown }>(
      { query: SUBSCRIPTION },
      {
        next: ({ data }) => take(data!.orders),
        error: (error) => void told.push(JSON.stringify(error)),
        complete: () => undefined,
      },
    )
  const created = (): Promise<void> =>
    new Promise((resolve) => {
      let isFirst = true
      list(({ kind, id, node: shown }) => {
        if (isFirst) {
          isFirst = false
          resolve()
          return
        }
        const name = KINDS[kind as keyof typeof KINDS]
        const more = name === 'Remove' ? '' : ` ${String((shown as Shown)['externalReference'])}`
        told.push(`${name} ${named(id)}${more}`)
      })
    })
  await created()
  return {
    ...{ entries, way: 'subscription' },
    told: () => [...told],
    // The changes of another list, which comes after those of this one, are not looked at.
    settle: () => new Promise((resolve) => list(() => resolve())),
  }
}

const REFERENCE = 'graph/order:field:externalReference'

for (const setting of ['any', 'granted']) {
  t.test(`what is pushed of the graph, filters looking at ${setting} fields`, async (t) => {
    const node = await started(t, setting)
    const owner = await node.token()
    const watchers: Watcher[] = []
    for (const [entries, shown] of ENTRIES) {
      if (shown === null) continue
      watchers.push(await liveQuery(t, node, entries), await subscription(t, node, entries))
    }
    const all = watchers.filter(({ entries }) => entries === 'graph/order:query')
    for (const [i, { orderId, messages }] of STEPS.entries()) {
      const made = await node.ask(`/resources/actors/order/${orderId}`, owner, messages)
      if (made.status !== 200) throw new Error(made.text)
      // One by one: changes of one moment are told as one.
      await until('who may see all is told', () => all.every(({ told }) => told().length === i + 1))
    }
    for (const { entries, way, told, settle: settled } of watchers) {
      await settled()
      t.strictSame(told(), expected(entries), `${way}: ${entries}`)
    }
    t.equal(expected('graph/order:query').length, STEPS.length)
    t.strictSame(expected('locale@graph/order:query'), [])
  })
}

t.test('whoever may not see ids is told none, and is told the rest', async (t) => {
  const node = await started(t, 'any')
  const owner = await node.token()
  for (const more of ['graph/order:field:orderId', '']) {
    const orderId = randomUUID()
    const id = more === '' ? undefined : orderId
    const token = await node.token(`graph/order:query ${REFERENCE} ${more}`)
    const client = await signIn(node, token)
    const query = { edge: 'orders', node: { fields: ['externalReference'] } }
    client.send({ type: 'createLiveQuery', liveQueryId: 'q', query })
    await client.frame('liveQueryCreated')
    const subscribed = await connect(node, '/graphql', ['graphql-transport-ws'])
    const payload = { authorization: `Bearer ${token}` }
    subscribed.send({ type: 'connection_init', payload })
    await subscribed.frame('connection_ack')
    const asked = 'subscription { orders { kind id index node { externalReference } } }'
    subscribed.send({ type: 'subscribe', id: 's', payload: { query: asked } })
    await subscribed.frame('next')
    const told = async (type: string, kind: string): Promise<void> => {
      const frame = await client.frame(type)
      if (type === 'liveQueryRemove') t.equal(frame['id'], id)
      const next = await subscribed.frame('next')
      t.match(next, { payload: { data: { orders: { kind, id: id ?? null } } } })
      t.type(frame['index'], 'number')
    }
    const does = async (message: Message): Promise<void> => {
      const { status, text } = await node.ask(`/resources/actors/order/${orderId}`, owner, [
        message,
      ])
      if (status !== 200) throw new Error(text)
    }
    await does(create({}, refer(`${orderId} 1`)))
    await told('liveQueryAdd', 'added')
    await does(apply(refer(`${orderId} 2`)))
    await told('liveQueryUpdate', 'updated')
    await does({ type: 'delete', body: {} })
    await told('liveQueryRemove', 'removed')
    client.close()
    subscribed.close()
  }
})

/** Entries for actors, and of which orders they show events; null: subscribing is refused. */
const ACTOR_ENTRIES: readonly (readonly [entries: string, shown: readonly string[] | null])[] = [
  ['actors/order:query', [NORTH, SOUTH, EAST]],
  ['actors:query', [NORTH, SOUTH, EAST]],
  [`actors/order/${SOUTH}:query`, [SOUTH]],
  [`actors/order/${randomUUID()}:query`, []],
  ['actors/order:applyCommands', null],
  ['graph:query', null],
  ['customerNumber@graph/order:query', null],
]

const EVENTS = ['created', 'checkpoint', 'deleted']

function eventsOf(orderId: string, { messages, after }: Step): readonly string[] {
  const id = named(orderId)
  if (messages[0]!.type === 'create') return [`created ${id}`, `checkpoint ${id}`]
  return after === null ? [`checkpoint ${id}`, `deleted ${id}`] : [`checkpoint ${id}`]
}

t.test(
  'events tell of orders whose actors may be asked, and nothing of what they hold',
  async (t) => {
    const node = await started(t, 'any')
    const owner = await node.token()
    const clients: [string, readonly string[], SocketClient][] = []
    for (const [entries, shown] of ACTOR_ENTRIES) {
      const client = await signIn(node, await node.token(entries))
      t.teardown(() => client.close())
      const subscriptions = [{ id: 'all', path: 'actors/order', events: EVENTS }]
      client.send({ type: 'subscribeEvents', subscriptions })
      const { type, code } = await client.answer('subscribedEvents', 'error')
      // Of an actor that is not there nothing is told, and it may come.
      t.equal(type === 'error' ? code : 'told', shown === null ? 'FORBIDDEN' : 'told', entries)
      if (shown === null) continue
      const one = [{ id: 'one', path: `actors/order/${NORTH}`, events: EVENTS }]
      client.send({ type: 'subscribeEvents', subscriptions: one })
      const answer = await client.answer('subscribedEvents', 'error')
      t.equal(answer.type === 'error', !shown.includes(NORTH), `one of the north: ${entries}`)
      clients.push([entries, shown, client])
    }
    for (const { orderId, messages } of STEPS) {
      await node.ask(`/resources/actors/order/${orderId}`, owner, messages)
    }
    const all = STEPS.flatMap((step) => eventsOf(step.orderId, step))
    await until('who may see all is told', () => clients[0]![2].frames.length === all.length)
    for (const [entries, shown, client] of clients) {
      client.send({ type: 'unsubscribeEvents', ids: ['all', 'one'] })
      await client.frame('unsubscribedEvents')
      const told = client.frames.map(({ eventType, data, subscriptionIds }) => {
        const { actorId } = data as { actorId: string }
        const isBoth = actorId === NORTH
        t.equal((subscriptionIds as string[]).length, isBoth ? 2 : 1)
        return `${String(eventType)} ${named(actorId)}`
      })
      const right = STEPS.filter(({ orderId }) => shown.includes(orderId))
      // Of one actor as committed; between actors there is no order.
      for (const id of shown) {
        const own = (name: string): boolean => name.endsWith(` ${named(id)}`)
        const of = right.filter(({ orderId }) => orderId === id)
        t.strictSame(
          told.filter(own),
          of.flatMap((step) => eventsOf(id, step)),
          entries,
        )
      }
      t.equal(told.length, right.flatMap((step) => eventsOf(step.orderId, step)).length, entries)
      t.notMatch(JSON.stringify(client.frames), /"(north|south)"|customerNumber|externalReference"/)
    }
  },
)

/**
 * Changes of two stores that differ in what is hidden, and the same in what isn't; and how many
 * frames each is.
 */
const TWIN_STEPS: readonly (readonly [frames: number, make: (hidden: string) => Message])[] = [
  [0, (hidden) => apply({ type: 'setCustomerNumber', value: hidden })],
  [2, () => apply({ type: 'setDynamicFields', fields: { gift: 7 } })],
  [0, (hidden) => apply({ type: 'setDynamicFields', fields: { hidden, gift: 7 } })],
  [
    0,
    (hidden) =>
      apply({ type: 'addTag', key: hidden }, { type: 'setCustomerNumber', value: 'same' }),
  ],
  // It changes something in one of them only.
  [
    0,
    (hidden) => apply({ type: 'setCustomerNumber', value: hidden === 'north' ? 'same' : hidden }),
  ],
  [2, (hidden) => apply({ type: 'setDynamicFields', fields: { gift: 0, hidden: [hidden] } })],
  [2, () => apply({ type: 'setDynamicFields', fields: { gift: 9 } })],
]

const TWIN_ENTRIES = [
  ...['graph:query', 'graph/order:field:orderId', 'graph/order:field:dynamic:gift'],
].join(' ')

t.test('two stores that differ only in hidden fields push alike to the byte', async (t) => {
  const pushes: string[][] = []
  for (const hidden of ['north', 'south']) {
    const node = await started(t, 'granted')
    const owner = await node.token()
    const token = await node.token(TWIN_ENTRIES)
    const client = await signIn(node, token)
    t.teardown(() => client.close())
    const fields = ['orderId', "dynamic->'gift'"]
    const told: string[] = []
    for (const [i, filter] of [
      undefined,
      "dynamic->'gift' > 5",
      "customerNumber == 'x'",
    ].entries()) {
      const query = { edge: 'orders', ...(filter && { filter }), orderBy: 'orderId', limit: 2 }
      const asked = { ...query, node: { fields } }
      client.send({ type: 'createLiveQuery', liveQueryId: `q${i}`, query: asked })
      told.push(JSON.stringify(await client.answer('liveQueryCreated', 'liveQueryError')))
    }
    let frames = 0
    for (const [more, make] of TWIN_STEPS) {
      for (const orderId of [NORTH, SOUTH]) {
        const made = await node.ask(`/resources/actors/order/${orderId}`, owner, [make(hidden)])
        if (made.status !== 200) throw new Error(made.text)
        await settle(client)
        frames += more
        await until(`${frames} frames`, () => client.frames.length >= frames)
      }
    }
    await settle(client)
    told.push(...client.frames.map((frame) => JSON.stringify(frame)))
    // A position is of one store.
    pushes.push(told.map((text) => text.replace(/"position":"[^"]+"/, '')))
  }
  const [first, second] = pushes
  t.strictSame(second, first)
  t.match(first!.join(), /FORBIDDEN_FIELD/)
  t.equal(first!.length, 3 + 2 * 6, 'and nothing more')
})
