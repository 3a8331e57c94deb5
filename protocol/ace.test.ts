// Access entries and lists: what is read, what is refused and why, what covers what; and, as
// properties, that a narrowed list never allows more than it should. Source: CONTRACT 1.1.

import t from 'tap'
import fc from 'fast-check'
import {
  ACE_LIMITS,
  Acl,
  OWNER_ACL,
  aclOfLists,
  formatAce,
  narrow,
  parseAce,
  parseScope,
} from './ace.ts'
import type { Ace } from './ace.ts'

const UUID = '0198c0de-7000-7abc-8def-0123456789ab'

function ace(text: string): Ace {
  const parsed = parseAce(text)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.ace
}

const acl = (...texts: string[]): Acl => new Acl(texts.map(ace))

t.test('entries that the specification names are read and written back', async (t) => {
  for (const text of [
    'actors/order:*',
    `actors/order/${UUID}:applyCommands`,
    'actors/ticket/claim:create',
    'graph:*',
    'graph/order:query',
    `graph/order/${UUID}:query`,
    'graph/order:field',
    'graph/order:field:invoiceAddress',
    'graph/order:field:dynamic:myField',
    'graph/ticket.claim:query',
    'graph:update-search',
    'graph/order:update-search',
    'customerNumber@graph/order:query',
    'customerNumber@graph:query',
    'reactor/channels.load/run:invoke',
    'jobs/apps/mail/nightly:schedule',
    'job-definitions:write',
    'ingresses/a/b/c:http',
    'sendings:write',
    'iam/principals:delete',
    'registry/apps/mail/settings/host:read',
    'registry/a@b:read',
    'cluster:read',
    'me:*',
    '*:*',
  ]) {
    t.equal(formatAce(ace(text)), text, text)
  }
  t.same(ace('*'), ace('*:*'))
  t.same(ace(`actors/order/${UUID.toUpperCase()}:create`).path[2], UUID, 'UUIDs in any case')
})

t.test('what is not an entry is refused with a reason', async (t) => {
  for (const [text, reason] of [
    ['', /names no permission/],
    ['registry', /names no permission/],
    ['order:create', /names no known resource/],
    ['iam:read', /names no known resource/],
    ['toString:read', /names no known resource/],
    ['*:read', /names no known resource/],
    ['registry:delete', /no permission of registry: it has read, write/],
    ['registry:', /no permission of registry/],
    ['registry:read:x', /only graph fields/],
    ['registry//x:read', /path segment/],
    ['registry/:read', /path segment/],
    ['registry/*:read', /path segment/],
    ['registry/a b:read', /path segment/],
    ['actors/order/O17:create', /by its UUID/],
    ['actors/9:create', /actor type/],
    [`actors/order/${UUID}/x:create`, /should be actors/],
    ['actors/order:', /message type/],
    ['actors/order:create:x', /only graph fields/],
    ['actors/order:a b', /message type/],
    [`graph/order/${UUID}:field`, /takes query only/],
    [`graph/order/${UUID}:field:orderNumber`, /takes query only/],
    [`graph/order/${UUID}:*`, /takes query only/],
    ['graph/order:explain', /whole graph: graph:explain/],
    ['graph:explain:x', /only graph fields/],
    [`graph/order/${UUID}:update-search`, /takes query only/],
    ['a@graph/order:update-search', /attribute/],
    ['graph/order:field:a:b:c', /field\[:<field>/],
    ['graph/order:field:', /field\[:<field>/],
    ['graph/a/b/c:query', /should be graph/],
    ['a@registry:read', /attribute/],
    ['a@graph/order:field', /attribute/],
    [`a@graph/order/${UUID}:query`, /attribute/],
    ['9@graph:query', /node field before the @/],
    ['@graph:query', /names no known resource/],
    [`registry/${'x'.repeat(ACE_LIMITS.aceCharsMax)}:read`, /at most 1024 characters/],
  ] as const) {
    const parsed = parseAce(text)
    t.notOk(parsed.ok, text)
    if (!parsed.ok) t.match(parsed.reason, reason, text)
  }
})

t.test('a resource covers what is below it, never what merely begins alike', async (t) => {
  const some = acl('actors/order:create', 'registry/apps:read', 'graph/order:field:dynamic')
  t.ok(some.covers('actors/order', 'create'))
  t.ok(some.covers(`actors/order/${UUID}`, 'create'))
  t.notOk(some.covers('actors/order', 'delete'))
  t.notOk(some.covers('actors', 'create'))
  t.notOk(some.covers('actors/orders', 'create'))
  t.ok(some.covers('registry/apps', 'read'))
  t.ok(some.covers('registry/apps/x/y', 'read'))
  t.notOk(some.covers('registry/appstore', 'read'))
  t.notOk(some.covers('registry', 'read'))
  t.notOk(some.covers('registry/apps', 'write'))
  t.ok(some.covers('graph/order', 'field:dynamic:x'))
  t.ok(some.covers('graph/order', 'field:dynamic'))
  t.notOk(some.covers('graph/order', 'field:dynamicX'))
  t.notOk(some.covers('graph/order', 'field'))
  t.notOk(some.everything)
})

t.test('all permissions, the owner, and nothing', async (t) => {
  t.ok(acl('actors/order:*').covers('actors/order', 'anything'))
  t.ok(acl('graph:*').covers('graph/order', 'field:dynamic:x'))
  t.ok(OWNER_ACL.everything)
  t.ok(OWNER_ACL.covers('cluster', 'read'))
  t.notOk(acl().covers('me', 'read'))
  t.notOk(acl().everything)
})

t.test(
  'attribute entries cover nothing by themselves; a scope may ask for what is had',
  async (t) => {
    const some = acl('region@graph/order:query', 'graph/delivery:query')
    t.notOk(some.covers('graph/order', 'query'))
    t.ok(some.coversAce(ace('region@graph/order:query')))
    t.ok(some.coversAce(ace('region@graph/delivery:query')), 'what is plainly had, too')
    t.notOk(some.coversAce(ace('brand@graph/order:query')))
    t.notOk(some.coversAce(ace('region@graph:query')), 'nor of other node types')
    t.ok(acl('region@graph:query').coversAce(ace('region@graph/order:query')))
    t.notOk(narrow(some, [ace('graph/delivery:query')]).coversAce(ace('region@graph/order:query')))
    t.ok(narrow(some, [ace('graph:query')]).coversAce(ace('region@graph/order:query')))
  },
)

t.test('grants on a node type, list by list', async (t) => {
  const nothing = { all: false, ids: [], attributes: [] }
  const all = { ...nothing, all: true }
  const grants = (...texts: string[]) => acl(...texts).graphGrants('order')
  t.same(OWNER_ACL.graphGrants('order'), [all])
  t.same(grants('graph:*'), [all])
  t.same(grants('graph/order:*'), [all])
  t.same(grants('graph/order:field', 'graph/delivery:query'), [nothing])
  t.same(grants('graph/order/a:query', 'graph/order/b:query', 'graph/sku/c:query'), [
    { ...nothing, ids: ['a', 'b'] },
  ])
  t.same(grants('region@graph:query', 'brand@graph/order:query', 'x@graph/sku:query'), [
    { ...nothing, attributes: ['region', 'brand'] },
  ])
  const narrowed = narrow(acl('region@graph/order:query'), [ace('graph:query')])
  t.same(narrowed.graphGrants('order'), [all, { ...nothing, attributes: ['region'] }])
})

t.test('a set travels as lists, with the attributes that they go by', async (t) => {
  const attributes = { region: ['north'], brand: ['a', 1], unused: [true] }
  const own = new Acl([ace('region@graph:query'), ace('registry:read')], null, attributes)
  t.same(own.graphLists, [['region@graph:query']])
  t.same(own.graphAttributes, { region: ['north'] }, 'no others')
  const narrowed = narrow(own, [ace('brand@graph/order:query'), ace('constructor@graph:query')])
  t.same(narrowed.graphAttributes, { region: ['north'], brand: ['a', 1] })
  const there = aclOfLists(narrowed.graphLists, narrowed.graphAttributes)
  t.same(there.graphGrants('order'), narrowed.graphGrants('order'))
  t.same(there.attributes, { region: ['north'], brand: ['a', 1] })
})

t.test('reaches: worth finding out which one is meant', async (t) => {
  const some = acl(`actors/order/${UUID}:create`, 'actors/sku:query')
  t.ok(some.reaches('actors/order', 'create'))
  t.notOk(some.reaches('actors/order', 'delete'))
  t.ok(some.reaches('actors/sku', 'query'))
  t.ok(some.reaches('actors', 'query'))
  t.notOk(some.reaches('actors/payment', 'query'))
  t.notOk(narrow(some, [ace('actors/sku:*')]).reaches('actors/order', 'create'))
})

t.test('a scope may not ask for more than there is', async (t) => {
  const some = acl('registry:read', 'registry:write', 'actors/order:create')
  t.ok(some.coversAce(ace('registry:*')), 'all permissions one by one are all of them')
  t.ok(some.coversAce(ace('registry/apps/x:write')))
  t.notOk(acl('registry:read').coversAce(ace('registry:*')))
  t.notOk(some.coversAce(ace('actors/order:*')), 'message types are open, so * needs *')
  t.notOk(some.coversAce(ace('*:*')))
  t.ok(OWNER_ACL.coversAce(ace('*')))
  t.notOk(narrow(OWNER_ACL, [ace('me:read')]).coversAce(ace('*')))
})

t.test('scopes are lists by spaces, each entry once', async (t) => {
  const parsed = parseScope('  registry:read  registry:read * ')
  t.ok(parsed.ok)
  if (parsed.ok) t.same(parsed.aces.map(formatAce), ['registry:read', '*:*'])
  t.notOk(parseScope('registry:read nonsense').ok)
  const many = Array.from({ length: ACE_LIMITS.acesMax + 1 }, (_, i) => `registry/k${i}:read`)
  t.notOk(parseScope(many.join(' ')).ok)
})

const segment = fc.constantFrom('a', 'b', 'c')
const path = fc.array(segment, { maxLength: 3 })
const resourceAce = fc
  .tuple(path, fc.constantFrom('read', 'write', '*'))
  .map(([below, permission]) => `${['registry', ...below].join('/')}:${permission}`)
const fieldAce = fc
  .tuple(fc.constantFrom('order', 'sku'), fc.array(segment, { maxLength: 2 }))
  .map(([node, names]) => `graph/${node}:${['field', ...names].join(':')}`)
const anyAce = fc.oneof(resourceAce, fieldAce, fc.constantFrom('graph:query', '*:*', 'graph:*'))
const question = fc.oneof(
  fc.tuple(
    path.map((below) => ['registry', ...below].join('/')),
    fc.constantFrom('read', 'write'),
  ),
  fc.tuple(
    fc.constantFrom('graph/order', 'graph/sku', 'graph'),
    fc.array(segment, { maxLength: 2 }).map((names) => ['field', ...names].join(':')),
  ),
)

/** What the grammar says in words: same place or below it, same permission or a part of it. */
function plainly(granted: Ace, resource: string, permission: string): boolean {
  const place = granted.path.join('/')
  const below = granted.path.length === 0 || `${resource}/`.startsWith(`${place}/`)
  return (
    below && (granted.permission === '*' || `${permission}:`.startsWith(`${granted.permission}:`))
  )
}

t.test('property: covers is what the grammar says in words, first and remembered', async () => {
  fc.assert(
    fc.property(fc.array(anyAce, { maxLength: 5 }), fc.array(question), (texts, questions) => {
      const aces = texts.map(ace)
      const some = new Acl(aces)
      return [...questions, ...questions].every(
        ([resource, permission]) =>
          some.covers(resource, permission) ===
          aces.some((granted) => plainly(granted, resource, permission)),
      )
    }),
  )
})

t.test('property: narrowed = both, and what coversAce allows is really covered', async () => {
  const aces = fc.array(anyAce, { maxLength: 4 })
  fc.assert(
    fc.property(aces, aces, question, (has, asks, [resource, permission]) => {
      const base = new Acl(has.map(ace))
      const asked = asks.map(ace)
      const token = narrow(base, asked)
      const both = base.covers(resource, permission) && new Acl(asked).covers(resource, permission)
      if (token.covers(resource, permission) !== both) return false
      if (token.covers(resource, permission) && !token.reaches(resource, permission)) return false
      const allowed = asked.filter((one) => base.coversAce(one))
      return allowed.every(
        (one) => !plainly(one, resource, permission) || base.covers(resource, permission),
      )
    }),
  )
})

t.test('property: whatever the text, parsing ends, and what it accepts round-trips', async () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' }), anyAce), (text) => {
      const parsed = parseAce(text)
      if (!parsed.ok) return parsed.reason.length > 0
      const again = parseAce(formatAce(parsed.ace))
      return again.ok && formatAce(again.ace) === formatAce(parsed.ace)
    }),
  )
})

t.test('what is remembered stays bounded, and stays right', async (t) => {
  const some = acl('registry/a:read')
  for (let i = 0; i < ACE_LIMITS.aclAnswersMax * 2; i++) some.covers(`registry/k${i}`, 'read')
  t.ok(some.covers('registry/a', 'read'))
  t.notOk(some.covers('registry/b', 'read'))
  t.ok(some.remembered <= ACE_LIMITS.aclAnswersMax, String(some.remembered))
})

t.test(
  'what travels of a set is its entries on the graph, and grants the same there',
  async (t) => {
    const base = acl('graph/order:query', 'graph/order:field:a', 'actors/order:create')
    const narrowed = narrow(base, [ace('graph:*'), ace('registry:read')])
    t.same(narrowed.graphLists, [['graph:*'], ['graph/order:query', 'graph/order:field:a']])
    for (const one of [base, narrowed, OWNER_ACL, narrow(OWNER_ACL, [ace('graph/order:query')])]) {
      const there = aclOfLists(one.graphLists)
      for (const resource of ['graph', 'graph/order', `graph/order/${UUID}`, 'graph/delivery']) {
        for (const permission of ['query', 'field', 'field:a', 'field:b']) {
          t.equal(there.covers(resource, permission), one.covers(resource, permission))
        }
      }
    }
    t.notOk(aclOfLists([]).covers('graph/order', 'query'), 'without any list nothing')
    t.notOk(aclOfLists([['nonsense'], ['graph:*']]).covers('graph/order', 'query'))
  },
)

t.test('questions of any length are answered, not kept', async (t) => {
  const some = acl('actors/order:create')
  t.notOk(some.covers('actors/order', 'x'.repeat(1_000_000)))
  t.notOk(some.covers(`registry/${'x'.repeat(1_000_000)}`, 'read'))
  t.equal(some.remembered, 0)
  t.ok(some.covers('actors/order', 'create'))
  t.equal(some.remembered, 1)
})
