// What a sign-in by an external provider may write, and who else writes logins, as the owner of the
// configuration decides it. Source: CONTRACT 1.8, 1.11 "External sign-in".

import t from 'tap'
import type { Principal } from '../principal.ts'
import { AT, clientOf, identities, principalOf } from './testing/scene.ts'

const BOSS = 'bootstrap'
const ADA = '0198c0de-7000-7abc-8def-0123456789ab'
const BOB = '0198c0de-7000-7abc-8def-0123456789ac'
const LOGIN = { issuer: 'https://id.example', subject: 'u1' }
const OTHER = { issuer: 'https://other.example', subject: 'u1' }
const ada = principalOf('ada@example.com', { roles: ['system:owner'] })

t.test('a sign-in adds one login to a principal, and changes nothing else', async (t) => {
  const { all, put, get } = await identities()
  await all(put('principal', ADA, ada, BOSS))
  const one = async (code: string, change: Partial<Principal>, by = ADA): Promise<void> => {
    const value = { ...ada, ...change }
    t.strictSame(await all(put('principal', ADA, value, by)), [code], JSON.stringify(change))
  }
  await one('FORBIDDEN', { logins: [LOGIN] }, BOB)
  await one('FORBIDDEN', { logins: [LOGIN] }, 'system')
  await one('FORBIDDEN', { logins: [LOGIN, OTHER] })
  await one('FORBIDDEN', { logins: [LOGIN], roles: [] })
  await one('FORBIDDEN', { logins: [LOGIN], sessionEpoch: 1 })
  await one('FORBIDDEN', { logins: [LOGIN], password: null })
  await one('FORBIDDEN', { logins: [LOGIN], accessAttributes: { region: ['x'] } })
  const properties = { ...ada.properties, email: 'eve@example.com' }
  await one('FORBIDDEN', { logins: [LOGIN], properties })
  await one('ok', { logins: [LOGIN] })
  await one('FORBIDDEN', { logins: [LOGIN, { ...LOGIN, subject: 'u2' }] })
  await one('FORBIDDEN', { logins: [OTHER, LOGIN] })
  await one('FORBIDDEN', { logins: [] })
  await one('ok', { logins: [LOGIN, OTHER] })
  t.strictSame(get<Principal>('principal', ADA)?.logins, [LOGIN, OTHER])
})

t.test('who is suspended gets no login, and no two have the same', async (t) => {
  const { all, put } = await identities()
  const bob = principalOf('bob@example.com')
  const shut = { ...bob, suspendedAt: AT, sessionEpoch: 1 }
  await all(put('principal', ADA, ada, BOSS), put('principal', BOB, bob, BOSS))
  const both = await all(
    put('principal', ADA, { ...ada, logins: [LOGIN] }, ADA),
    put('principal', BOB, { ...bob, logins: [LOGIN] }, BOB),
  )
  t.strictSame(both, ['ok', 'ALREADY_EXISTS'], 'decided before the first one was committed')
  t.strictSame(await all(put('principal', BOB, { ...bob, logins: [LOGIN] }, BOSS)), [
    'ALREADY_EXISTS',
  ])
  const ofBoth = await all(
    put('principal', BOB, shut, BOSS),
    put('principal', BOB, { ...shut, logins: [OTHER] }, BOB),
  )
  t.strictSame(ofBoth, ['ok', 'FORBIDDEN'])
})

t.test('a sign-in makes a principal with one login, never an owner', async (t) => {
  const { all, put, drop } = await identities()
  const made = principalOf('ada@example.com', { password: null, logins: [LOGIN] })
  const one = async (code: string, change: Partial<Principal>, by = ADA): Promise<void> => {
    const value = { ...made, ...change }
    t.strictSame(await all(put('principal', ADA, value, by)), [code], JSON.stringify(change))
  }
  await one('FORBIDDEN', {}, BOB)
  await one('FORBIDDEN', { roles: ['system:owner'] })
  await one('FORBIDDEN', { roles: ['shop:clerk', 'system:owner'] })
  await one('FORBIDDEN', { logins: [] })
  await one('FORBIDDEN', { logins: [LOGIN, OTHER] })
  await one('FORBIDDEN', { accessAttributes: { region: ['x'] } })
  await one('FORBIDDEN', { sessionEpoch: 1 })
  await one('FORBIDDEN', { password: { hash: 'h', changedAt: AT, expiresAt: null } })
  await one('ok', { roles: ['shop:clerk'] })
  const again = { ...made, properties: { name: 'B', email: 'ADA@example.com' }, logins: [OTHER] }
  t.strictSame(await all(put('principal', BOB, again, BOB)), ['ALREADY_EXISTS'], 'their address')
  await all(drop('principal', ADA, BOSS))
  await one('CONFLICT', {}, ADA)
})

t.test('administrators give and take logins of those whom they hold', async (t) => {
  const { all, put, signIn } = await identities()
  const entries = [{ resource: 'iam/principals', permission: '*' }]
  await all(put('role', 'iam:admin', { description: '', acl: { entries } }, BOSS))
  await all(put('client', 'admin', clientOf({ roles: ['iam:admin'] }), BOSS))
  signIn('admin')
  const bob = principalOf('bob@example.com')
  await all(put('principal', ADA, ada, BOSS), put('principal', BOB, bob, BOSS))
  const linked = { ...bob, logins: [LOGIN] }
  t.strictSame(
    await all(
      put('principal', ADA, { ...ada, logins: [OTHER] }, 'admin'),
      put('principal', BOB, linked, 'admin'),
      put('principal', BOB, bob, 'admin'),
      put('principal', BOB, { ...bob, sessionEpoch: 1 }, 'admin'),
    ),
    ['FORBIDDEN', 'ok', 'CONFLICT', 'ok'],
    'an owner is beyond them; what is taken away ends sessions',
  )
})

t.test('an owner with an external login alone is not one who stays', async (t) => {
  const { all, put, drop } = await identities()
  const { properties } = clientOf()
  const redirectUris = ['https://shop.example/cb']
  const codes = { ...properties, grantTypes: ['authorization_code' as const], redirectUris }
  await all(put('client', 'web', clientOf({ properties: codes }), BOSS))
  await all(put('principal', ADA, { ...ada, password: null, logins: [LOGIN] }, BOSS))
  t.strictSame(await all(drop('client', BOSS, BOSS)), ['LAST_OWNER'])
  await all(put('principal', BOB, principalOf('b@example.com', { roles: ['system:owner'] }), BOSS))
  t.strictSame(await all(drop('client', BOSS, BOSS)), ['ok'], 'with a password it is')
})
