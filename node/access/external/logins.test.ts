// Who an account at the provider is here: by its subject, by a verified address once, or made; and
// addresses that lead to nobody. Source: CONTRACT 1.11 "External sign-in".

import t from 'tap'
import { loginName } from '../principal.ts'
import type { Principal } from '../principal.ts'
import {
  ADA,
  externalScene,
  LOGIN,
  NOBODY,
  personOf,
  toldWhen,
  WRONG,
} from '../testing/external-scene.ts'

t.test('OpenID Connect Core 5.7: an address that is not verified links nothing', async (t) => {
  for (const email_verified of [false, 'true', 'false', 1, null, undefined, {}]) {
    const told = await toldWhen(t, (provider) => {
      provider.user = { sub: 'u1', email: 'ada@shop.example', email_verified }
    })
    t.match(told, NOBODY, JSON.stringify(email_verified))
  }
})

t.test('addresses that look alike are not alike', async (t) => {
  for (const email of [
    'аda@shop.example', // Cyrillic
    'ada@ſhop.example', // long s, which folds to s
    'ada@shop.example\u200b',
    'ada@shop.example\n',
    ' ada@shop.example',
    'ada@shop.example,eve@x.se',
    'Ada <ada@shop.example>',
    'ada@shop。example',
    'ada@shop.example'.normalize('NFKC').replace('s', 'ｓ'),
    ['ada@shop.example'],
    { toString: 'ada@shop.example' },
    '',
    `${'a'.repeat(300)}@shop.example`,
  ]) {
    for (const firstSignIn of ['refuse', 'make'] as const) {
      const user = { sub: 'u1', email, email_verified: true }
      const told = await toldWhen(t, (provider) => (provider.user = user), { firstSignIn })
      t.match(told, NOBODY, JSON.stringify(email))
    }
  }
  const told = await toldWhen(t, (provider) => {
    provider.user = { sub: 'u1', email: 'ADA@Shop.Example', email_verified: true }
  })
  t.equal(told, 'in', 'but for the case of ASCII letters')
})

t.test('a recycled address: who has an account there gets no second one by it', async (t) => {
  const { provider, browser, get, system } = await externalScene(t)
  t.equal(await browser().signIn(provider), 'in')
  provider.user = { sub: 'u2', email: 'ada@shop.example', email_verified: true }
  t.match(await browser().signIn(provider), NOBODY)
  t.strictSame(get().logins, [LOGIN])
  // Whoever has the subject is found, whoever has the address.
  system.put('principal', ADA, { ...get(), properties: { name: 'Ada', email: 'x@shop.example' } })
  const bob = '0198c0de-7000-7abc-8def-0123456789ac'
  system.put('principal', bob, personOf('ada@shop.example'))
  provider.user = { sub: 'u1', email: 'ada@shop.example', email_verified: true }
  const one = browser()
  t.equal(await one.signIn(provider), 'in')
  t.match(one.text, 'signed in as <strong>x@shop.example</strong>')
  t.equal(get(bob).logins, undefined)
})

t.test('who is suspended is told what nobody is told', async (t) => {
  const linked = { logins: [LOGIN], suspendedAt: '2026-02-01T00:00:00.000Z' }
  const unlinked = { suspendedAt: '2026-02-01T00:00:00.000Z' }
  const pages = new Set<string>()
  for (const more of [linked, unlinked, null]) {
    const { provider, browser, system } = await externalScene(t)
    const person = more ? personOf('ada@shop.example', more) : personOf('other@shop.example')
    system.put('principal', ADA, person)
    const one = browser()
    t.match(await one.signIn(provider), NOBODY)
    pages.add(one.text.replace(/name="form" value="[^"]*"/g, ''))
  }
  t.equal(pages.size, 1)
})

t.test('found by the subject alone: an address leads to nobody', async (t) => {
  const { provider, browser, get, system } = await externalScene(t, { findBy: 'subject' })
  t.match(await browser().signIn(provider), NOBODY)
  t.equal(get().logins, undefined)
  system.put('principal', ADA, personOf('other@shop.example', { logins: [LOGIN] }))
  t.equal(await browser().signIn(provider), 'in')
})

t.test('OpenID Connect Core 5.7: a subject is of its issuer', async (t) => {
  const { provider, browser, system } = await externalScene(t, { findBy: 'subject' })
  const other = { issuer: 'https://other.example', subject: 'u1' }
  system.put('principal', ADA, personOf('other@shop.example', { logins: [other] }))
  t.match(await browser().signIn(provider), NOBODY)
})

t.test('a first sign-in makes a principal, where that is settled', async (t) => {
  const made = { firstSignIn: 'make', roles: ['shop:clerk'] } as const
  const { provider, browser, system, all } = await externalScene(t, made)
  const before = all()
  provider.user = { sub: 'u9', email: 'bo@shop.example', email_verified: false, name: 'Bo' }
  t.match(await browser().signIn(provider), NOBODY, 'not with an address that is not verified')
  t.equal(all(), before)
  provider.user = { ...provider.user, email_verified: true }
  t.equal(await browser().signIn(provider), 'in')
  const find = (name: string) => system.system.find<Principal>('principal', name)
  const { key, value } = find('bo@shop.example')!
  t.match(key, /^[0-9a-f-]{36}$/)
  t.strictSame(value, {
    properties: { name: 'Bo', email: 'bo@shop.example' },
    roles: ['shop:clerk'],
    accessAttributes: {},
    password: null,
    logins: [{ ...LOGIN, subject: 'u9' }],
    sessionEpoch: 0,
    createdAt: '2026-03-01T12:00:00.000Z',
    suspendedAt: null,
  })
  t.equal(await browser().signIn(provider), 'in')
  t.equal(system.system.size('principal'), 2, 'once')
  for (const [i, name] of ['', ' Bo', 'x'.repeat(201), 7, 'a\nb', undefined].entries()) {
    const email = `n${i}@shop.example`
    provider.user = { sub: `n${i}`, name, email, email_verified: true }
    t.equal(await browser().signIn(provider), 'in')
    t.equal(find(loginName({ ...LOGIN, subject: `n${i}` }))?.value.properties.name, email)
  }
})

t.test('where domains are settled, principals are made of theirs alone', async (t) => {
  const domains = ['shop.example', 'b.example']
  const { provider, browser, all } = await externalScene(t, { firstSignIn: 'make', domains })
  const before = all()
  for (const email of [
    ...['bo@evil.example', 'bo@x.shop.example', 'bo@shop.example.evil.example', 'bo@example'],
    ...['bo@notshop.example', '"bo@shop.example"@evil.example'],
  ]) {
    provider.user = { sub: 'u9', email, email_verified: true }
    t.match(await browser().signIn(provider), NOBODY, email)
  }
  t.equal(all(), before)
  for (const [i, email] of ['bo@Shop.Example', 'bo@b.example'].entries()) {
    provider.user = { sub: `n${i}`, email, email_verified: true }
    t.equal(await browser().signIn(provider), 'in', email)
  }
  provider.user = { sub: 'u1', email: 'ada@other.example', email_verified: true }
  t.match(await browser().signIn(provider), NOBODY)
})

t.test('who is there is found whatever the domain', async (t) => {
  const domains = ['other.example']
  const { provider, browser } = await externalScene(t, { firstSignIn: 'make', domains })
  t.equal(await browser().signIn(provider), 'in')
})

t.test(
  'by the subject, with principals made: an address that somebody has is refused',
  async (t) => {
    const { provider, browser, all } = await externalScene(t, {
      findBy: 'subject',
      firstSignIn: 'make',
    })
    const before = all()
    t.match(await browser().signIn(provider), NOBODY)
    t.equal(all(), before)
  },
)

t.test('two first sign-ins of one person at once are one', async (t) => {
  for (const firstSignIn of ['make', 'refuse'] as const) {
    const { provider, browser, system, get } = await externalScene(t, { firstSignIn })
    if (firstSignIn === 'make') {
      provider.user = { sub: 'u9', email: 'bo@shop.example', email_verified: true }
    }
    // None is written before all have found that it has to be.
    let [count, release] = [0, (): void => undefined]
    const all = new Promise<void>((resolve) => (release = resolve))
    system.before = async () => {
      if (++count === 4) release()
      await all
      return null
    }
    const told = await Promise.all(
      Array.from({ length: 4 }, (_, i) => browser(`192.0.2.${i}`).signIn(provider)),
    )
    t.strictSame(told, ['in', 'in', 'in', 'in'])
    t.equal(system.system.size('principal'), firstSignIn === 'make' ? 2 : 1)
    if (firstSignIn === 'refuse') t.strictSame(get().logins, [LOGIN])
  }
})

t.test('OpenID Connect Core 5.3: an address that only userinfo has', async (t) => {
  const scene = async (userinfo: object, idToken: object) => {
    const { provider, browser, get } = await externalScene(t)
    provider.claims = { email: undefined, email_verified: undefined, ...idToken }
    provider.twists.userinfo = () => Response.json(userinfo)
    return { told: await browser().signIn(provider), login: get().logins }
  }
  const address = { email: 'ada@shop.example', email_verified: true }
  t.match(await scene({ sub: 'u1', ...address }, {}), { told: 'in', login: [LOGIN] })
  const other = await scene({ sub: 'u2', ...address }, {})
  t.match(other, { told: WRONG, login: undefined }, '5.3.2: of another subject')
  const mixed = await scene({ sub: 'u1', email_verified: true }, { email: 'ada@shop.example' })
  t.match(mixed, { told: NOBODY }, 'an address from here is not verified by a word from there')
  const never = await scene({ sub: 'u1', ...address, email_verified: 'true' }, {})
  t.match(never, { told: NOBODY })
})
