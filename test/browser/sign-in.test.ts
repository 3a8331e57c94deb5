// Signing people in, in a browser with its scripts switched off: first password, consent, and the
// way back to an application. Source: CONTRACT 1.11 "Pages".

import t from 'tap'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Browser, Page } from 'puppeteer-core'
import { addPerson, register } from '../harness/identities.ts'
import { NodeProcess } from '../harness/node-process.ts'
import { openBrowser } from './chromium.ts'

const EMAIL = 'ada@shop.example'
const PASSWORD = 'three odd lamps hum'
const NAME = '<b>Corner</b> & "Shop"'
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'

t.setTimeout(280_000)

const found = await openBrowser(t)
const skip = 'skipped' in found ? found.skipped : false
const browser = found as Browser

/** An application: what it was called back with; then it leads on to another place of its own. */
async function application(): Promise<{ port: number; calls: URL[] }> {
  const calls: URL[] = []
  const server = createServer((request, response) => {
    const url = new URL(request.url!, 'http://127.0.0.1')
    if (url.pathname === '/cb') {
      calls.push(url)
      response.writeHead(303, { Location: `http://localhost:${port}/home` }).end()
    } else response.writeHead(200, { 'Content-Type': 'text/html' }).end('<h1>Back</h1>')
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  const { port } = server.address() as AddressInfo
  return { port, calls }
}

const node = new NodeProcess()
t.teardown(() => node.clear())
const app = await application()
let temporary = ''
let clientId = ''
if (skip === false) {
  await node.start()
  const client = await register(node, {
    name: NAME,
    redirect_uris: ['http://127.0.0.1/cb'],
    grant_types: ['authorization_code'],
    token_endpoint_auth_method: 'none',
  })
  clientId = client.id
  const id = '0190c7a0-0000-7000-8000-000000000001'
  temporary = await addPerson(node, { id, email: EMAIL, roles: ['system:owner'] })
}

const address = (more: Record<string, string> = {}): string =>
  `http://127.0.0.1:${node.port}/oauth/authorize?${new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: `http://127.0.0.1:${app.port}/cb`,
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    state: 'a b&c=é<script>',
    scope: 'actors/order:create graph:query',
    ...more,
  }).toString()}`

async function open(more: Record<string, string> = {}): Promise<{ page: Page; faults: string[] }> {
  const page = await browser.newPage()
  t.teardown(() => page.close().catch(() => undefined))
  const faults: string[] = []
  // A policy that stands in the way is told here, and so is a script that ran.
  page.on('console', (message) => void faults.push(message.text()))
  page.on('dialog', (dialog) => {
    faults.push('a dialog')
    void dialog.dismiss()
  })
  await page.setJavaScriptEnabled(false)
  await page.goto(address(more))
  return { page, faults }
}

const text = (page: Page): Promise<string> =>
  page.$eval('main', (main) => (main as unknown as { innerText: string }).innerText)

/** Where pictures of the pages go, for people to look at. */
const PICTURES = process.env['KONTOR_TEST_PICTURES']

async function picture(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return
  for (const [mode, width] of [
    ['light', 900],
    ['dark', 380],
  ] as const) {
    await page.setViewport({ width, height: 760 })
    await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: mode }])
    await page.screenshot({ path: `${PICTURES}/${name}-${mode}.png` as const, fullPage: true })
  }
}

async function press(page: Page, selector: string): Promise<void> {
  await Promise.all([page.waitForNavigation(), page.click(selector)])
}

async function signIn(page: Page, password: string): Promise<void> {
  await page.type('#email', EMAIL)
  await page.type('#password', password)
  await press(page, 'button')
}

t.test('a first sign-in: password, consent, and back to the application', { skip }, async (t) => {
  const { page, faults } = await open()
  await picture(page, 'sign-in')
  await signIn(page, 'not this one')
  t.match(await text(page), /The e-mail address or the password is not right/)
  t.equal(await page.$eval('#email', (field) => (field as { value: string }).value), EMAIL)
  await picture(page, 'wrong')
  await page.type('#password', temporary)
  await press(page, 'button')
  t.match(await text(page), /Choose a password/)
  await picture(page, 'password')
  await page.type('#password', temporary)
  await page.type('#new-password', PASSWORD)
  await page.type('#again', PASSWORD)
  await press(page, 'button')
  const asked = await text(page)
  t.match(asked, `Let ${NAME} in?`)
  t.match(asked, EMAIL)
  t.match(asked, /Create orders/)
  await picture(page, 'consent')
  await press(page, 'button[value=allow]')
  t.equal(page.url(), `http://localhost:${app.port}/home`, 'and on to where it leads')
  const call = app.calls.at(-1)!
  t.equal(call.searchParams.get('state'), 'a b&c=é<script>')
  t.equal(call.searchParams.get('iss'), `http://127.0.0.1:${node.port}`)
  t.match(call.searchParams.get('code'), /^[\w-]{43,}$/)
  t.same(
    faults.filter((fault) => !fault.includes('400')),
    [],
  )
})

t.test('who refuses goes back as well', { skip }, async () => {
  const { page } = await open()
  await signIn(page, PASSWORD)
  await press(page, 'button[value=deny]')
  t.equal(app.calls.at(-1)!.searchParams.get('error'), 'access_denied')
})

t.test(
  'every field has its label, and nothing is too wide for a telephone',
  { skip },
  async (t) => {
    const { page } = await open()
    await page.setViewport({ width: 320, height: 600 })
    const unlabelled = await page.$$eval(
      'input:not([type=hidden])',
      (fields) =>
        fields.filter((field) => (field as unknown as { labels: unknown[] }).labels.length === 0)
          .length,
    )
    t.equal(unlabelled, 0)
    const wide = 'document.documentElement.scrollWidth'
    t.ok(Number(await page.evaluate(wide)) <= 320)
    t.equal(await page.evaluate('document.documentElement.lang'), 'en')
  },
)

t.test('a link that leads nowhere is told on a page', { skip }, async (t) => {
  const { page } = await open({ redirect_uri: 'https://evil.example/cb' })
  t.match(await text(page), /This link does not work/)
  await picture(page, 'refused')
  t.match(page.url(), `http://127.0.0.1:${node.port}/`)
})
