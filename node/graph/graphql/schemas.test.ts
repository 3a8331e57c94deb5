// Schemas are kept by what they show, so many, and no longer than the graph's version.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { isObjectType, parse, validateSchema } from 'graphql'
import t from 'tap'
import { Acl, parseScope } from '../../../protocol/ace.ts'
import { metaOf } from '../../../protocol/graph/meta.ts'
import type { NodeType } from '../../../protocol/graph/node-type.ts'
import { actorFieldOf } from '../../../protocol/graph/own-actor.ts'
import { graphSchema } from '../../../protocol/graph/schema.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { graphAccess, openDynamics } from '../access.ts'
import { Schemas } from './schemas.ts'

const enumOf = (name: string, ...values: string[]) => ({ name, type: 'enum', values }) as const

const THING: NodeType = {
  name: 'thing.odd-one',
  set: 'things',
  idField: 'thingId',
  fields: [
    { name: 'thingId', type: 'uuid' },
    enumOf('state', 'on', 'off'),
    enumOf('words', 'two words', 'one'),
    enumOf('truth', 'true', 'false'),
    { name: 'odd name', type: 'text' },
    { name: '__own', type: 'text' },
    { name: 'dynamic', type: 'dynamic' },
    {
      name: 'address',
      type: 'object',
      members: [
        { name: 'city', type: 'text' },
        { name: 'street', type: 'text' },
      ],
    },
  ],
  edges: [],
  storage: { kind: 'row' },
}

const view = (types: readonly NodeType[] = [THING]) => {
  const schema = graphSchema(types)
  return {
    version: 1,
    meta: (acl: Acl) => metaOf(schema, graphAccess(acl, 'any')),
    openDynamics: (acl: Acl, node: string) => openDynamics(acl, schema.nodes.get(node)!.type),
    follows: (node: string) => actorFieldOf(node, schema) !== null,
  }
}

function aclOf(...entries: string[]): Acl {
  const scope = parseScope(entries.join(' '))
  if (!scope.ok) throw new Error(scope.reason)
  return new Acl(scope.aces)
}

/** Fields of the type with their types. */
function fieldsOf(schemas: Schemas, acl: Acl): Record<string, string> {
  const type = schemas.of(acl)!.schema.getType('ThingOddOne')
  if (!isObjectType(type)) return {}
  const fields = Object.values(type.getFields()).map((field) => [field.name, String(field.type)])
  return Object.fromEntries(fields) as Record<string, string>
}

const all = aclOf('graph:query', 'graph:field')

/** What is in use. */
function heapBytes(): number {
  setFlagsFromString('--expose_gc')
  ;(runInNewContext('gc') as () => void)()
  return process.memoryUsage().heapUsed
}

t.test('names that GraphQL can not have', async (t) => {
  t.strictSame(fieldsOf(new Schemas(view()), all), {
    thingId: 'UUID',
    state: 'ThingOddOneState',
    words: 'String',
    truth: 'String',
    dynamic: 'JSON',
    address: 'ThingOddOneAddress',
    dynamicField: 'JSON',
  })
})

t.test('members by themselves', async (t) => {
  const acl = aclOf('graph:query', 'graph/thing.odd-one:field:address:city')
  const schemas = new Schemas(view())
  t.strictSame(fieldsOf(schemas, acl), { address: 'ThingOddOneAddress' })
  const address = schemas.of(acl)!.schema.getType('ThingOddOneAddress')
  t.strictSame(isObjectType(address) && Object.keys(address.getFields()), ['city'])
  t.strictSame(validateSchema(schemas.of(acl)!.schema), [])
  const member = aclOf('graph:query', 'graph/thing.odd-one:field:dynamic:x')
  t.strictSame(fieldsOf(schemas, member), { dynamicField: 'JSON' })
})

t.test(
  'lists that can be followed can be subscribed to, where their nodes are shown',
  async (t) => {
    const subscriptionOf = (types: readonly NodeType[], acl: Acl): readonly string[] => {
      const type = new Schemas(view(types)).of(acl)!.schema.getSubscriptionType()
      return type
        ? Object.values(type.getFields()).map(({ name, type: of }) => `${name}: ${String(of)}`)
        : []
    }
    t.strictSame(subscriptionOf([THING], all), [], 'its nodes do not say whose they are')
    const types = [{ ...THING, root: true }]
    t.strictSame(subscriptionOf(types, all), ['things: ThingOddOneChange!'])
    t.strictSame(subscriptionOf(types, aclOf('graph:query')), [])
  },
)

t.test('who sees the same shares a schema', async (t) => {
  const schemas = new Schemas(view())
  const one = schemas.of(aclOf('graph:query', 'graph:field'))
  t.equal(schemas.of(all), one)
  t.equal(schemas.of(aclOf('graph:field', 'graph:query', 'registry:read')), one)
  t.not(schemas.of(aclOf('graph:query', 'graph/thing.odd-one:field:state')), one)
  t.equal(schemas.made, 2)
  t.equal(schemas.of(aclOf('registry:read')), null)
})

t.test('a set of permissions keeps no text of what it shows', async (t) => {
  const fields = Array.from(
    { length: 500 },
    (_, i) => ({ name: `field${i}`, type: 'text' }) as const,
  )
  const schemas = new Schemas(view([{ ...THING, fields: [...THING.fields, ...fields] }]))
  const acls = Array.from({ length: 400 }, () => aclOf('*:*'))
  schemas.of(acls[0]!)
  const before = heapBytes()
  for (const acl of acls) schemas.of(acl)
  const each = (heapBytes() - before) / acls.length
  t.ok(each < 4_096, `${Math.round(each)} bytes each`)
  t.equal(schemas.made, 1)
})

t.test('so many are kept, those that were used last', async (t) => {
  t.teardown(overrideLimits({ 'graph.graphqlSchemasMax': 2 }))
  const schemas = new Schemas(view())
  const first = schemas.of(all)
  schemas.of(aclOf('graph:query', 'graph/thing.odd-one:field:state'))
  t.equal(schemas.of(all), first)
  schemas.of(aclOf('graph:query', 'graph/thing.odd-one:field:words'))
  t.equal(schemas.of(all), first)
  t.equal(schemas.size, 2)
})

t.test('documents of all schemas have one room, each fits its own schema only', async (t) => {
  t.teardown(overrideLimits({ 'graph.graphqlDocumentsMax': 2 }))
  const schemas = new Schemas(view())
  const one = schemas.of(all)!
  const other = schemas.of(aclOf('graph:query', 'graph/thing.odd-one:field:state'))!
  const document = parse('{ __typename }')
  schemas.keep(one, 'a', document)
  t.equal(schemas.document(one, 'a'), document)
  t.equal(schemas.document(other, 'a'), null)
  schemas.keep(other, 'a', document)
  schemas.keep(other, 'b', document)
  t.equal(schemas.document(one, 'a'), null)
  t.equal(schemas.document(other, 'b'), document)
})

t.test('a new version of the graph ends them', async (t) => {
  const of = view()
  const schemas = new Schemas(of)
  const first = schemas.of(all)
  of.version = 2
  t.not(schemas.of(all), first)
  t.equal(schemas.size, 1)
})
