// Nobody gets, by changing clients and roles, a token that covers more than they hold: neither of a
// client that signs in by itself, nor of people who sign in with one. Against a plain reading of
// entries, over random administrators, clients and changes. Source: CONTRACT 1.8 "Nobody gives more
// than they hold".

import t from 'tap'
import fc from 'fast-check'
import type { Client } from '../client.ts'
import { Configuration, roleOf, secretOf } from './testing/configuration.ts'
import type { By } from './testing/configuration.ts'
import { AT, clientOf, principalOf } from './testing/scene.ts'

const GOOD = 'https://shop.example/back'
const EVIL = 'https://elsewhere.example/back'

const ATOMS = [
  ...['graph/order:query', 'graph/delivery:query', 'registry/a:read', 'registry/a:write'],
  ...['registry/b:read', 'iam/clients:write', 'iam/roles:write', 'cluster:read'],
]
const WIDE = [
  ...['graph:query', 'graph:*', 'registry/a:*', 'registry:read', 'registry:*', '*:*'],
  ...['region@graph/order:query', 'iam/clients/c1:write'],
]

type Atoms = ReadonlySet<string>

/** What an entry opens. `byAttribute`: whoever has it may be said to be anything. */
function opens(entry: string, atom: string, byAttribute: boolean): boolean {
  if (entry === '*:*') return true
  if (entry.includes('@') && !byAttribute) return false
  const [resource, permission] = entry.slice(entry.indexOf('@') + 1).split(':') as [string, string]
  const [place, asked] = atom.split(':') as [string, string]
  return (
    (place === resource || place.startsWith(`${resource}/`)) &&
    (permission === '*' || permission === asked)
  )
}

function opened(entries: readonly string[], byAttribute = false): Atoms {
  return new Set(ATOMS.filter((atom) => entries.some((one) => opens(one, atom, byAttribute))))
}

function both(one: Atoms, other: Atoms): Atoms {
  return new Set([...one].filter((atom) => other.has(atom)))
}

interface RoleValue {
  readonly acl: { readonly entries: readonly { resource: string; permission: string }[] }
}

function ofRoles(view: Configuration, roles: readonly string[]): Atoms {
  const entries = roles.flatMap((key) => {
    if (key === 'system:owner') return ['*:*']
    const role = view.get<RoleValue>('role', key)?.value
    return (role?.acl.entries ?? []).map((one) => `${one.resource}:${one.permission}`)
  })
  return opened(entries)
}

/** What a client gets by itself. */
function ofClient(view: Configuration, { roles, properties: { scopes } }: Client): Atoms {
  const own = ofRoles(view, roles)
  return scopes === undefined ? own : both(own, opened(scopes))
}

/** What comes of clients that somebody has a secret or a key of, or gets the codes of. */
function taken(view: Configuration): Atoms {
  const atoms = new Set<string>()
  for (const { value } of view.all<Client>('client')) {
    const { grantTypes, redirectUris, scopes, jwks, tokenEndpointAuthMethod } = value.properties
    if (value.suspendedAt !== null) continue
    const isShown =
      tokenEndpointAuthMethod === 'private_key_jwt'
        ? (jwks?.keys ?? []).some((key) => key['n'] === 'evil')
        : tokenEndpointAuthMethod !== 'none' && value.secrets.some(({ hash }) => hash === 'evil')
    if (isShown && grantTypes.includes('client_credentials')) {
      for (const atom of ofClient(view, value)) atoms.add(atom)
    }
    const isForPeople = grantTypes.some((grant) => grant !== 'client_credentials')
    if (isForPeople && (isShown || redirectUris.includes(EVIL))) {
      // Of somebody who may do everything.
      for (const atom of opened(scopes ?? ['*:*'], true)) atoms.add(atom)
    }
  }
  return atoms
}

const entries = fc.uniqueArray(
  fc.oneof(fc.constantFrom(...ATOMS), fc.constantFrom(...ATOMS), fc.constantFrom(...WIDE)),
  { maxLength: 4 },
)
const scopes = fc.option(entries, { nil: undefined })
const ROLES = ['r:0', 'r:1', 'r:2', 'r:3']
const roles = fc.uniqueArray(fc.constantFrom(...ROLES, ...ROLES, 'system:owner'), { maxLength: 2 })
const grants = fc.uniqueArray(
  fc.constantFrom('authorization_code', 'client_credentials', 'implicit', 'refresh_token'),
  { maxLength: 3 },
)
const methods = fc.constantFrom(
  ...([undefined, 'client_secret_post', 'none', 'private_key_jwt'] as const),
)
const redirects = fc.uniqueArray(fc.constantFrom(GOOD, EVIL), { maxLength: 2 })
const keys = fc.constantFrom(undefined, 'good', 'evil')

const properties = fc
  .record({ scopes, grants, methods, redirects, keys })
  .map((given): Client['properties'] => ({
    ...{ name: 'a client', redirectUris: given.redirects, grantTypes: given.grants },
    ...(given.scopes !== undefined && { scopes: given.scopes }),
    ...(given.methods !== undefined && { tokenEndpointAuthMethod: given.methods }),
    ...(given.keys !== undefined && { jwks: { keys: [{ kty: 'RSA', n: given.keys }] } }),
  }))

const often = fc.integer({ min: 0, max: 3 }).map((n) => n === 0)

/**
 * As an owner made it: nobody else has anything of it; or one that was shut because somebody has.
 */
const honest = fc.record({ properties, roles, isLost: often }).map((made): Client => {
  const { tokenEndpointAuthMethod: method, ...others } = made.properties
  const isPublic = method === 'none'
  const grantTypes = isPublic
    ? others.grantTypes.filter((grant) => grant !== 'client_credentials')
    : others.grantTypes
  const keyed = { jwks: { keys: [{ kty: 'RSA', n: 'good' }] } }
  return clientOf({
    properties: {
      ...{ ...others, ...keyed, redirectUris: [made.isLost ? EVIL : GOOD], grantTypes },
      ...(method !== undefined && { tokenEndpointAuthMethod: method }),
    },
    roles: made.roles,
    secrets: isPublic ? [] : [secretOf(made.isLost ? 'evil' : 'good')],
    suspendedAt: made.isLost ? AT : null,
  })
})

interface Administrator {
  readonly roles: readonly string[]
  /** Of the token; null: all that it has. */
  readonly scope: readonly string[] | null
  /** It can sign in again, with more than this token. */
  readonly hasSecret: boolean
  readonly isPerson: boolean
}
const administrator: fc.Arbitrary<Administrator> = fc.record({
  roles: fc.uniqueArray(fc.constantFrom(...ROLES), { maxLength: 2 }),
  scope: fc.oneof(fc.constant(null), fc.constant(null), entries),
  hasSecret: fc.boolean(),
  isPerson: fc.boolean(),
})

const OWNERS = ['c0', 'c1']
const key = fc.constantFrom(...OWNERS, ...OWNERS, ...OWNERS, 'n0', 'mal0', 'app')
const part = fc.constantFrom(
  'scopes',
  'redirectUris',
  'grantTypes',
  'jwks',
  'tokenEndpointAuthMethod',
)
type Step =
  | {
      readonly is: 'put'
      readonly key: string
      readonly given: Client['properties']
      readonly parts: readonly string[]
    }
  | {
      readonly is: 'secret' | 'restore' | 'rename' | 'suspend' | 'resume' | 'drop' | 'less'
      readonly key: string
    }
  | { readonly is: 'roles'; readonly key: string; readonly roles: readonly string[] }
  | { readonly is: 'role'; readonly role: string; readonly entries: readonly string[] }
const of = <T extends string>(is: T) => fc.constant(is)
const put = fc.record({
  ...{ is: of('put'), key, given: properties },
  parts: fc.uniqueArray(part, { minLength: 1, maxLength: 3 }),
})
const simple = fc.record({
  is: fc.constantFrom(
    ...([
      'secret',
      'secret',
      'restore',
      'restore',
      'rename',
      'suspend',
      'resume',
      'drop',
      'less',
    ] as const),
  ),
  key,
})
const step: fc.Arbitrary<Step> = fc.oneof(
  ...[put, put, simple],
  fc.record({ is: of('roles'), key, roles }),
  fc.record({ is: of('role'), role: fc.constantFrom(...ROLES), entries }),
)

const BOSS: By = { id: 'boss', kind: 'client', clientId: 'boss', scope: null }

interface Setting {
  readonly view: Configuration
  readonly callers: readonly By[]
  readonly made: ReadonlyMap<string, Client>
  /** What they hold together, before any of them has changed anything. */
  readonly held: Atoms
}

function settingOf(
  granted: readonly (readonly string[])[],
  owners: readonly Client[],
  administrators: readonly Administrator[],
): Setting {
  const view = new Configuration()
  for (const [i, texts] of granted.entries()) view.set('role', ROLES[i]!, roleOf(texts))
  view.set('role', 'iam:admin', roleOf(['iam/clients:write', 'iam/clients:delete']))
  view.set('role', 'iam:roles', roleOf(['iam/roles:write']))
  view.set('client', 'boss', clientOf({ roles: ['system:owner'], secrets: [secretOf('good')] }))
  view.set('client', 'app', clientOf({ secrets: [secretOf('good')] }))
  const made = new Map(owners.map((client, i) => [OWNERS[i]!, client]))
  for (const [name, client] of made) view.set('client', name, client)
  const held = new Set<string>()
  const callers = administrators.map((one, i): By => {
    const id = `mal${i}`
    const all = [...one.roles, 'iam:admin', ...(i === 0 ? ['iam:roles'] : [])]
    const scope = one.scope === null ? null : one.scope.join(' ')
    const secrets = [secretOf(one.hasSecret ? 'evil' : 'good')]
    if (one.isPerson) view.set('principal', id, principalOf(`${id}@x.se`, { roles: all }))
    else view.set('client', id, clientOf({ roles: all, secrets }))
    const own = ofRoles(view, all)
    const isAll = one.scope === null || (one.hasSecret && !one.isPerson)
    for (const atom of isAll ? own : both(own, opened(one.scope))) held.add(atom)
    const kind = one.isPerson ? 'principal' : 'client'
    return { id, kind, clientId: one.isPerson ? 'app' : id, scope }
  })
  return { view, callers, made, held }
}

/** What a step makes of a client; undefined: it doesn't apply. */
function becomes(step: Step, before: Client | null, original: Client | undefined) {
  if (step.is === 'role') return undefined
  if (step.is === 'put') {
    if (before === null) return clientOf({ properties: step.given, secrets: [] })
    const given = Object.fromEntries(
      step.parts.map((name) => [name, step.given[name as keyof Client['properties']]]),
    )
    const merged = JSON.parse(JSON.stringify({ ...before.properties, ...given })) as never
    return { ...before, properties: merged }
  }
  if (before === null) return undefined
  const epoch = (before.sessionEpoch ?? 0) + 1
  switch (step.is) {
    case 'secret':
      return { ...before, secrets: [secretOf('evil'), ...before.secrets].slice(0, 3) }
    case 'less':
      return { ...before, secrets: before.secrets.slice(1) }
    case 'restore':
      return original && { ...before, properties: original.properties }
    case 'rename':
      return { ...before, properties: { ...before.properties, name: 'another' } }
    case 'suspend':
      return { ...before, suspendedAt: AT, sessionEpoch: epoch }
    case 'resume':
      return { ...before, suspendedAt: null }
    case 'drop':
      return null
    case 'roles':
      return { ...before, roles: [...step.roles] }
  }
}

t.test('no changes lead to a token of more than who makes them holds', (t) => {
  let done = 0
  let refused = 0
  const run = (
    setting: Setting,
    steps: readonly { readonly by: number; readonly step: Step }[],
  ) => {
    const { view, callers, made, held } = setting
    const tooMuch = (): string[] => [...taken(view)].filter((atom) => !held.has(atom))
    if (tooMuch().length > 0) throw new Error('something is taken to begin with')
    for (const { by, step } of steps) {
      const caller = step.is === 'restore' ? BOSS : callers[by % callers.length]!
      const type = step.is === 'role' ? 'role' : 'client'
      const name = step.is === 'role' ? step.role : step.key
      const there = view.get<Client>('client', name)?.value ?? null
      const value = step.is === 'role' ? roleOf(step.entries) : becomes(step, there, made.get(name))
      if (value === undefined) continue
      const answer = view.change(type, name, value, caller)
      if (answer === 'ok' && caller !== BOSS) done++
      else if (answer === 'FORBIDDEN') refused++
      const more = tooMuch()
      if (more.length > 0) throw new Error(`${JSON.stringify(step)} gives ${more.join(' ')}`)
    }
  }
  const scene = fc.record({
    granted: fc.array(entries, { minLength: 4, maxLength: 4 }),
    owners: fc.array(honest, { minLength: 2, maxLength: 2 }),
    administrators: fc.array(administrator, { minLength: 1, maxLength: 2 }),
    steps: fc.array(fc.record({ by: fc.nat(1), step }), { minLength: 10, maxLength: 40 }),
  })
  fc.assert(
    fc.property(scene, ({ granted, owners, administrators, steps }) => {
      run(settingOf(granted, owners, administrators), steps)
    }),
    { numRuns: 3_000 },
  )
  t.ok(done > 500, `${done} changes were made`)
  t.ok(refused > 500, `${refused} were refused`)
  t.end()
})
