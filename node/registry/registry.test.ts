// The registry's operations: values, lists, ETags, permissions, secrets, the keys we know, and the
// channels that orders read there.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { Acl, OWNER_ACL, parseScope } from '../../protocol/ace.ts'
import { RequestError, errorItem } from '../../protocol/errors.ts'
import type { OperationRequest } from '../http/operation.ts'
import { accessBehaviours } from '../access/access.ts'
import { SOMEBODY, callerSession } from '../access/testing/sessions.ts'
import { OWNER_ROLE } from '../access/role.ts'
import { ActorSystemTwin } from '../testing/actor-system-twin.ts'
import { RegistryChannels } from './channels.ts'
import { type RefusalToDefine, registryBehaviour } from './entry.ts'
import { registryOperations } from './routes.ts'

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
  readonly code?: string
  readonly message?: string
  readonly member?: unknown
}

interface Call {
  readonly query?: string
  readonly acl?: string
  readonly ifMatch?: string
  readonly ifNoneMatch?: string
}

/** A client that may do everything: what an edge lets through is asked again. */
function signIn(system: ActorSystemTwin): void {
  const dates = { createdAt: '', suspendedAt: null }
  const properties = { name: 'me', redirectUris: [], grantTypes: ['client_credentials'] }
  const roles = [OWNER_ROLE]
  system.put('client', 'me', { properties, roles, secrets: [], isSystem: false, ...dates })
}

function station(refusalToDefine: RefusalToDefine = () => null) {
  const system = new ActorSystemTwin([...accessBehaviours(), registryBehaviour(() => null)])
  signIn(system)
  const operations = registryOperations({
    graph: {
      fault: () => null,
      refusalToDefine,
      valuesOf: () => null,
      sharedValues: () => [],
    },

    actorSystem: system,
    consistency: { encode: (at) => at.map((p) => `${p.shard}:${p.offset}`).join() },
  })
  const call = async (
    method: string,
    key: string | null,
    body?: unknown,
    options: Call = {},
  ): Promise<Answer> => {
    const operation = operations.find(
      (one) => one.method === method && one.path.endsWith('}') === (key !== null),
    )!
    const scope = parseScope(options.acl ?? '*')
    if (!scope.ok) throw new Error(scope.reason)
    const acl = options.acl === undefined ? OWNER_ACL : new Acl(scope.aces)
    const headers: Record<string, string> = {
      'if-match': options.ifMatch ?? '',
      'if-none-match': options.ifNoneMatch ?? '',
    }
    const request = {
      identity: { ...SOMEBODY, id: 'me', session: callerSession(system.system, 'me'), acl },
      params: key === null ? {} : { key },
      query: new URLSearchParams(options.query ?? ''),
      header: (name: string) => headers[name] ?? '',
      body,
      bodyFault: null,
      bodyBytes: Buffer.from(JSON.stringify(body) ?? ''),
      requestId: 'r-1',
    } as unknown as OperationRequest
    try {
      const { status, headers: sent, body: answer } = await operation.handle(request)
      return { status, headers: sent ?? {}, body: answer }
    } catch (error) {
      if (!(error instanceof RequestError)) throw error
      const { code, message, details } = error.errors[0]!
      const { status } = error
      return { status, headers: {}, body: null, code, message, member: details?.['member'] }
    }
  }
  return { system, call }
}

t.test('any JSON value is kept, overwritten, deleted', async (t) => {
  const { call } = station()
  for (const value of [null, false, 0, 'text', [1, [2]], { a: { b: null } }]) {
    const put = await call('POST', 'my/key', value)
    t.equal(put.status, 200)
    t.equal(put.body, undefined, 'an empty body')
    t.ok(put.headers['X-Consistency'])
    const got = await call('GET', 'my/key')
    t.same(got.body, { key: 'my/key', value })
    t.equal(got.headers['ETag'], put.headers['ETag'])
  }
  const gone = await call('DELETE', 'my/key')
  t.equal(gone.status, 200)
  t.equal(gone.body, undefined)
  t.ok(gone.headers['X-Consistency'])
  t.equal((await call('GET', 'my/key')).code, 'NOT_FOUND')
  const again = await call('DELETE', 'my/key')
  t.equal(again.status, 200, 'what is not there is deleted already')
  t.notOk('X-Consistency' in again.headers)
})

t.test('lists: sorted, by plain prefix, keys only', async (t) => {
  const { call } = station()
  for (const key of ['b', 'a/b', 'ab', 'a', 'ä', 'B', 'new']) await call('POST', key, { key })
  const index = { query: 'index=true' }
  t.same((await call('GET', null, undefined, index)).body, ['B', 'a', 'a/b', 'ab', 'b', 'new', 'ä'])
  t.same((await call('GET', null)).body, [
    ...['B', 'a', 'a/b', 'ab', 'b', 'new', 'ä'].map((key) => ({ key, value: { key } })),
  ])
  t.same((await call('GET', '', undefined, index)).body, ['B', 'a', 'a/b', 'ab', 'b', 'new', 'ä'])
  const prefix = async (key: string): Promise<unknown> =>
    (await call('GET', key, undefined, { query: 'searchType=prefix&index' })).body
  t.same(await prefix('a'), ['a', 'a/b', 'ab'])
  t.same(await prefix('/a/'), ['a/b'])
  t.same(await prefix('c'), [])
  const pairs = await call('GET', 'a/', undefined, { query: 'searchType=prefix&index=false' })
  t.same(pairs.body, [{ key: 'a/b', value: { key: 'a/b' } }])
  const exact = async (key: string): Promise<unknown> =>
    (await call('GET', key, undefined, { query: 'searchType=exact&index=true' })).body
  t.same(await exact('a'), ['a'])
  t.same(await exact('c'), [])
})

t.test('one leading slash is no part of a key', async (t) => {
  const { call } = station()
  await call('POST', '/a/b', 1)
  t.same((await call('GET', 'a/b')).body, { key: 'a/b', value: 1 })
  t.equal((await call('DELETE', '/a/b')).status, 200)
  t.equal((await call('GET', 'a/b')).status, 404)
})

t.test('keys and parameters that cannot be are 400', async (t) => {
  const { call } = station()
  const long = 'x'.repeat(LIMITS.registry.keyCharsMax)
  for (const key of ['', '/', '//a', 'a//b', 'a/', 'a/../b', '.', 'a\nb', 'a\ud800', `${long}x`]) {
    const answer = await call('POST', key, 1)
    t.equal(answer.status, 400, JSON.stringify(key))
    t.equal(answer.code, 'INVALID_PARAMETERS')
  }
  t.equal((await call('POST', long, 1)).status, 200)
  t.equal((await call('GET', 'a', undefined, { query: 'searchType=like' })).status, 400)
  t.equal((await call('GET', null, undefined, { query: 'index=1' })).status, 400)
})

t.test('values are bounded', async (t) => {
  const { call } = station()
  const answer = await call('POST', 'a', 'x'.repeat(LIMITS.registry.valueBytesMax))
  t.equal(answer.status, 413)
  t.equal((await call('POST', 'a', 'x'.repeat(LIMITS.registry.valueBytesMax - 2))).status, 200)
})

t.test('permissions: 403 on a named key, lists are silent', async (t) => {
  const { call } = station()
  for (const key of ['apps/a/x', 'apps/ab', 'other']) await call('POST', key, 1)
  const acl = 'registry/apps/a:read registry/mine:write'
  t.equal((await call('GET', 'apps/a/x', undefined, { acl })).status, 200)
  t.equal((await call('GET', 'apps/ab', undefined, { acl })).code, 'FORBIDDEN')
  t.equal((await call('GET', 'missing', undefined, { acl })).code, 'FORBIDDEN')
  t.equal((await call('POST', 'apps/a/x', 1, { acl })).code, 'FORBIDDEN')
  t.equal((await call('DELETE', 'apps/a/x', undefined, { acl })).code, 'FORBIDDEN')
  t.equal((await call('POST', 'mine/x', 1, { acl })).status, 200)
  t.equal((await call('GET', 'mine/x', undefined, { acl })).code, 'FORBIDDEN')
  const index = { acl, query: 'index' }
  t.same((await call('GET', null, undefined, index)).body, ['apps/a/x'])
  const prefix = { acl, query: 'index&searchType=prefix' }
  t.same((await call('GET', 'apps', undefined, prefix)).body, ['apps/a/x'])
  t.same((await call('GET', null, undefined, { acl: 'me:*' })).body, [])
})

t.test('ETags: a stale one is 409 and changes nothing', async (t) => {
  const { call } = station()
  const first = (await call('POST', 'k', 1)).headers['ETag']!
  const second = (await call('POST', 'k', 2, { ifMatch: first })).headers['ETag']!
  t.not(first, second)
  t.equal((await call('POST', 'k', 3, { ifMatch: first })).code, 'CONFLICT')
  t.equal((await call('DELETE', 'k', undefined, { ifMatch: first })).code, 'CONFLICT')
  t.equal((await call('POST', 'k', 3, { ifNoneMatch: '*' })).code, 'CONFLICT')
  t.same((await call('GET', 'k')).body, { key: 'k', value: 2 })
  t.equal((await call('DELETE', 'k', undefined, { ifMatch: second })).status, 200)
  t.equal((await call('DELETE', 'k', undefined, { ifMatch: second })).code, 'CONFLICT')
  t.equal((await call('POST', 'k', 4, { ifMatch: '*' })).status, 200)
})

t.test('secrets are kept and not shown', async (t) => {
  const { call, system } = station()
  await call('POST', 'apps/a/settings/pw', 'hush', { query: 'isSecret=true' })
  const secret = { key: 'apps/a/settings/pw', value: null, isSecret: true }
  t.same((await call('GET', 'apps/a/settings/pw')).body, secret)
  t.same((await call('GET', null)).body, [secret])
  await call('POST', 'apps/a/settings/pw', 'other')
  t.same((await call('GET', 'apps/a/settings/pw')).body, secret, 'still secret')
  t.match(system.system.get('registry', 'apps/a/settings/pw'), { value: { value: 'other' } })
  await call('POST', 'apps/a/settings/pw', 'open', { query: 'isSecret=false' })
  t.same((await call('GET', 'apps/a/settings/pw')).body, {
    key: 'apps/a/settings/pw',
    value: 'open',
  })
})

t.test('what is secret stays so where the maps do not show it yet', async (t) => {
  const { call, system } = station()
  const { system: maps } = system
  const { get } = maps
  const key = 'apps/a/settings/pw'
  const { headers } = await call('POST', key, 'hush', { query: 'isSecret=true' })
  // This member is behind: it shows nothing there.
  const late = { ...maps, get: (type: string, at: string) => (at === key ? null : get(type, at)) }
  Object.assign(maps, late)
  const written = await call('POST', key, 'other')
  Object.assign(maps, { get })
  t.equal(written.status, 200)
  t.same((await call('GET', key)).body, { key, value: null, isSecret: true })
  t.match(maps.get('registry', key), { value: { value: 'other' } })
  Object.assign(maps, late)
  t.equal((await call('POST', key, 'x', { ifMatch: headers['ETag']! })).code, 'CONFLICT')
  t.equal((await call('POST', key, 'x', { ifNoneMatch: '*' })).code, 'CONFLICT')
  t.equal((await call('POST', key, 'open', { query: 'isSecret=false' })).status, 200)
  Object.assign(maps, { get })
  t.same((await call('GET', key)).body, { key, value: 'open' }, 'unless somebody says otherwise')
})

t.test('an engine that is away', async (t) => {
  const { call, system } = station()
  system.before = () => ({ outcome: 'refused', error: errorItem('UNAVAILABLE', 'away') })
  t.equal((await call('POST', 'k', 1)).status, 503)
  t.equal((await call('DELETE', 'k')).status, 503)
  system.before = () => ({ outcome: 'unknown', error: errorItem('OUTCOME_UNKNOWN', 'who knows') })
  t.equal((await call('POST', 'k', 1)).status, 504)
})

const channel = { currencyCode: 'EUR', taxIncluded: true }

t.test('well-known keys take what they should', async (t) => {
  const { call } = station()
  for (const [key, value] of [
    ['channels/web', channel],
    ['channels/web', { ...channel, label: 'Web', app: { x: 1 } }],
    ['channels/web', { ...channel, label: { default: 'Web', de: 'Netz' } }],
    ['channels/web', { ...channel, inventories: ['main'], countries: { DE: {}, DK: { vat: 1 } } }],
    ['channels/web/notes', 'anything below a channel'],
    ['graph/sending/fields/theme', { type: 'text', source: "dynamic->'theme'" }],
    ['graph/order/fields/tags', { type: '[text]', source: 'dynamic->"a b"->\'c\'', label: 'x' }],
    ['graph/order/fields/kind', { type: 'enum', source: 'dynamic', enumDefinition: 'kinds' }],
    [
      'graph/order/edges/customer',
      { field: 'customerNumber', relatedSet: 'customers', cardinality: 'single' },
    ],
    ['enums/definitions/kinds/values/big', { label: { default: 'Big' }, hue: 360, setKey: 's' }],
    ['enums/graph/order/channelKey/values/web', {}],
    [
      '/system/graph/order/search',
      {
        fields: [{ field: 'orderNumber', keyword: true }],
        edges: [{ edge: 'deliveries', fields: [{ field: 'deliveryAddress.name' }] }],
      },
    ],
    ['actors/ticket/types/claim', { graphSetName: 'claims' }],
    ['inventories/main', { label: 'Main', dynamic: { x: 1 } }],
    ['apps/a/settings/x', 7],
    ['somewhere/else', 'free'],
  ] as const) {
    const answer = await call('POST', key, value)
    t.equal(answer.status, 200, `${key}: ${answer.message}`)
  }
})

t.test('well-known keys refuse the rest and name the member', async (t) => {
  const { call } = station()
  for (const [key, value, member] of [
    ['channels/web', 'text', ''],
    ['channels/web', [channel], ''],
    ['channels/web', { taxIncluded: true }, 'currencyCode'],
    ['channels/web', { currencyCode: 'EUR' }, 'taxIncluded'],
    ['channels/web', { ...channel, currencyCode: 'EURO' }, 'currencyCode'],
    ['channels/web', { ...channel, taxIncluded: 'yes' }, 'taxIncluded'],
    ['channels/web', { ...channel, label: 7 }, 'label'],
    ['channels/web', { ...channel, label: { de: 'Netz' } }, 'label.default'],
    ['channels/web', { ...channel, label: { default: 'x', de: 7 } }, 'label.de'],
    ['channels/web', { ...channel, inventories: [7] }, 'inventories.0'],
    ['channels/web', { ...channel, countries: ['DE'] }, 'countries'],
    ['channels/web', { ...channel, countries: { de: {} } }, 'countries.de'],
    ['channels/web', { ...channel, countries: { DE: 7 } }, 'countries.DE'],
    ['channels/Web-1', channel, 'key'],
    ['graph/order/fields/x', { type: 'text' }, 'source'],
    ['graph/order/fields/x', { type: 'blob', source: 'a' }, 'type'],
    ['graph/order/fields/x', { type: 'text', source: "dynamic->x'" }, 'source'],
    ['graph/order/fields/1x', { type: 'text', source: 'a' }, 'key'],
    ['graph/order/edges/x', { field: 'a', relatedSet: 'b', cardinality: 'some' }, 'cardinality'],
    ['enums/definitions/k/values/v', { hue: 361 }, 'hue'],
    ['enums/graph/order/f/values/v', { label: {} }, 'label.default'],
    ['system/graph/order/search', {}, 'fields'],
    ['system/graph/order/search', { fields: [{ field: '1' }] }, 'fields.0.field'],
    ['system/graph/order/search', { fields: [{ name: 'x' }] }, 'fields.0.field'],
    ['actors/asset/types/a b', {}, 'key'],
    ['inventories/main', { dynamic: 7 }, 'dynamic'],
    ['apps/mail/settings/sender', { address: 'a' }, ''],
    ['apps/mail/settings/sender', ['a'], ''],
    ['apps/mail/settings/sender', null, ''],
    ['apps/mail/settings/2nd', 'a', 'key'],
  ] as const) {
    const answer = await call('POST', key, value)
    t.equal(answer.code, 'INVALID_REGISTRY_VALUE', `${key} ${JSON.stringify(value)}`)
    t.equal(answer.status, 422)
    t.equal(answer.member, member)
    t.ok(answer.message!.length > 10)
  }
  t.same((await call('GET', null)).body, [])
})

t.test(
  'what the graph asks of who defines fields is asked here, of the value itself',
  async (t) => {
    const asked: unknown[] = []
    const { call } = station((caller, { key, value }) => {
      asked.push([caller.covers('graph/order', 'query'), key, value])
      return errorItem('FORBIDDEN_FIELD', 'it needs more', { member: 'source' })
    })
    const [key, value] = ['graph/order/fields/x', { type: 'text', source: 'orderNumber' }]
    for (const query of ['', 'isSecret=true']) {
      const answer = await call('POST', key, value, { acl: 'registry:write', query })
      t.match(answer, { status: 403, code: 'FORBIDDEN_FIELD', member: 'source' })
    }
    t.same(asked, [
      [false, key, value],
      [false, key, value],
    ])
    t.equal((await call('GET', key)).code, 'NOT_FOUND')
  },
)

t.test('channels as orders see them', async (t) => {
  const { call, system } = station()
  await call('POST', 'channels/web', { ...channel, inventories: ['main'], countries: { DE: {} } })
  const channels = new RegistryChannels()
  t.notOk(channels.any())
  channels.follow(system.system)
  t.ok(channels.any())
  t.same(channels.get('web'), {
    currencyCode: 'EUR',
    inventories: ['main'],
    countries: ['DE'],
  })
  t.equal(channels.get('shop'), null)
  await call('POST', 'channels/shop', channel)
  await call('POST', 'channels/shop/more', 7)
  t.same(channels.get('shop'), { currencyCode: 'EUR', inventories: [], countries: [] })
  await call('DELETE', 'channels/web')
  await call('DELETE', 'channels/shop')
  t.notOk(channels.any())
})

t.test('a channel that can not be read is none that anything goes in', async (t) => {
  const { call, system } = station()
  await call('POST', 'channels/web', channel)
  const readable = { is: false }
  const channels = new RegistryChannels((_, { value }) => (readable.is ? value : null))
  channels.follow(system.system)
  t.ok(channels.any(), 'an order needs a channel that is there')
  t.throws(() => channels.get('web'), { errors: [{ code: 'UNAVAILABLE' }] })
  t.equal(channels.get('shop'), null)
  readable.is = true
  await call('POST', 'channels/web', channel)
  t.match(channels.get('web'), { currencyCode: 'EUR' })
  readable.is = false
  await call('POST', 'channels/web', { ...channel, currencyCode: 'DKK' })
  t.match(channels.get('web'), { currencyCode: 'EUR' }, 'it stays as it was')
  await call('DELETE', 'channels/web')
  t.notOk(channels.any())
})
