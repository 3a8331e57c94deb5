// Sign-in by an external provider, there and back, and what is tried on the way: each with the
// section that names it. The provider is a fake one whose every step can be made to do otherwise.

import t from 'tap'
import type { Client } from '../client.ts'
import { Browser, externalScene, GONE, LOGIN, WRONG } from '../testing/external-scene.ts'
import { station } from '../testing/station.ts'

t.test('by a verified address once, from then on by the subject alone', async (t) => {
  const { provider, browser, get, faults } = await externalScene(t)
  const first = browser()
  const address = new URL(await first.leave())
  t.equal(first.answer.status, 303)
  t.equal(address.origin + address.pathname, 'https://id.example/authorize')
  t.match(Object.fromEntries(address.searchParams), {
    ...{ response_type: 'code', client_id: 'kontor', scope: 'openid email profile' },
    redirect_uri: 'http://127.0.0.1:8080/oauth/external/callback',
    ...{ nonce: /^[\w-]{43}$/, code_challenge: /^[\w-]{43}$/, code_challenge_method: 'S256' },
  })
  t.notMatch(address.searchParams.get('state'), /shop|st"/, 'sealed')
  await first.return(provider.visit(address.href))
  t.equal(first.told, 'in')
  t.match(first.text, 'signed in as <strong>ada@shop.example</strong>')
  t.strictSame(get().logins, [LOGIN])
  t.equal(get().sessionEpoch, 0, 'nothing else of her changed')
  await first.send({ decision: 'allow' })
  t.match(
    first.answer.headers?.['Location'],
    /^https:\/\/shop\.example\/cb\?code=[^&]+&state=st&iss=/,
  )
  provider.user = { sub: 'u1', email: 'new@elsewhere.example', email_verified: false }
  t.equal(await browser().signIn(provider), 'in', 'whatever address she has there now')
  t.strictSame(get().logins, [LOGIN])
  t.strictSame(faults, [])
})

t.test('the page has a form of its own for it, beside the password', async (t) => {
  const { browser, provider } = await externalScene(t, { label: '<b>Id</b> & "Co"' })
  const one = browser()
  await one.open()
  t.match(one.text, /<button>Sign in<\/button>.*<\/form> ?<form .*name="external"/)
  t.match(one.text, 'Sign in with &lt;b&gt;Id&lt;/b&gt; &amp; &quot;Co&quot;')
  t.match(one.answer.headers?.['Content-Security-Policy'], "form-action 'self' https:;")
  await one.send({ email: 'ada@shop.example', password: 'x' })
  t.equal(one.told, '400 The e-mail address or the password is not right.')
  t.equal(one.text.match(/id="error"/g)?.length, 1, 'told once')
  t.match(one.text, /name="external"/)
  t.equal(await one.signIn(provider), 'in')
  t.notMatch(one.text, /name="external"/)
  const here = await externalScene(t, { issuer: 'http://127.0.0.1:9000' })
  const two = here.browser()
  await two.open()
  t.match(two.answer.headers?.['Content-Security-Policy'], "form-action 'self' https: http:;")
})

t.test('RFC 9700 4.7: the way back is of the browser that went', async (t) => {
  const { provider, browser, all } = await externalScene(t)
  const [mine, theirs] = [browser(), browser()]
  const back = provider.visit(await mine.leave())
  const before = all()
  await browser().return(back)
  await theirs.leave()
  for (const thief of [browser(), theirs]) {
    await thief.return(back)
    t.match(thief.told, GONE)
  }
  t.equal(all(), before)
  t.equal(provider.asked.token, 0, 'nobody was asked')
  for (const state of ['', 'x', 'x'.repeat(5_000), back.searchParams.get('state')!.slice(1)]) {
    const wrong = new URL(back)
    wrong.searchParams.set('state', state)
    await mine.return(wrong)
    t.match(mine.told, GONE, `state ${state.slice(0, 10)}`)
  }
  t.equal(provider.asked.token, 0)
  await mine.return(back)
  t.equal(mine.told, 'in')
})

t.test('RFC 9700 4.7: a form is no way back, and a way back no form', async (t) => {
  const { provider, browser } = await externalScene(t)
  const one = browser()
  const back = provider.visit(await one.leave())
  for (const fields of [{ email: 'ada@shop.example', password: 'x' }, { external: 'yes' }]) {
    one.text = `name="form" value="${back.searchParams.get('state')!}"`
    await one.send(fields)
    t.match(one.told, GONE)
  }
  await one.open()
  t.equal(one.told, '200 ')
  const asForm = new URL(back)
  asForm.searchParams.set('state', one.form)
  await one.return(asForm)
  t.match(one.told, GONE)
  await one.return(back)
  t.equal(one.told, 'in', 'all the while it was good as what it is')
})

t.test('RFC 9700 4.5: a way back is taken once, also where codes are good twice', async (t) => {
  for (const isLax of [false, true]) {
    const { provider, browser } = await externalScene(t)
    provider.isLax = isLax
    const one = browser()
    const back = provider.visit(await one.leave())
    await one.return(back)
    t.equal(one.told, 'in')
    await one.return(back)
    t.match(one.told, GONE)
  }
})

t.test('RFC 7636 4.5, RFC 9700 4.5: a code of another way is of no use', async (t) => {
  const { provider, browser, faults } = await externalScene(t)
  const [mine, theirs] = [browser(), browser()]
  const back = provider.visit(await mine.leave())
  const stolen = provider.visit(await theirs.leave())
  back.searchParams.set('code', stolen.searchParams.get('code')!)
  await mine.return(back)
  t.match(mine.told, WRONG)
  t.strictSame(faults, [
    'wrong: server responded with an error in the response body (invalid_grant)',
  ])
})

t.test('OpenID Connect Core 3.1.2.1: where PKCE is not looked at the nonce tells', async (t) => {
  const { provider, browser } = await externalScene(t)
  const [mine, theirs] = [browser(), browser()]
  const back = provider.visit(await mine.leave())
  const nonce = new URL(await theirs.leave()).searchParams.get('nonce')
  // Their code was put in, and the provider asked for no verifier.
  provider.claims = { nonce }
  await mine.return(back)
  t.match(mine.told, WRONG)
  provider.claims = {}
  t.equal(await theirs.signIn(provider), 'in')
})

t.test('RFC 9207 2.4: the issuer of an answer', async (t) => {
  const { provider, browser } = await externalScene(t)
  const tell = async (more: Record<string, string>): Promise<string> => {
    const one = browser()
    await one.return(provider.visit(await one.leave(), more))
    return one.told
  }
  t.match(await tell({ iss: 'https://evil.example' }), WRONG, 'another, though none was announced')
  t.equal(await tell({ iss: 'https://id.example' }), 'in')
  t.equal(provider.asked.token, 1, 'the code of a mix-up went nowhere')
  const sure = await externalScene(t)
  sure.provider.metadata = { authorization_response_iss_parameter_supported: true }
  t.match(
    await sure.browser().signIn(sure.provider),
    WRONG,
    'it says that it sends one, and did not',
  )
  t.equal(sure.provider.asked.token, 0)
})

t.test('RFC 6749 4.1.2.1: the provider lets somebody not in', async (t) => {
  const { provider, browser, all } = await externalScene(t)
  const before = all()
  const one = browser()
  const back = provider.visit(await one.leave())
  back.searchParams.delete('code')
  back.searchParams.set('error', 'access_denied')
  back.searchParams.set('error_description', '<script>')
  await one.return(back)
  t.equal(one.told, '403 You were not signed in at Example Id.')
  t.match(one.text, /autocomplete="current-password"/, 'the password still does')
  for (const name of ['code', 'state', 'iss']) {
    const two = browser()
    const twice = provider.visit(await two.leave())
    twice.searchParams.append(name, 'x')
    await two.return(twice)
    t.match(two.told, WRONG, `${name} twice`)
  }
  t.equal(all(), before)
})

t.test('what an application asks for may be too much to go along', async (t) => {
  const { browser, provider } = await externalScene(t)
  const one = browser()
  const scope = Array.from({ length: 200 }, (_, i) => `actors/order:m${i}`).join(' ')
  await one.leave({ state: 'x'.repeat(4_096), scope })
  t.match(one.told, /^400 The application asks for too much at once/)
  t.equal(provider.asked.discovery, 0)
})

t.test('without the settings nobody comes back, and no page offers it', async (t) => {
  const { provider, browser } = await externalScene(t)
  const back = provider.visit(await browser().leave())
  const setup = await station(t)
  const one = new Browser(setup.access.operations)
  await one.return(back)
  t.equal(one.told, '400 Nobody signs in by an external provider here.')
})

t.test('RFC 9700 4.4: a way to a provider that was replaced meanwhile leads nowhere', async (t) => {
  const first = await externalScene(t)
  const one = first.browser()
  const back = first.provider.visit(await one.leave())
  const second = await externalScene(t, { issuer: 'https://other.example' })
  const two = second.browser()
  two.cookie = one.cookie
  await two.return(back)
  t.match(two.told, GONE)
  t.equal(second.provider.asked.discovery, 0, 'the code of the first goes to no other')
})

t.test('an application that is gone meanwhile gets nobody', async (t) => {
  const { provider, browser, system } = await externalScene(t)
  const one = browser()
  const back = provider.visit(await one.leave())
  const shop = system.system.get<Client>('client', 'shop')!.value
  const properties = { ...shop.properties, redirectUris: ['https://shop.example/other'] }
  system.put('client', 'shop', { ...shop, properties })
  await one.return(back)
  t.match(one.told, /^400 The application has given up the address/)
  system.put('client', 'shop', shop)
  const two = browser()
  const late = provider.visit(await two.leave())
  system.put('client', 'shop', { ...shop, suspendedAt: '2026-03-01T00:00:00.000Z' })
  await two.return(late)
  t.match(two.told, /^400 The application is not known here any more/)
})
