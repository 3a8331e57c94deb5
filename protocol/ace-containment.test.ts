// "Nobody gives more than they hold" as a property: a set of entries covers another only where a
// plain oracle finds nothing that the other allows and it doesn't. Source: CONTRACT 1.8, 1.14.

import t from 'tap'
import fc from 'fast-check'
import { Acl, formatAce, narrow, OWNER_ACL, parseAce } from './ace.ts'
import type { Ace } from './ace.ts'
import type { Attributes } from './attributes.ts'
import { grantedAces } from './granted-aces.ts'

function ace(text: string): Ace {
  const parsed = parseAce(text)
  if (!parsed.ok) throw new Error(parsed.reason)
  return parsed.ace
}

const TEXTS = [
  '*:*',
  ...['graph:*', 'graph:query', 'graph/order:query', 'graph/order/n1:query', 'graph/delivery:*'],
  ...['graph:field', 'graph/order:field', 'graph/order:field:a', 'graph/order:field:a:b'],
  ...['graph:explain', 'graph:update-search', 'graph/order:update-search', 'graph/order:explain'],
  ...['region@graph:query', 'region@graph/order:query', 'team@graph/order:query'],
  ...['registry:read', 'registry:write', 'registry:*', 'registry/a:read', 'registry/a/b:*'],
  ...['iam/roles:read', 'iam/roles:write', 'iam/roles:delete', 'iam/roles:*', 'iam/clients:*'],
  ...['actors/order:*', 'actors/order:create', 'actors:create', 'actors:*', 'me:*'],
].filter((text) => parseAce(text).ok)

/** Whom a set is of, and what it holds: roles, and what narrows them. */
interface Holder {
  readonly lists: readonly (readonly string[])[]
  readonly attributes: Attributes
}

const anyList = fc.uniqueArray(fc.constantFrom(...TEXTS), { maxLength: 5 })
const anyValues = fc.uniqueArray(fc.constantFrom<string | number>('north', 'south', 1, '1'))
const anyHolder: fc.Arbitrary<Holder> = fc.record({
  lists: fc.array(anyList, { minLength: 1, maxLength: 3 }),
  attributes: fc.oneof(
    fc.constant({}),
    fc.record({ region: anyValues, team: anyValues }, { requiredKeys: [] }),
  ),
})

function aclOf({ lists, attributes }: Holder): Acl {
  const [roles, ...scopes] = lists.map((list) => list.map(ace))
  return scopes.reduce(narrow, new Acl(roles!, null, attributes))
}

// --- the oracle: single questions, each answered by walking the entries -------------------------

const PLACES = [
  ...['graph', 'graph/order', 'graph/order/n1', 'graph/order/n2', 'graph/delivery', 'graph/new'],
  ...['registry', 'registry/a', 'registry/a/b', 'registry/z', 'iam/roles', 'iam/roles/r'],
  ...['iam/clients', 'actors/order', 'actors/other', 'actors/order/x', 'me', 'cluster'],
]
const PERMISSIONS = [
  ...['query', 'field', 'field:a', 'field:a:b', 'field:z', 'explain', 'update-search'],
  ...['read', 'write', 'delete', 'create', 'unheardOf'],
]
/** Permissions that a resource has; there is nothing else that `*` could give. null: any. */
const KNOWN: Readonly<Record<string, readonly string[] | null>> = {
  graph: ['query', 'field', 'explain', 'update-search'],
  registry: ['read', 'write'],
  iam: ['read', 'write', 'delete'],
  actors: null,
  me: ['read', 'write'],
  cluster: ['read', 'write'],
}
const isKnown = (place: string, permission: string): boolean =>
  KNOWN[place.split('/')[0]!]?.includes(permission.split(':')[0]!) ?? true
/** All values that identities have, and one that none has. */
const VALUES = ['north', 'south', 1, '1', 'else']
/** Nodes of a type: what they hold in the fields that attributes name. */
const NODES = ['order', 'delivery', 'new'].flatMap((type) =>
  ['n1', 'n2'].flatMap((id) =>
    VALUES.flatMap((region) => VALUES.map((team) => ({ type, id, fields: { region, team } }))),
  ),
)

const isBelow = (place: string, path: readonly string[]): boolean =>
  path.length === 0 || `${place}/`.startsWith(`${path.join('/')}/`)

const isPart = (asked: string, granted: string): boolean =>
  granted === '*' || `${asked}:`.startsWith(`${granted}:`)

function grants(list: readonly string[], place: string, permission: string): boolean {
  return list.map(ace).some((one) => {
    return one.attribute === null && isBelow(place, one.path) && isPart(permission, one.permission)
  })
}

function shows(list: readonly string[], of: Attributes, node: (typeof NODES)[number]): boolean {
  if (grants(list, `graph/${node.type}/${node.id}`, 'query')) return true
  return list.map(ace).some(({ attribute, path }) => {
    if (attribute === null || !isBelow(`graph/${node.type}`, path)) return false
    const value = node.fields[attribute as 'region' | 'team']
    return (of[attribute] ?? []).some((one) => one === value)
  })
}

/** Something that the one may do and the other may not; null: there is nothing. */
function excess(one: Holder, other: Holder): string | null {
  const may = ({ lists }: Holder, place: string, permission: string): boolean =>
    lists.every((list) => grants(list, place, permission))
  const sees = ({ lists, attributes }: Holder, node: (typeof NODES)[number]): boolean =>
    lists.every((list) => shows(list, attributes, node))
  for (const place of PLACES) {
    for (const permission of PERMISSIONS.filter((one) => isKnown(place, one))) {
      const isMore = may(one, place, permission) && !may(other, place, permission)
      if (isMore) return `${place}:${permission}`
    }
  }
  const node = NODES.find((node) => sees(one, node) && !sees(other, node))
  return node === undefined ? null : JSON.stringify(node)
}

// --- the properties -----------------------------------------------------------------------------

/** The same set twice is not rare, and single lists are what people hold mostly. */
const anyPair = fc.oneof(
  fc.tuple(anyHolder, anyHolder),
  fc.tuple(anyList, anyList, anyHolder).map(([all, some, { attributes }]) => {
    const held = { lists: [[...new Set([...all, ...some])]], attributes }
    return [held, { lists: [some], attributes }] as [Holder, Holder]
  }),
)

/** Each permission of a resource, and all of them. */
const EACH_AND_ALL: [Holder, Holder] = [
  { lists: [['registry/a:read', 'registry:write']], attributes: {} },
  { lists: [['registry/a/b:*']], attributes: {} },
]

t.test('property: what is covered holds nothing that its giver does not', async () => {
  fc.assert(
    fc.property(anyPair, ([giver, taker]) => {
      if (!aclOf(giver).coversAcl(aclOf(taker))) return true
      return excess(taker, giver) === null
    }),
    { numRuns: 3_000, examples: [[EACH_AND_ALL]] },
  )
})

t.test('property: of one list, what is not covered holds more', async () => {
  // Entries that all permissions of a resource together make up are covered by them, and what no
  // question here asks for is nobody's excess.
  const plain = (list: readonly string[]): readonly string[] =>
    list.filter((text) => !/^(\*|actors|graph.*:(\*|explain|update-search)$)/.test(text))
  fc.assert(
    fc.property(anyPair, ([{ lists: a, attributes: of }, { lists: b, attributes }]) => {
      const giver = { lists: [plain(a[0]!)], attributes: of }
      const taker = { lists: [plain(b[0]!)], attributes }
      return aclOf(giver).coversAcl(aclOf(taker)) || excess(taker, giver) !== null
    }),
    { numRuns: 3_000 },
  )
})

t.test('property: written out as one list, a set tells what it grants', async () => {
  const shown = (holder: Holder): Holder => {
    const lists = [grantedAces(aclOf(holder)).map(formatAce)]
    return { lists, attributes: holder.attributes }
  }
  fc.assert(
    fc.property(anyHolder, (holder) => {
      const plain = { ...holder, lists: holder.lists.map((list) => list.filter(isPlain)) }
      return (
        excess(shown(holder), holder) === null &&
        excess(shown(plain), plain) === null &&
        excess(plain, shown(plain)) === null
      )
    }),
    { numRuns: 1_000 },
  )
})

/** What attributes open can't always be said by one entry, and explaining goes for all nodes. */
const isPlain = (text: string): boolean => ace(text).attribute === null && text !== 'graph:explain'

t.test('property: an owner gives anything, and only an owner gives everything', async () => {
  fc.assert(
    fc.property(anyHolder, (holder) => {
      const acl = aclOf(holder)
      return OWNER_ACL.coversAcl(acl) && acl.coversAcl(OWNER_ACL) === acl.everything
    }),
  )
})

t.test('by attributes: as far as values go, and to a role only what needs none', async (t) => {
  const of = (region: readonly (string | number)[], ...texts: string[]): Acl =>
    new Acl(texts.map(ace), null, { region })
  const giver = of(['north', 'south'], 'region@graph/order:query')
  t.ok(giver.coversAcl(of(['south'], 'region@graph/order:query')))
  t.notOk(giver.coversAcl(of(['south', 'west'], 'region@graph/order:query')))
  t.notOk(giver.coversAcl(of(['south'], 'region@graph:query')), 'of every type')
  t.notOk(giver.coversAcl(of([], 'graph/order/n1:query')))
  t.ok(giver.coversAcl(of([], 'region@graph/order:query')), 'it opens nothing')
  t.notOk(of([1], 'region@graph:query').coversAcl(of(['1'], 'region@graph:query')))
  t.notOk(giver.coversForAnybody(ace('region@graph/order:query')))
  t.ok(of([], 'graph:query').coversForAnybody(ace('region@graph/order:query')))
  t.equal(formatAce(giver.aces[0]!), 'region@graph/order:query')
})
