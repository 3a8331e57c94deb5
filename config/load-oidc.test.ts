// Settings of external sign-in, and what is said of mistakes.

import t from 'tap'
import { loadSettings } from './load.ts'
import type { OidcSettings } from './settings.ts'

type Env = Record<string, string>

const loaded = (env: Env) => loadSettings(env, [], () => '')

function oidcOf(env: Env): OidcSettings | null {
  const settings = loaded(env)
  if ('problems' in settings) throw new Error(settings.problems.join())
  return settings.ok.oidc
}

function problems(env: Env): readonly string[] {
  const settings = loaded(env)
  return 'problems' in settings ? settings.problems : []
}

t.test('external sign-in: what belongs together, and what no issuer is', async (t) => {
  const both = { KONTOR_OIDC_ISSUER: 'https://id.example/r/', KONTOR_OIDC_CLIENT_ID: 'kontor' }
  t.equal(oidcOf({}), null)
  t.strictSame(oidcOf(both), {
    ...{ issuer: 'https://id.example/r/', clientId: 'kontor', clientSecret: null },
    ...{ scopes: 'openid email profile', label: 'id.example', findBy: 'subject' },
    ...{ firstSignIn: 'refuse', roles: [], domains: [] },
  })
  const more = {
    ...{ KONTOR_OIDC_FIND_BY: 'email', KONTOR_OIDC_LABEL: 'Id', KONTOR_OIDC_SCOPES: 'openid' },
    ...{ KONTOR_OIDC_FIRST_SIGN_IN: 'make', KONTOR_OIDC_ROLES: 'shop:clerk, shop:read' },
    KONTOR_OIDC_DOMAINS: 'Shop.example, eu.shop.example',
  }
  const domains = ['shop.example', 'eu.shop.example']
  t.match(oidcOf({ ...both, ...more }), {
    label: 'Id',
    roles: ['shop:clerk', 'shop:read'],
    domains,
  })
  const one = (env: Record<string, string>) => problems({ ...both, ...env }).join('\n')
  for (const issuer of [
    ...['http://id.example', 'http://127.0.0.1.example', 'http://10.0.0.1', 'ftp://id.example'],
    ...['https://id.example?x', 'https://id.example#x', 'https://u:p@id.example', 'id.example'],
    'https://id.example/ü',
  ]) {
    const told = one({ KONTOR_OIDC_ISSUER: issuer })
    t.match(told, /^KONTOR_OIDC_ISSUER: .*must be an address that begins with https:\/\//, issuer)
    t.notMatch(told, '\n', 'once')
  }
  for (const issuer of ['http://127.0.0.1:9', 'http://localhost:9', 'http://[::1]:9']) {
    t.equal(one({ KONTOR_OIDC_ISSUER: issuer }), '')
  }
  t.match(problems({ KONTOR_OIDC_LABEL: 'Id' }), [
    /^KONTOR_OIDC_ISSUER: not set, but KONTOR_OIDC_LABEL is/,
  ])
  t.match(problems({ KONTOR_OIDC_ISSUER: 'https://id.example' }), [
    /^KONTOR_OIDC_CLIENT_ID: not set, but KONTOR_OIDC_ISSUER is/,
  ])
  t.match(one({ KONTOR_OIDC_ROLES: 'a:b' }), /ROLES: is set, but KONTOR_OIDC_FIRST_SIGN_IN is not/)
  t.match(one({ KONTOR_OIDC_DOMAINS: 'a.b' }), /DOMAINS: is set, but KONTOR_OIDC_FIRST_SIGN_IN is/)
  for (const domain of ['shop', '@shop.example', 'a@shop.example', '*.shop.example', '*', 'ä.se']) {
    t.match(one({ ...more, KONTOR_OIDC_DOMAINS: domain }), /must be a domain, such as/, domain)
  }
  const owners = { ...more, KONTOR_OIDC_ROLES: 'a:b,system:owner' }
  t.match(one(owners), /^KONTOR_OIDC_ROLES: system:owner is given by an owner/)
  t.match(one({ KONTOR_OIDC_SCOPES: 'email' }), /openid among them/)
  const secret = one({ KONTOR_OIDC_CLIENT_SECRET: 'hunter2\u0007' })
  t.match(secret, /^KONTOR_OIDC_CLIENT_SECRET: this value is not valid/)
})
