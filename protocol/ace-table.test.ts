// Every resource with its permissions, as the specification and the contract name them, against
// what the grammar takes; and, as properties over all of them, what the compiled sets grant against
// what the rules say in words. Source: specification "Scopes and ACEs", CONTRACT 1.14.

import t from 'tap'
import fc from 'fast-check'
import { Acl, formatAce, narrow, parseAce } from './ace.ts'
import type { Ace } from './ace.ts'

const UUID = '0198c0de-7000-7abc-8def-0123456789ab'
const OTHER = '0198c0de-7000-7abc-8def-0123456789ac'

/** `below`: paths that an entry may name there, each from the resource on. */
interface Row {
  readonly permissions: readonly string[]
  readonly below: readonly string[]
  /** Paths that are none. */
  readonly never?: readonly string[]
}

const TABLE: Readonly<Record<string, Row>> = {
  'actors/order': { permissions: ['create', 'query', 'applyCommands'], below: [UUID, OTHER] },
  'actors/ticket': { permissions: ['create', 'query'], below: [UUID, 'claim'] },
  reactor: { permissions: ['read', 'write', 'invoke'], below: ['mail', 'mail/send', 'apps/a/b'] },
  components: { permissions: ['read', 'write'], below: ['mail', 'apps/a/b'] },
  jobs: { permissions: ['read', 'write', 'schedule'], below: ['nightly', 'apps/a/nightly'] },
  'job-definitions': { permissions: ['read', 'write'], below: [] },
  ingresses: { permissions: ['read', 'write', 'http'], below: ['shop', 'apps/a/shop'] },
  rules: { permissions: ['read', 'write', 'delete'], below: ['free-shipping'] },
  sendings: { permissions: ['read', 'write'], below: [], never: ['x'] },
  'iam/principals': { permissions: ['read', 'write', 'delete'], below: [] },
  'iam/clients': { permissions: ['read', 'write', 'delete'], below: [] },
  'iam/roles': { permissions: ['read', 'write', 'delete'], below: [] },
  registry: { permissions: ['read', 'write'], below: ['channels', 'channels/web'] },
  apps: { permissions: ['read', 'write'], below: ['mail'] },
  files: { permissions: ['read', 'write', 'delete'], below: ['a', 'a/b.pdf'] },
  enums: { permissions: ['read', 'write'], below: ['definitions/x/values'] },
  inventories: { permissions: ['read', 'write'], below: ['malmo'] },
  channels: { permissions: ['read', 'write'], below: ['web'] },
  events: { permissions: ['subscribe'], below: ['jobs', `actors/order/${UUID}`] },
  signals: { permissions: ['read'], below: [], never: ['x'] },
  cluster: { permissions: ['read', 'write'], below: [], never: ['index'] },
  me: { permissions: ['read', 'write'], below: [], never: ['pat'] },
}

/** What the specification says of the graph, which has rules of its own. */
const GRAPH = [
  ...['graph:query', 'graph:field', 'graph:*', 'graph:explain', 'graph/order:query'],
  ...['graph/order:field', 'graph/order:field:orderNumber', 'graph/order:field:dynamic:colour'],
  ...['graph/order:update-search', `graph/order/${UUID}:query`, 'graph/orderLine:query'],
]
const NO_GRAPH = [
  ...[`graph/order/${UUID}:field`, `graph/order/${UUID}:field:x`, `graph/order/${UUID}:*`],
  ...['graph/order:read', 'graph/order:explain', 'graph:field:a:b:c', 'a@graph/order:field'],
  ...[`a@graph/order/${UUID}:query`, 'a@graph:*', 'a@registry:read', 'a@actors/order:query'],
]

const isAce = (text: string): boolean => parseAce(text).ok

function ace(text: string): Ace {
  const parsed = parseAce(text)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.ace
}

const PERMISSIONS = [...new Set(Object.values(TABLE).flatMap(({ permissions }) => permissions))]
const PLACES = Object.entries(TABLE).flatMap(([resource, { below }]) => [
  resource,
  ...below.map((path) => `${resource}/${path}`),
])

t.test('the grammar takes the whole table, and nothing beside it', (t) => {
  for (const [resource, { permissions, below, never = [] }] of Object.entries(TABLE)) {
    for (const place of [resource, ...below.map((path) => `${resource}/${path}`)]) {
      for (const permission of [...permissions, '*']) t.ok(isAce(`${place}:${permission}`), place)
      if (resource.startsWith('actors/')) continue
      for (const other of PERMISSIONS.filter((one) => !permissions.includes(one))) {
        t.notOk(isAce(`${place}:${other}`), `${place}:${other}`)
      }
    }
    for (const path of never) t.notOk(isAce(`${resource}/${path}:read`), `${resource}/${path}`)
    t.notOk(isAce(`a@${resource}:${permissions[0]}`), 'attributes are of the graph alone')
  }
  for (const text of GRAPH) t.ok(isAce(text), text)
  for (const text of NO_GRAPH) t.notOk(isAce(text), text)
  t.end()
})

const granted = fc.oneof(
  fc
    .tuple(fc.constantFrom(...PLACES), fc.constantFrom(...PERMISSIONS, '*'))
    .map(([place, permission]) => `${place}:${permission}`)
    .filter(isAce),
  fc.constantFrom(...GRAPH),
  fc.constant('*:*'),
)
const question = fc.oneof(
  fc.tuple(fc.constantFrom(...PLACES, 'actors', 'graph'), fc.constantFrom(...PERMISSIONS)),
  fc.tuple(
    fc.constantFrom('graph', 'graph/order', 'graph/orderLine'),
    fc.constantFrom('query', 'field', 'field:orderNumber', 'field:dynamic:colour', 'explain'),
  ),
  fc.tuple(fc.constant(`graph/order/${UUID}`), fc.constant('query')),
)

/** The rules in words: the same place or below it, the same permission or a part of it. */
function plainly(text: string, resource: string, permission: string): boolean {
  if (text === '*:*') return true
  const colon = text.indexOf(':')
  const [place, may] = [text.slice(0, colon), text.slice(colon + 1)]
  const isBelow = `${resource}/`.startsWith(`${place}/`)
  return isBelow && (may === '*' || `${permission}:`.startsWith(`${may}:`))
}

t.test('property: a compiled set grants what its entries say in words', (t) => {
  fc.assert(
    fc.property(fc.array(granted, { maxLength: 8 }), fc.array(question), (texts, questions) => {
      const acl = new Acl(texts.map(ace))
      return questions.every(
        ([resource, permission]) =>
          acl.covers(resource, permission) ===
          texts.some((text) => plainly(text, resource, permission)),
      )
    }),
    { numRuns: 500 },
  )
  t.end()
})

t.test('property: a scope narrows and never widens, however often it is narrowed', (t) => {
  const list = fc.array(granted, { maxLength: 4 })
  fc.assert(
    fc.property(list, list, list, question, (has, asked, again, [resource, permission]) => {
      const lists = [has, asked, again]
      const [role, scope, last] = lists.map((texts) => texts.map(ace))
      const acl = narrow(narrow(new Acl(role!), scope!), last!)
      const all = lists.every((texts) => texts.some((text) => plainly(text, resource, permission)))
      return acl.covers(resource, permission) === all
    }),
    { numRuns: 500 },
  )
  t.end()
})

t.test('property: what may be asked for is had', (t) => {
  const list = fc.array(granted, { maxLength: 5 })
  fc.assert(
    fc.property(list, granted, question, (has, asked, [resource, permission]) => {
      const acl = new Acl(has.map(ace))
      if (!acl.coversAce(ace(asked)) || !plainly(asked, resource, permission)) return true
      return acl.covers(resource, permission)
    }),
    { numRuns: 500 },
  )
  t.end()
})

t.test('an entry is written back as it was read', (t) => {
  for (const text of GRAPH) t.equal(formatAce(ace(text)), text)
  for (const place of PLACES) t.equal(formatAce(ace(`${place}:*`)), `${place}:*`)
  t.end()
})
