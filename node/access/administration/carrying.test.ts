// Who may decide who gets what a client carries: what its people have, cut to its scopes. Source:
// CONTRACT 1.8 "A client carries what its people have".

import t from 'tap'
import type { Client } from '../client.ts'
import { Configuration, roleOf, secretOf } from './testing/configuration.ts'
import type { By } from './testing/configuration.ts'
import { AT, clientOf } from './testing/scene.ts'

const GOOD = 'https://shop.example/back'
const EVIL = 'https://elsewhere.example/back'
const BOSS: By = { id: 'boss', kind: 'client', clientId: 'boss', scope: null }
const CLERK: By = { id: 'clerk', kind: 'client', clientId: 'clerk', scope: null }
const OWN = clientOf({
  properties: { name: 'shop', redirectUris: [GOOD], grantTypes: ['authorization_code'] },
  secrets: [secretOf('good')],
})
/** `scopes` of a client that carries all that its people have. */
const ALL = null

t.test('who may decide who gets what a client carries', (t) => {
  const boss = { ...OWN, properties: { ...OWN.properties, name: 'x' } }
  t.equal(changed(ALL, boss), 'ok', 'its name is nobody else’s matter')
  t.equal(changed(ALL, { ...OWN, suspendedAt: AT, sessionEpoch: 1 }), 'ok', 'nor that it is closed')
  t.equal(changed(ALL, null), 'ok', 'nor that it goes')
  const shut = { suspendedAt: AT, sessionEpoch: 1 }
  const open = { ...OWN, sessionEpoch: 1 }
  t.equal(changed(ALL, open, CLERK, shut), 'FORBIDDEN', 'but that it is open again')
  t.equal(changed(ALL, open, BOSS, shut), 'ok')
  t.equal(changed(['registry:read'], open, CLERK, shut), 'ok')
  const { properties } = OWN
  const others: [Partial<Client['properties']>, string][] = [
    [{ redirectUris: [GOOD, EVIL] }, 'where codes go'],
    [{ grantTypes: ['refresh_token'] }, 'what it may ask for'],
    [{ tokenEndpointAuthMethod: 'none' }, 'how it shows who it is'],
    [{ tokenEndpointAuthMethod: 'client_secret_post' }, 'or so'],
    [{ jwks: { keys: [] } }, 'by which keys'],
    [{ scopes: ['registry:read'] }, 'how far it goes'],
  ]
  for (const [more, what] of others) {
    const secrets = more.tokenEndpointAuthMethod === 'none' ? [] : OWN.secrets
    const to = { ...OWN, secrets, properties: { ...properties, ...more } }
    t.equal(changed(ALL, to), 'FORBIDDEN', what)
    t.equal(changed(ALL, to, BOSS), 'ok', `${what}: an owner`)
    const narrow = { ...BOSS, scope: 'iam/clients:write registry:*' }
    t.equal(changed(ALL, to, narrow), 'FORBIDDEN', `${what}: an owner's narrow token`)
  }
  const second = { ...OWN, secrets: [...OWN.secrets, secretOf('second')] }
  t.equal(changed(ALL, second), 'FORBIDDEN', 'another secret')
  t.equal(changed(ALL, { ...OWN, secrets: [] }), 'FORBIDDEN', 'one less')
  t.equal(changed(['registry:read'], second), 'ok', 'where it carries what one holds')
  t.equal(changed(['region@graph:query'], second), 'FORBIDDEN', 'whatever people are said to be')
  t.equal(changed(['cluster:read'], second), 'FORBIDDEN')
  const wider = { ...second, properties: { ...properties, scopes: ['registry/a:read'] } }
  t.equal(changed(['cluster:read'], wider), 'FORBIDDEN', 'nor is it first made to carry less')
  t.end()
})

t.test('who may make a client that people sign in with', (t) => {
  const { properties } = OWN
  for (const grant of ['authorization_code', 'implicit', 'refresh_token'] as const) {
    const make = (more?: string[]): string => {
      const own = { ...properties, grantTypes: [grant] }
      const value = { ...OWN, properties: { ...own, ...(more && { scopes: more }) } }
      return clerk().change('client', 'new', value, CLERK)
    }
    t.equal(make(), 'FORBIDDEN', `${grant}, for all that people have`)
    t.equal(make(['graph/order:query']), 'FORBIDDEN', 'for what one doesn’t hold')
    t.equal(make(['registry/a:read', 'iam/clients:write']), 'ok', 'for what one holds')
    t.equal(make([]), 'ok', 'for nothing')
  }
  const alone = { ...properties, grantTypes: ['client_credentials' as const] }
  const byItself = { ...OWN, properties: alone }
  const view = clerk()
  t.equal(view.change('client', 'new', byItself, CLERK), 'ok', 'one that has no people')
  t.equal(view.change('client', 'new', OWN, CLERK), 'FORBIDDEN', 'and gets them')
  t.end()
})

/** With an owner, and a clerk who may change clients and all of the registry. */
function clerk(): Configuration {
  const view = new Configuration()
  view.set('client', 'boss', clientOf({ roles: ['system:owner'], secrets: [secretOf('good')] }))
  view.set('role', 'iam:admin', roleOf(['iam/clients:*', 'registry:*']))
  view.set('client', 'clerk', clientOf({ roles: ['iam:admin'] }))
  return view
}

/** What is said to a change of a client of people with these scopes. */
function changed(
  most: readonly string[] | null,
  to: Client | null,
  by: By = CLERK,
  was: Partial<Client> = {},
): string {
  const view = clerk()
  const scoped = (client: Client): Client => {
    const { scopes: own = most } = client.properties
    if (own === null) return client
    return { ...client, properties: { ...client.properties, scopes: [...own] } }
  }
  view.set('client', 'shop', scoped({ ...OWN, ...was }))
  return view.change('client', 'shop', to === null ? null : scoped(to), by)
}
