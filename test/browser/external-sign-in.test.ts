// Signing in by an external provider, in a browser with its scripts switched off: its cookie goes
// along on the way back, and the policy of the pages lets the forms lead there. Source: CONTRACT
// 1.11 "External sign-in".

import t from 'tap'
import type { Browser } from 'puppeteer-core'
import { CLIENT_ID, CLIENT_SECRET, FakeProvider } from '../harness/fake-provider.ts'
import { addPerson, register } from '../harness/identities.ts'
import { startNode } from '../harness/node-process.ts'
import { openBrowser } from './chromium.ts'

t.setTimeout(280_000)

const found = await openBrowser(t)
const skip = 'skipped' in found ? found.skipped : false
const browser = found as Browser

t.test('there, and back to agree; also where the provider asks nothing', { skip }, async (t) => {
  const provider = await new FakeProvider().listen(t)
  // To a browser another site than the node's, which has the same address.
  provider.issuer = provider.issuer.replace('127.0.0.1', 'localhost')
  const node = await startNode(t, {
    KONTOR_OIDC_ISSUER: provider.issuer,
    KONTOR_OIDC_CLIENT_ID: CLIENT_ID,
    KONTOR_OIDC_CLIENT_SECRET: CLIENT_SECRET,
    KONTOR_OIDC_FIND_BY: 'email',
    KONTOR_OIDC_LABEL: '<b>Example</b> & Co',
  })
  const redirect_uri = 'http://127.0.0.1/cb'
  const client = await register(node, {
    ...{ name: 'Shop', redirect_uris: [redirect_uri], grant_types: ['authorization_code'] },
    token_endpoint_auth_method: 'none',
  })
  const id = '0190c7a0-0000-7000-8000-000000000001'
  await addPerson(node, { id, email: 'ada@shop.example', roles: ['system:portal:full'] })
  const asked = new URLSearchParams({
    ...{ response_type: 'code', client_id: client.id, redirect_uri, code_challenge_method: 'S256' },
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  })
  for (const isSignedIn of [false, true]) {
    provider.isSignedIn = isSignedIn
    const page = await browser.newPage()
    const faults: string[] = []
    page.on('console', (message) => void faults.push(message.text()))
    await page.setJavaScriptEnabled(false)
    await page.goto(`http://127.0.0.1:${node.port}/oauth/authorize?${asked.toString()}`)
    const text = (selector: string): Promise<string> =>
      page.$eval(selector, (one) => (one as unknown as { innerText: string }).innerText)
    const press = (selector: string): Promise<unknown> =>
      Promise.all([page.waitForNavigation(), page.click(selector)])
    t.equal(await text('button[name=external]'), 'Sign in with <b>Example</b> & Co')
    // Fields of the other form are empty, and stand in nobody's way.
    await press('button[name=external]')
    if (!isSignedIn) {
      t.match(page.url(), `${provider.issuer}/authorize?`)
      await press('a')
    }
    t.match(page.url(), `http://127.0.0.1:${node.port}/oauth/external/callback?`)
    t.match(await text('main'), /Let Shop in\?[^]*ada@shop\.example/)
    await page.reload()
    t.match(await text('main'), /This page is too old/, 'a way back is taken once')
    t.same(
      faults.filter((fault) => !fault.includes('400')),
      [],
    )
    await page.close()
  }
})
