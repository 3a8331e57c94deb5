// Messages to actors as operations: answers, statuses, permissions, types and idempotency keys. On
// a twin of the actor system. Source: CONTRACT 1.3.

import t from 'tap'
import { Acl, OWNER_ACL, parseScope } from '../../protocol/ace.ts'
import { RequestError, errorItem } from '../../protocol/errors.ts'
import type { OperationRequest, OperationResponse } from '../http/operation.ts'
import { registryBehaviour } from '../registry/entry.ts'
import { ActorSystemTwin } from '../testing/actor-system-twin.ts'
import { noteOrder } from '../testing/note-order.ts'
import { actorOperations } from './routes.ts'
import { SOMEBODY } from '../access/testing/sessions.ts'

const UUID = '0198c0de-7000-7abc-8def-0123456789ab'
const OTHER = '0198c0de-7000-7abc-8def-ffffffffffff'

const acl = (scope: string): Acl => {
  const parsed = parseScope(scope)
  if (!parsed.ok) throw new Error(parsed.reason)
  return new Acl(parsed.aces)
}

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly paths: string[]
  readonly data: unknown
  readonly preview: boolean
  readonly results: { type: string; success: boolean; data?: unknown; errors?: unknown[] }[]
  readonly errors: { code: string; message: string; details?: Record<string, unknown> }[]
  readonly requestId?: string
}

interface Call {
  readonly path?: string
  readonly acl?: Acl
  readonly query?: string
  readonly key?: string
  readonly base?: string
}

function station(order: typeof noteOrder = noteOrder) {
  const system = new ActorSystemTwin([order, registryBehaviour(() => null)])
  const operations = actorOperations({
    actorSystem: system,
    consistency: { encode: (at) => at.map((p) => `${p.shard}:${p.offset}`).join() },
    world: {
      clock: { nowMs: () => 0, monotonicMs: () => 0, after: () => () => {}, defer: () => {} },
      random: () => {},
    },
  })
  const call = async (id: string, body: unknown, options: Call = {}): Promise<Answer> => {
    const base = options.base ?? '/resources/actors'
    const operation = operations.find((one) => one.path === `${base}/{type}/{id}`)!
    const request = {
      identity: { ...SOMEBODY, id: 'shop', sessionId: UUID, acl: options.acl ?? OWNER_ACL },
      params: { type: options.path ?? 'order', id },
      query: new URLSearchParams(options.query ?? ''),
      header: (name: string) => (name === 'idempotency-key' ? (options.key ?? '') : ''),
      body,
      bodyFault: null,
      bodyBytes: Buffer.from(JSON.stringify(body)),
      requestId: 'r-1',
      budgetMs: 1_000,
      aborted: () => false,
    } as unknown as OperationRequest
    let response: OperationResponse
    try {
      response = await operation.handle(request)
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      return { status: error.status, errors: error.errors, headers: {} } as unknown as Answer
    }
    const parsed = JSON.parse(response.raw as string) as Answer
    return { ...parsed, status: response.status, headers: response.headers ?? {} }
  }
  return { system, operations, call }
}

const create = (orderNumber?: string): unknown => ({ type: 'create', body: { orderNumber } })
const note = (text: string): unknown => ({ type: 'note', body: { note: text } })
const many = (length: number, message: object): object[] => Array.from({ length }, () => message)
const failing = (code: string): unknown => ({ type: 'note', body: { fail: code } })

t.test('creating and messaging: the answer of CONTRACT 1.3', async (t) => {
  const { call, system } = station()
  const made = await call('new', [{ type: 'create' }, note('a')])
  t.equal(made.status, 200)
  const id = (made.results[0]!.data as { orderId: string }).orderId
  t.same(made.paths, [`/resources/actors/order/${id}`, '/resources/actors/order/O1'])
  t.same(made.data, { count: 1 }, 'data is the last result')
  t.equal(made.preview, false)
  t.same(made.results, [
    { type: 'create', success: true, data: { orderId: id, orderNumber: 'O1' } },
    { type: 'note', success: true, data: { count: 1 } },
  ])
  t.same(made.errors, [])
  t.notOk('requestId' in made)
  t.equal(made.headers['X-Consistency'], '0:2')
  t.match(system.asked[0], { by: 'shop', trace: 'r-1', budgetMs: 1_000, bodyHash: '' })

  t.same((await call('O1', [note('b')])).data, { count: 2 })
  t.same((await call(id.toUpperCase(), [{ type: 'read' }])).data, ['a', 'b'])
  const read = await call(id, [{ type: 'read' }])
  t.notOk('X-Consistency' in read.headers, 'nothing was committed')
  const alias = await call(id, [note('c')], { base: '/resources/reference/actors' })
  t.same(alias.data, { count: 3 })
})

t.test('numbers are escaped in paths', async (t) => {
  const { call } = station()
  const made = await call('new', [create('a/b "ü"')])
  t.equal(made.paths[1], '/resources/actors/order/a%2Fb%20%22%C3%BC%22')
})

t.test('what is no array of messages is 400, and says where', async (t) => {
  const { call } = station()
  for (const [body, message] of [
    [{}, /array of messages/],
    [null, /array of messages/],
    [[], /1 to 1000 messages, this one has 0/],
    [many(1001, { type: 'read' }), /this one has 1001/],
    [[{ type: 'read' }, 7], /message 1 should be an object/],
    [[[]], /message 0 should be an object/],
    [[{ body: {} }], /message 0 needs a "type"/],
    [[{ type: 'read', id: 7 }], /message 0 has a member "id"/],
  ] as const) {
    const answer = await call('new', body)
    t.equal(answer.status, 400)
    t.equal(answer.errors[0]!.code, 'MALFORMED_REQUEST')
    t.match(answer.errors[0]!.message, message)
  }
  t.equal((await call('new', many(1000, { type: 'create' }))).status, 200)
})

t.test('failing messages do not stop the others; all failing is the first status', async (t) => {
  const { call } = station()
  await call(UUID, [create('A')])
  const some = await call(UUID, [
    note('1'),
    failing('INVALID_STATE'),
    { type: 'note', body: 7 },
    { type: 'unheard' },
    { type: '!confirm', body: {} },
    note('2'),
  ])
  t.equal(some.status, 200)
  t.same(
    some.results.map((result) => result.success),
    [true, false, false, false, false, true],
  )
  t.same(
    some.errors.map((error) => error.code),
    ['INVALID_STATE', 'INVALID_MESSAGE_BODY', 'INVALID_MESSAGE_BODY', 'INVALID_MESSAGE_BODY'],
  )
  t.same(some.data, { count: 2 })
  t.same((await call(UUID, [{ type: 'read' }])).data, ['1', '2'])

  const last = await call(UUID, [note('3'), failing('INVALID_STATE')])
  t.equal(last.data, null, 'data is that of the last message, which failed')

  const all = await call(UUID, [failing('INVALID_STATE'), { type: 'unheard' }])
  t.equal(all.status, 422)
  t.equal(all.requestId, 'r-1')
  t.equal(all.data, null)
  t.equal(all.results.length, 2)
  t.equal((await call(UUID, [{ type: 'unheard' }, failing('INVALID_STATE')])).status, 400)
  t.equal((await call(UUID, [create('A')])).status, 409)
})

t.test('who is not there is 404, for each message', async (t) => {
  const { call } = station()
  const answer = await call(UUID, [note('a'), note('b')])
  t.equal(answer.status, 404)
  t.equal(answer.results.length, 2)
  t.equal((await call('nobody', [create('A')])).status, 404)
  t.equal((await call('x'.repeat(300), [create('A')])).status, 404)
})

t.test('messages to new: nobody before a create, nobody after a failed one', async (t) => {
  const { call, system } = station()
  const early = await call('new', [note('a'), create('A'), note('b')])
  t.same(
    early.results.map((result) => result.success),
    [false, true, true],
  )
  t.equal(early.errors[0]!.code, 'NOT_FOUND')
  const asked = system.asked.length
  const failed = await call('new', [{ type: 'create', body: 7 }, note('b'), create('B')])
  t.equal(failed.status, 400)
  t.same(
    failed.errors.map((error) => error.code),
    ['INVALID_MESSAGE_BODY', 'NOT_FOUND', 'NOT_FOUND'],
  )
  t.same(failed.paths, [])
  t.equal(system.asked.length, asked, 'nothing was sent')
  t.equal((await call('B', [note('x')])).status, 404)
})

t.test('preview', async (t) => {
  const { call } = station()
  await call(UUID, [create('A')])
  for (const query of ['preview', 'preview=', 'preview=true', 'preview=1']) {
    const answer = await call(UUID, [note('a'), { type: 'read' }], { query })
    t.equal(answer.preview, true)
    t.same(answer.data, ['a'], 'messages see those before')
  }
  t.equal((await call(UUID, [note('b')], { query: 'preview=false' })).preview, false)
  t.same((await call(UUID, [{ type: 'read' }])).data, ['b'])
})

t.test('permissions are asked for each message, by the UUID', async (t) => {
  const { call, system } = station()
  await call(UUID, [create('A')])
  await call(OTHER, [create('B')])
  const some = await call(UUID, [note('a'), { type: 'read' }], { acl: acl('actors/order:read') })
  t.equal(some.status, 200)
  t.equal(some.results[0]!.success, false)
  t.equal(some.errors[0]!.code, 'UNAUTHORIZED_MESSAGE')
  t.match(some.errors[0]!.message, /actors\/order:note/)
  const none = await call(UUID, [note('a')], { acl: acl('registry:*') })
  t.equal(none.status, 403)

  const one = acl(`actors/order/${UUID}:note`)
  t.equal((await call(UUID, [note('a')], { acl: one })).status, 200)
  t.equal((await call(OTHER, [note('a')], { acl: one })).status, 403)
  t.equal((await call('A', [note('a')], { acl: one })).status, 200)
  t.equal((await call('B', [note('a')], { acl: one })).status, 403)
  t.equal((await call('nobody', [note('a')], { acl: one })).status, 403)
  t.equal((await call('new', [create('C')], { acl: one })).status, 403)
  t.same((await call('B', [{ type: 'read' }])).data, [])

  const asked = system.asked.length
  await call('A', [note('a')], { acl: acl('actors/sku:*') })
  t.equal(system.asked.length, asked, 'nobody is looked up who cannot be allowed')
})

t.test('whose number it is is asked for by a read without a body, where it matters', async (t) => {
  const { call, system } = station({
    ...noteOrder,
    // Neither of the first two may be sent for that.
    messageTypes: ['create', 'find', 'note', 'read'],
    isRead: (type) => type === 'find' || type === 'read',
    check: (message) =>
      message.type === 'find' && message.body === undefined
        ? [errorItem('INVALID_MESSAGE_BODY', 'what?')]
        : noteOrder.check(message),
  })
  await call(UUID, [create('A')])
  const sent = async (id: string, who: Acl): Promise<unknown> => {
    const before = system.asked.length
    t.equal((await call(id, [note('a')], { acl: who })).status, 200)
    return system.asked.slice(before).map(({ messages }) => messages.map(({ type }) => type))
  }
  const one = acl(`actors/order/${UUID}:note`)
  t.same(await sent('A', one), [['read'], ['note']])
  t.same(await sent(UUID, one), [['note']], 'a UUID needs no look')
  t.same(await sent('A', acl('actors/order:note')), [['note']])
  const asked = system.asked.length
  t.equal((await call('new', [note('a')], { acl: one })).status, 403)
  t.equal(system.asked.length, asked, 'and nobody has the number "new"')
  const found = await call('A', [{ type: 'read' }])
  t.same(found.data, ['a', 'a', 'a'])
})

t.test('whose number it is can not be asked for: nobody is told "not allowed"', async (t) => {
  const { call, system } = station()
  await call(UUID, [create('A')])
  const one = acl(`actors/order/${UUID}:note`)
  for (const [outcome, code, status] of [
    ['refused', 'UNAVAILABLE', 503],
    ['refused', 'TOO_BUSY', 429],
    ['unknown', 'OUTCOME_UNKNOWN', 504],
  ] as const) {
    system.before = () => ({ outcome, error: errorItem(code, 'why') })
    t.equal((await call('A', [note('a')], { acl: one })).status, status)
  }
})

t.test('a refusal that can not be kept now is not told as one that is', async (t) => {
  const { call, system } = station()
  for (const [outcome, code, status] of [
    ['refused', 'UNAVAILABLE', 503],
    ['unknown', 'OUTCOME_UNKNOWN', 504],
    ['refused', 'NOT_FOUND', 400],
  ] as const) {
    system.before = () => ({ outcome, error: errorItem(code, 'why') })
    t.equal((await call('A', { no: 'messages' }, { key: 'k' })).status, status)
  }
})

t.test('types: unknown, to come, with a type key, of the system shard', async (t) => {
  const { call, operations, system } = station()
  t.equal((await call('new', [create()], { path: 'nonsense' })).errors[0]!.code, 'NOT_FOUND')
  t.equal((await call('new', [create()], { path: 'registry' })).status, 404)
  const sku = await call('new', [create()], { path: 'sku' })
  t.equal(sku.status, 422)
  t.equal(sku.errors[0]!.code, 'NOT_AVAILABLE')
  const typed = operations.find((one) => one.path.endsWith('/{typeKey}/{ref}'))!
  const send = (type: string, typeKey: string, acl = OWNER_ACL): OperationResponse =>
    typed.handle({
      ...{ params: { type, typeKey, ref: '7' }, identity: { acl }, body: [create()] },
      requestId: 'r-1',
    } as unknown as OperationRequest) as OperationResponse
  const undefinedType = send('ticket', 'claim')
  t.equal(undefinedType.status, 422)
  t.match(undefinedType.body, { errors: [{ code: 'UNDEFINED_TICKET_TYPE' }], requestId: 'r-1' })
  t.throws(() => send('order', 'x'), { errors: [{ code: 'NOT_FOUND' }] })
  t.throws(() => send('nonsense', 'x'), { errors: [{ code: 'NOT_FOUND' }] })
  system.put('registry', 'actors/ticket/types/claim', { value: {}, isSecret: false })
  t.throws(() => send('ticket', 'claim'), { errors: [{ code: 'NOT_AVAILABLE' }] })
  const forbidden = {
    errors: [{ code: 'FORBIDDEN', details: { needs: 'actors/ticket/claim:create' } }],
  }
  for (const key of ['claim', 'unknown']) {
    t.throws(() => send('ticket', key, new Acl([])), { errors: [{ code: 'FORBIDDEN' }] }, key)
  }
  t.throws(() => send('ticket', 'claim', new Acl([])), forbidden)
})

t.test('idempotency keys go along with a hash of the body', async (t) => {
  const { call, system } = station()
  await call('new', [create('A')], { key: 'k-1' })
  await call('new', [create('A')], { key: 'k-1' })
  await call('new', [create('B')], { key: 'k-1' })
  const [first, second, third] = system.asked
  t.equal(first!.idempotencyKey, 'k-1')
  t.equal(first!.bodyHash.length, 32)
  t.equal(first!.bodyHash, second!.bodyHash)
  t.not(first!.bodyHash, third!.bodyHash)
  for (const key of ['a b', 'x'.repeat(256), 'ü']) {
    const answer = await call('new', [create('C')], { key })
    t.equal(answer.status, 400)
    t.match(answer.errors[0]!.message, /idempotency key/)
  }
  t.equal((await call('new', [create('C')], { key: 'x'.repeat(255) })).status, 200)
})

t.test('refusals and unknown outcomes keep their codes', async (t) => {
  const { call, system } = station()
  for (const [outcome, code, status] of [
    ['refused', 'TOO_BUSY', 429],
    ['refused', 'UNAVAILABLE', 503],
    ['refused', 'STORAGE_FULL', 507],
    ['unknown', 'OUTCOME_UNKNOWN', 504],
  ] as const) {
    system.before = () => ({ outcome, error: errorItem(code, 'why', { messageId: 'm' }) })
    const answer = await call('new', [create('A')])
    t.equal(answer.status, status)
    t.match(answer.errors, [{ code, message: 'why', details: { messageId: 'm' } }])
  }
})

t.test('data may be any JSON', async (t) => {
  const { call, system } = station()
  const odd = { 'a"b': ['\u2028', null, 1e21, { __proto__x: '</script>' }] }
  system.before = () => ({
    outcome: 'answered',
    actorId: UUID,
    keys: [],
    position: null,
    results: [{ type: 'q"', success: true, data: odd }],
  })
  const answer = await call(UUID, [{ type: 'read' }])
  t.same(answer.data, odd)
  t.same(answer.results[0], { type: 'q"', success: true, data: odd })
  t.same(answer.paths, [`/resources/actors/order/${UUID}`])
})

t.test('bulk without lines is told what it takes', async (t) => {
  const { operations } = station()
  const bulk = operations.find((one) => one.path === '/resources/actors/{type}')!
  t.throws(() => bulk.handle({} as OperationRequest), {
    errors: [{ code: 'UNSUPPORTED_MEDIA_TYPE' }],
  })
})
