// Who may change identities and roles, as the owner of the configuration decides it: nobody gives
// more than they hold, one owner stays, one person has one address. Source: CONTRACT 1.8.

import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import type { Client } from '../client.ts'
import type { Principal } from '../principal.ts'
import { AT, clientOf, identities, OWNER, principalOf } from './testing/scene.ts'
import type { Scene } from './testing/scene.ts'

const BOSS = 'bootstrap'
const ADA = '0198c0de-7000-7abc-8def-0123456789ab'
const BOB = '0198c0de-7000-7abc-8def-0123456789ac'

const role = (...texts: string[]): object => ({
  description: '',
  acl: {
    entries: texts.map((text) => {
      const colon = text.indexOf(':')
      return { resource: text.slice(0, colon), permission: text.slice(colon + 1) }
    }),
  },
})

/** A client that may administer identities, holds `shop:clerk`, and no more. */
async function withAdmin(): Promise<Scene> {
  const scene = await identities()
  const { all, put } = scene
  const iam = ['principals', 'clients', 'roles'].map((one) => `iam/${one}:*`)
  const admin = clientOf({ roles: ['iam:admin', 'shop:clerk'] })
  const made = [
    await all(put('role', 'iam:admin', role(...iam), BOSS)),
    await all(put('role', 'shop:clerk', role('graph/order:query'), BOSS)),
    await all(put('role', 'shop:keeper', role('graph:query'), BOSS)),
    await all(put('client', 'admin', admin, BOSS)),
  ].flat()
  t.strictSame(new Set(made), new Set(['ok']))
  scene.signIn('admin')
  return scene
}

t.test('an administrator gives what it holds, and nothing else', async (t) => {
  const { all, put, drop } = await withAdmin()
  const one = async (code: string, writing: Promise<string>, what: string): Promise<void> =>
    void t.equal((await all(writing))[0], code, what)
  const ada = principalOf('ada@example.com', { roles: ['shop:clerk'] })
  await one('ok', put('principal', ADA, ada, 'admin'), 'a clerk')
  const asOwner = { ...ada, roles: ['system:owner'] }
  await one('FORBIDDEN', put('principal', ADA, asOwner, 'admin'), 'an owner')
  const above = { roles: ['shop:keeper'] }
  const keeper = { ...ada, ...above }
  await one('FORBIDDEN', put('principal', ADA, keeper, 'admin'), 'more of the same')
  await one('FORBIDDEN', put('principal', BOB, principalOf('b@b.se', above), 'admin'), 'a new one')
  const wide = { ...clientOf({ roles: ['iam:admin', 'shop:keeper'] }) }
  await one('FORBIDDEN', put('client', 'admin', wide, 'admin'), 'itself more')
  await one('FORBIDDEN', put('role', 'shop:clerk', role('graph:query'), 'admin'), 'its own role')
  await one(
    'FORBIDDEN',
    put('role', 'a:b', role('region@graph/delivery:query'), 'admin'),
    'by role',
  )
  await one('ok', put('role', 'a:b', role('region@graph/order:query'), 'admin'), 'what it sees all')
  const { properties } = clientOf()
  const scoped = clientOf({ properties: { ...properties, scopes: ['registry:read'] } })
  await one('FORBIDDEN', put('client', 'web', scoped, 'admin'), 'scopes')
  await one('ok', put('principal', BOB, principalOf('bob@example.com', above), BOSS), 'the owner')
  const reset = { hash: 'other', changedAt: AT, expiresAt: AT }
  const bob = principalOf('bob@example.com', { ...above, password: reset, sessionEpoch: 1 })
  await one('FORBIDDEN', put('principal', BOB, bob, 'admin'), 'a password of somebody above')
  const renamed = principalOf('admin@example.com', above)
  await one('FORBIDDEN', put('principal', BOB, renamed, 'admin'), 'their address')
  await one('FORBIDDEN', drop('principal', BOB, 'admin'), 'or who they are at all')
  const extra = { secretId: '2', hash: 'mine', source: 'issued', createdAt: AT, expiresAt: null }
  const key = { ...OWNER, secrets: [...OWNER.secrets, extra] }
  await one('FORBIDDEN', put('client', BOSS, key, 'admin'), 'a secret of an owner')
  await one('ok', drop('principal', ADA, 'admin'), 'its like it deletes')
})

t.test('who sees by attributes gives no role that others see by', async (t) => {
  const { all, put, signIn } = await identities()
  const entry = 'region@graph/order:query'
  await all(put('role', 'see:mine', role(entry, 'iam/roles:write', 'iam/clients:write'), BOSS))
  await all(put('client', 'seer', clientOf({ roles: ['see:mine'] }), BOSS))
  signIn('seer')
  t.strictSame(await all(put('role', 'see:theirs', role(entry), 'seer')), ['FORBIDDEN'])
  const alike = clientOf({ roles: ['see:mine'] })
  t.strictSame(await all(put('client', 'alike', alike, 'seer')), ['ok'], 'its like sees nothing')
})

t.test('a scope narrows what can be given, and without the ACE nothing can', async (t) => {
  const { all, put, drop, signIn } = await withAdmin()
  await all(put('client', 'narrow', clientOf({ roles: ['system:owner'] }), BOSS))
  signIn('narrow', { scope: 'iam/principals:write' })
  const ada = principalOf('ada@example.com')
  t.strictSame(await all(put('principal', ADA, ada, 'narrow')), ['ok'])
  const clerk = { ...ada, roles: ['shop:clerk'] }
  t.strictSame(await all(put('principal', ADA, clerk, 'narrow')), ['FORBIDDEN'])
  t.strictSame(await all(drop('principal', ADA, 'narrow')), ['FORBIDDEN'])
  t.strictSame(await all(put('role', 'a:b', role(), 'narrow')), ['FORBIDDEN'])
  t.strictSame(await all(put('client', 'web', clientOf(), 'narrow')), ['FORBIDDEN'])
  t.strictSame(await all(put('principal', ADA, ada, 'system')), ['FORBIDDEN'], 'nor the runtime')
})

t.test('the last owner stays, also when the last two go at once', async (t) => {
  const { all, put, drop, get } = await identities()
  const suspended = { ...OWNER, suspendedAt: AT, sessionEpoch: 1 }
  t.strictSame(await all(put('client', BOSS, suspended, BOSS)), ['LAST_OWNER'])
  t.strictSame(await all(put('client', BOSS, { ...OWNER, secrets: [] }, BOSS)), ['LAST_OWNER'])
  t.strictSame(await all(put('client', BOSS, { ...OWNER, roles: [] }, BOSS)), ['LAST_OWNER'])
  t.strictSame(await all(drop('client', BOSS, BOSS)), ['LAST_OWNER'])
  const temporary = { hash: 'h', changedAt: AT, expiresAt: '2099-01-01T00:00:00.000Z' }
  const ada = principalOf('ada@example.com', { roles: ['system:owner'], password: temporary })
  t.strictSame(await all(put('principal', ADA, ada, BOSS)), ['ok'])
  t.strictSame(await all(drop('client', BOSS, BOSS)), ['LAST_OWNER'], 'a password that ends')
  const second = principalOf('bob@example.com', { roles: ['system:owner'] })
  t.strictSame(await all(put('principal', BOB, second, BOSS)), ['ok'])
  t.strictSame(await all(drop('client', BOSS, BOSS)), ['LAST_OWNER'], 'nothing to sign in with')
  const { properties } = OWNER
  const codes = { grantTypes: ['authorization_code' as const], redirectUris: ['https://a.se/b'] }
  const shop = clientOf({ properties: { ...properties, ...codes } })
  t.strictSame(await all(put('client', 'shop', shop, BOSS)), ['ok'])
  const both = await all(drop('client', 'shop', BOSS), put('client', BOSS, suspended, BOSS))
  t.strictSame(both, ['ok', 'LAST_OWNER'], 'what one signs in with went at the same time')
  t.strictSame(await all(put('client', 'shop2', shop, BOSS)), ['ok'])
  const last = await all(drop('principal', BOB, BOSS), put('client', BOSS, suspended, BOSS))
  t.strictSame(last, ['ok', 'LAST_OWNER'], 'decided before the first one was committed')
  t.equal(get<Client>('client', BOSS)?.suspendedAt, null)
})

t.test('one person has one address, also when two ask for it at once', async (t) => {
  const { all, put, drop } = await identities()
  const codes = await all(
    put('principal', ADA, principalOf('ada@example.com'), BOSS),
    put('principal', BOB, principalOf('ADA@Example.com'), BOSS),
  )
  t.strictSame(codes, ['ok', 'ALREADY_EXISTS'])
  t.strictSame(await all(put('principal', BOB, principalOf('bob@example.com'), BOSS)), ['ok'])
  t.strictSame(
    await all(put('principal', BOB, principalOf('ada@EXAMPLE.com'), BOSS)),
    ['ALREADY_EXISTS'],
    'by a change, too',
  )
  const swap = await all(
    drop('principal', ADA, BOSS),
    put('principal', BOB, principalOf('ada@example.com'), BOSS),
  )
  t.strictSame(swap, ['ok', 'ok'], 'free as soon as its holder is gone')
  t.strictSame(await all(put('principal', ADA, principalOf('x@y.se'), BOSS)), ['CONFLICT'], 'gone')
})

t.test('sessions that are over do not come back', async (t) => {
  const { all, put } = await identities()
  const ada = principalOf('ada@example.com')
  await all(put('principal', ADA, ada, BOSS))
  const over = { ...ada, suspendedAt: AT }
  t.strictSame(await all(put('principal', ADA, over, BOSS)), ['CONFLICT'], 'the epoch rises')
  t.strictSame(await all(put('principal', ADA, { ...over, sessionEpoch: 1 }, BOSS)), ['ok'])
  t.strictSame(await all(put('principal', ADA, ada, BOSS)), ['CONFLICT'], 'and never falls')
  t.strictSame(await all(put('principal', ADA, { ...ada, sessionEpoch: 1 }, BOSS)), ['ok'])
  const other = { ...ada, password: { hash: 'i', changedAt: AT, expiresAt: null } }
  t.strictSame(
    await all(put('principal', ADA, { ...other, sessionEpoch: 1 }, BOSS)),
    ['CONFLICT'],
    'nor with another password',
  )
  t.strictSame(await all(put('principal', ADA, { ...other, sessionEpoch: 2 }, BOSS)), ['ok'])
  const later = { ...other, sessionEpoch: 2, createdAt: '2026-02-01T00:00:00.000Z' }
  t.strictSame(await all(put('principal', ADA, later, BOSS)), ['FORBIDDEN'], 'nor is it younger')
})

t.test('system clients and roles are not written, nor system roles that are none', async (t) => {
  const { all, put } = await identities()
  t.strictSame(await all(put('client', 'web', clientOf({ isSystem: true }), BOSS)), [
    'SYSTEM_CLIENT',
  ])
  t.strictSame(await all(put('role', 'system:owner', role(), BOSS)), ['SYSTEM_ROLE'])
  t.strictSame(await all(put('role', 'system:mine', role(), BOSS)), ['SYSTEM_ROLE'])
})

t.test('a value of an older program is read and changed', async (t) => {
  const { all, put, get } = await identities()
  const { sessionEpoch: _, ...older } = clientOf({ roles: ['system:owner'] })
  t.strictSame(await all(put('client', 'old', older, BOSS)), ['ok'])
  const now = { ...older, suspendedAt: AT, sessionEpoch: 1 }
  t.strictSame(await all(put('client', 'old', now, BOSS)), ['ok'])
  t.equal(get<Principal>('client', 'old')?.sessionEpoch, 1)
})

t.test('of oneself the password, and nothing else, with it or as one signs in', async (t) => {
  const { all, put, signIn } = await identities()
  const ada = principalOf('ada@example.com', { roles: ['shop:clerk'] })
  const { properties } = clientOf()
  const web = clientOf({ properties: { ...properties, grantTypes: ['authorization_code'] } })
  await all(put('principal', ADA, ada, BOSS), put('client', 'web', web, BOSS))
  const other = (hash: string, sessionEpoch: number, more: Partial<Principal> = {}): Principal => ({
    ...{ ...ada, ...more, sessionEpoch },
    password: { hash, changedAt: AT, expiresAt: null },
  })
  t.strictSame(await all(put('principal', ADA, other('a', 1), BOB)), ['FORBIDDEN'], "another's")
  const signingIn = (value: Principal): Promise<string[]> => all(put('principal', ADA, value, ADA))
  t.strictSame(await signingIn(other('a', 0)), ['FORBIDDEN'], 'its sessions end')
  t.strictSame(await signingIn(other('a', 1, { roles: ['system:owner'] })), ['FORBIDDEN'])
  t.strictSame(await signingIn(other('a', 1)), ['ok'], 'as it signs in, without a session')
  signIn(ADA, { kind: 'principal', clientId: 'web', scope: 'graph:query' })
  t.strictSame(await signingIn(other('b', 2)), ['FORBIDDEN'], 'not in its scope')
  signIn(ADA, { kind: 'principal', clientId: 'web' })
  const wider = other('b', 2, { roles: ['shop:clerk', 'system:owner'] })
  t.strictSame(await signingIn(wider), ['FORBIDDEN'], 'nothing besides')
  t.strictSame(await signingIn(other('b', 2)), ['ok'])
  t.strictSame(await signingIn(other('c', 3)), ['FORBIDDEN'], 'that session ended with it')
})

t.test('a role that is not made yet only an owner gives', async (t) => {
  const { all, put } = await withAdmin()
  const later = { roles: ['shop:clerk', 'shop:later'] }
  const ada = principalOf('ada@example.com', later)
  const refused = await all(
    put('principal', ADA, ada, 'admin'),
    put('client', 'web', clientOf(later), 'admin'),
    put('principal', ADA, ada, BOSS),
    // What somebody has already stays as it is.
    put('principal', ADA, principalOf('other@example.com', later), 'admin'),
  )
  t.strictSame(refused, ['FORBIDDEN', 'FORBIDDEN', 'ok', 'ok'])
})

t.test(
  'roles of one identity have no more entries together than are compiled at once',
  async (t) => {
    const s = await identities()
    const most = LIMITS.protocol.acesMax
    const roleOf = (count: number, name: string): object =>
      role(...Array.from({ length: count }, (_, i) => `registry/${name}${i}:read`))
    const roles = Array.from(
      { length: LIMITS.access.entriesOfIdentityMax / most },
      (_, i) => `a:${i}`,
    )
    const write = (key: string, value: object): Promise<string> => s.put('role', key, value, BOSS)
    await s.all(...roles.map((key) => write(key, roleOf(most, key.slice(2)))))
    await s.all(write('a:one', roleOf(1, 'x')), write('a:none', roleOf(0, 'x')))
    const give = (...keys: string[]): Promise<string> =>
      s.put('client', 'many', clientOf({ roles: keys }), BOSS)
    t.same(await s.all(give(...roles, 'a:one')), ['INVALID_STATE'])
    t.same(await s.all(give(...roles, 'a:none', 'a:unmade')), ['ok'])
    t.same(await s.all(write('a:none', roleOf(1, 'y'))), ['INVALID_STATE'], 'it grows')
    t.same(await s.all(write('a:unmade', roleOf(1, 'y'))), ['INVALID_STATE'], 'it is made')
    t.same(await s.all(write('a:one', roleOf(2, 'y'))), ['ok'], 'nobody has it')
    t.same(await s.all(write('a:0', roleOf(most - 1, '0'))), ['ok'], 'it shrinks')
    t.same(await s.all(write('a:none', roleOf(1, 'y'))), ['ok'])
  },
)

t.test('no client has the id of a principal, and no principal that of a client', async (t) => {
  const { all, put } = await withAdmin()
  const ada = principalOf('ada@example.com')
  const done = await all(
    put('principal', ADA, ada, BOSS),
    put('client', ADA, clientOf(), 'admin'),
    put('client', BOB, clientOf(), BOSS),
    put('principal', BOB, principalOf('bob@example.com'), BOSS),
  )
  t.strictSame(done, ['ok', 'ALREADY_EXISTS', 'ok', 'ALREADY_EXISTS'])
})

t.test('an owner whose keys nothing reads is none', async (t) => {
  const { all, put, drop } = await identities()
  const signing = (key: object): Client => {
    const { properties } = OWNER
    const own = { ...properties, tokenEndpointAuthMethod: 'private_key_jwt' as const }
    const jwks = { keys: [key as Record<string, unknown>] }
    return { ...OWNER, secrets: [], properties: { ...own, jwks } }
  }
  const rsa = (modulusLength: number): object =>
    generateKeyPairSync('rsa', { modulusLength }).publicKey.export({ format: 'jwk' })
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })
  const x25519 = generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' })
  const junk = [{ kty: 'RSA', n: 'x' }, { kty: 'oct', k: 'YQ' }, rsa(1_024), x25519]
  for (const key of [...junk, { ...ec, use: 'enc' }]) {
    await all(put('client', 'signs', signing(key), BOSS))
    t.strictSame(await all(drop('client', BOSS, BOSS)), ['LAST_OWNER'], JSON.stringify(key))
  }
  await all(put('client', 'signs', signing(ec), BOSS))
  t.strictSame(await all(drop('client', BOSS, BOSS)), ['ok'], 'one that can')
})
