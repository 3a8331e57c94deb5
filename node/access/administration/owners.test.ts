// One owner stays who can sign in, whatever is changed: against a plain reading of who can, over
// random clients, people and changes. Source: CONTRACT 1.8 "one owner stays".

import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import fc from 'fast-check'
import type { Client } from '../client.ts'
import type { Principal } from '../principal.ts'
import { Configuration } from './testing/configuration.ts'
import type { By } from './testing/configuration.ts'
import { AT, clientOf, principalOf } from './testing/scene.ts'

const KEY = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
const BACK = 'https://shop.example/back'
/** Its secrets were deleted; it has a session still. */
const BOSS: By = { id: 'boss', kind: 'client', clientId: 'boss', scope: null }

function canSignIn(view: Configuration): boolean {
  const clients = [...view.all<Client>('client')].map(({ value }) => value)
  const people = [...view.all<Principal>('principal')].map(({ value }) => value)
  const everything = ({ properties: { scopes } }: Client): boolean =>
    scopes === undefined || scopes.includes('*:*')
  const open = clients.filter(({ suspendedAt }) => suspendedAt === null)
  const shows = ({
    properties: { jwks, tokenEndpointAuthMethod: by },
    secrets,
  }: Client): boolean => {
    if (by === 'none') return false
    if (by === 'private_key_jwt') return jwks!.keys.some(({ x }) => x === KEY.x)
    return secrets.some(({ expiresAt }) => expiresAt === null)
  }
  const byItself = open.some((client) => {
    const { grantTypes } = client.properties
    const may = grantTypes.includes('client_credentials') && everything(client)
    return may && shows(client) && client.roles.includes('system:owner')
  })
  const isOpen = open.some((client) => {
    const { grantTypes, redirectUris, tokenEndpointAuthMethod: by } = client.properties
    const isPublic = by === 'none' || grantTypes.includes('implicit')
    const hasCodes = grantTypes.includes('authorization_code') || grantTypes.includes('implicit')
    if (!hasCodes || !redirectUris.includes(BACK) || !everything(client)) return false
    return isPublic || shows(client)
  })
  const person = people.some(({ suspendedAt, roles, password }) => {
    return suspendedAt === null && roles.includes('system:owner') && password?.expiresAt === null
  })
  return byItself || (person && isOpen)
}

const often = <T>(usual: T, ...others: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof(fc.constant(usual), fc.constantFrom(usual, ...others))
const roles = often(['system:owner'], [], ['a:b'])
const client = fc
  .record({
    roles,
    grants: fc.subarray(['authorization_code', 'client_credentials', 'implicit'] as const),
    redirects: often([BACK], [], ['nowhere']),
    scopes: often<string[] | undefined>(undefined, ['graph:*'], ['graph:*', '*:*'], []),
    method: fc.constantFrom(undefined, 'none' as const, 'private_key_jwt' as const),
    key: often<object>(KEY, { kty: 'EC', crv: 'P-256', x: 'x', y: 'y' }),
    secrets: often<(string | null)[]>([null], [], [AT], [AT, null]),
    suspendedAt: often<string | null>(null, AT),
  })
  .map(({ grants, method, key, secrets, scopes, redirects, ...of }) => {
    const isPublic = method === 'none'
    return clientOf({
      ...of,
      ...{ sessionEpoch: of.suspendedAt === null ? 0 : 1 },
      secrets: (isPublic ? [] : secrets).map((expiresAt, i) => {
        return { secretId: String(i), hash: 'h', source: 'issued', createdAt: AT, expiresAt }
      }),
      properties: {
        ...{ name: 'a client', redirectUris: redirects, jwks: { keys: [key as never] } },
        grantTypes: grants.filter((grant) => !isPublic || grant !== 'client_credentials'),
        ...(method !== undefined && { tokenEndpointAuthMethod: method }),
        ...(scopes !== undefined && { scopes }),
      },
    })
  })
const principal = fc.record({
  roles,
  password: often<Principal['password']>(
    { hash: 'h', changedAt: AT, expiresAt: null },
    ...[null, { hash: 'h', changedAt: AT, expiresAt: AT }],
  ),
  suspendedAt: often<string | null>(null, AT),
})

t.test('the last owner who can sign in stays, and no other change is refused for that', (t) => {
  let kept = 0
  let made = 0
  const ids = fc.nat(2)
  const change = fc.oneof(
    fc.record({ id: ids, client: fc.option(client) }),
    fc.record({ id: ids, principal: fc.option(principal) }),
  )
  const scene = fc.record({
    clients: fc.array(client, { maxLength: 3 }),
    people: fc.array(principal, { maxLength: 3 }),
    changes: fc.array(change, { minLength: 1, maxLength: 6 }),
  })
  fc.assert(
    fc.property(scene, ({ clients, people, changes }) => {
      const view = new Configuration()
      view.set('client', 'boss', clientOf({ roles: ['system:owner'], secrets: [] }))
      const personOf = (id: number, value: Partial<Principal>): Principal =>
        principalOf(`p${id}@example.com`, value)
      clients.forEach((value, i) => view.set('client', `c${i}`, value))
      people.forEach((value, i) => view.set('principal', `p${i}`, personOf(i, value)))
      let epoch = 2
      for (const one of changes) {
        const type = 'client' in one ? 'client' : 'principal'
        const key = `${type[0]}${one.id}`
        const of = 'client' in one ? one.client : one.principal && personOf(one.id, one.principal)
        const after = of === null ? null : { ...of, sessionEpoch: epoch++ }
        const there = view.get<object>(type, key)?.value ?? null
        const could = canSignIn(view)
        view.set(type, key, after)
        const could2 = canSignIn(view)
        view.set(type, key, there)
        const answer = view.change(type, key, after, BOSS)
        const expected = could && !could2 ? 'LAST_OWNER' : 'ok'
        if (answer === 'NOT_FOUND' || answer === 'CONFLICT') continue
        if (answer !== expected) throw new Error(`${key} ${JSON.stringify(after)}: ${answer}`)
        if (answer === 'ok') made++
        else kept++
      }
    }),
    { numRuns: 3_000 },
  )
  t.ok(made > 1_000, `${made} changes were made`)
  t.ok(kept > 100, `${kept} were refused`)
  t.end()
})

t.test('an owner’s password is worth what there is to sign in with', (t) => {
  const view = new Configuration()
  view.set('client', 'boss', clientOf({ roles: ['system:owner'] }))
  view.set('principal', 'ada', principalOf('ada@example.com', { roles: ['system:owner'] }))
  const { properties } = clientOf()
  const codes = { ...properties, grantTypes: ['authorization_code' as const] }
  const shop = clientOf({ properties: { ...codes, redirectUris: [BACK] } })
  t.equal(view.change('client', 'boss', null, BOSS), 'LAST_OWNER', 'no client to sign in with')
  t.equal(view.change('client', 'shop', shop, BOSS), 'ok')
  const ada: By = { id: 'ada', kind: 'principal', clientId: 'shop', scope: null }
  t.equal(view.change('client', 'boss', null, ada), 'ok', 'now there is one')
  const suspended = { ...shop, suspendedAt: AT, sessionEpoch: 1 }
  t.equal(view.change('client', 'shop', suspended, ada), 'LAST_OWNER', 'which stays open')
  t.equal(view.change('client', 'shop', null, ada), 'LAST_OWNER', 'and there')
  const narrow = { ...shop, properties: { ...shop.properties, scopes: ['iam/clients:*'] } }
  t.equal(view.change('client', 'shop', narrow, ada), 'LAST_OWNER', 'and wide enough')
  t.equal(view.change('client', 'other', shop, ada), 'ok')
  t.equal(view.change('client', 'shop', null, ada), 'ok', 'or another one is')
  t.end()
})
