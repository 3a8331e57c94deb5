// Signing in over the node's own TLS, in a browser without scripts: the cookie that ties a person's
// forms to their browser is of this host alone, and no script and no plain connection gets it.
// Source: CONTRACT 1.11 "Pages", RFC 6265 4.1.2.

import t from 'tap'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Browser, Page } from 'puppeteer-core'
import { addPerson, register } from '../harness/identities.ts'
import { NodeProcess } from '../harness/node-process.ts'
import { until } from '../harness/patience.ts'
import { keyAndCertificate } from '../harness/self-signed.ts'
import { openBrowser } from './chromium.ts'

const EMAIL = 'ada@shop.example'
const PASSWORD = 'three odd lamps hum'
const CHALLENGE = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'

t.setTimeout(280_000)

// Nobody has signed the node's certificate.
const found = await openBrowser(t, ['--ignore-certificate-errors'])
const skip = 'skipped' in found ? found.skipped : false
const browser = found as Browser

/** A program on this computer that is called back: with what. */
async function application(): Promise<{ readonly port: number; readonly calls: URL[] }> {
  const calls: URL[] = []
  const server = createServer((asked, response) => {
    calls.push(new URL(asked.url!, 'http://127.0.0.1'))
    response.writeHead(200, { 'Content-Type': 'text/html' }).end('<h1>Back</h1>')
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  return { port: (server.address() as AddressInfo).port, calls }
}

/** The status of a path over TLS; 0: there is no answer. */
function statusOf(port: number, path: string): Promise<number> {
  return new Promise((resolve) => {
    const sent = request({ host: '127.0.0.1', port, path, rejectUnauthorized: false }, (answer) => {
      answer.resume().on('end', () => resolve(answer.statusCode ?? 0))
    })
    sent.on('error', () => resolve(0)).end()
  })
}

/** A node with a person and an application, which then serves over TLS alone. */
async function serve(): Promise<{ port: number; clientId: string; temporary: string }> {
  const plain = new NodeProcess()
  t.teardown(() => plain.clear())
  await plain.start()
  const { id: clientId } = await register(plain, {
    redirect_uris: ['http://127.0.0.1/cb'],
    grant_types: ['authorization_code'],
    token_endpoint_auth_method: 'none',
  })
  const id = '0190c7a0-0000-7000-8000-000000000001'
  const temporary = await addPerson(plain, { id, email: EMAIL, roles: [] })
  await plain.stop()
  const { key, cert } = keyAndCertificate()
  const [keyFile, certFile] = [join(plain.dir, 'key.pem'), join(plain.dir, 'cert.pem')]
  writeFileSync(keyFile, key)
  writeFileSync(certFile, cert)
  const of = { KONTOR_HTTP_TLS_KEY_FILE: keyFile, KONTOR_HTTP_TLS_CERT_FILE: certFile }
  const node = new NodeProcess(of, plain.dir)
  t.teardown(() => node.kill())
  node.launch()
  const portOf = (): number => Number(/is up at https:\/\/[^:]+:(\d+)/.exec(node.output)?.[1] ?? 0)
  await until('it serves over TLS', async () => {
    if (node.exitCode !== null) throw new Error(node.output)
    return portOf() > 0 && (await statusOf(portOf(), '/health/ready')) === 200
  })
  return { port: portOf(), clientId, temporary }
}

async function press(page: Page, selector: string): Promise<void> {
  await Promise.all([page.waitForNavigation(), page.click(selector)])
}

const app = skip === false ? await application() : { port: 0, calls: [] }
const { port, clientId, temporary } =
  skip === false ? await serve() : { port: 0, clientId: '', temporary: '' }
const parameters = {
  response_type: 'code',
  client_id: clientId,
  redirect_uri: `http://127.0.0.1:${app.port}/cb`,
  code_challenge: CHALLENGE,
  code_challenge_method: 'S256',
}
const address = `https://127.0.0.1:${port}/oauth/authorize?${new URLSearchParams(parameters).toString()}`

t.test('RFC 6265 4.1.2: a cookie of this host alone, over TLS alone', { skip }, async (t) => {
  const page = await browser.newPage()
  await page.setJavaScriptEnabled(false)
  const shown = await page.goto(address)
  const attributes = 'Path=/; HttpOnly; SameSite=Lax; Secure'
  t.match(shown!.headers()['set-cookie'], /^__Host-kontor-sign-in=[\w-]{43}; /)
  t.ok(shown!.headers()['set-cookie']!.endsWith(`; ${attributes}`))
  const kept = await browser.cookies()
  t.equal(kept.length, 1)
  t.match(kept[0], {
    name: '__Host-kontor-sign-in',
    ...{ domain: '127.0.0.1', path: '/', session: true },
    ...{ secure: true, httpOnly: true, sameSite: 'Lax' },
  })
  await page.type('#email', EMAIL)
  await page.type('#password', temporary)
  await press(page, 'button')
  await page.type('#password', temporary)
  await page.type('#new-password', PASSWORD)
  await page.type('#again', PASSWORD)
  await press(page, 'button')
  await press(page, 'button[value=allow]')
  const call = app.calls.find(({ pathname }) => pathname === '/cb')!
  t.match(call.searchParams.get('code'), /^[\w-]{64}$/)
  t.equal(call.searchParams.get('iss'), `https://127.0.0.1:${port}`)
  t.equal((await browser.cookies())[0]?.value, kept[0]!.value, 'the same all the way')
})

t.test('without its cookie a form is of no use', { skip }, async (t) => {
  const context = await browser.createBrowserContext()
  const page = await context.newPage()
  await page.setJavaScriptEnabled(false)
  await page.goto(address)
  const kept = await context.cookies()
  t.match(kept, [{ name: '__Host-kontor-sign-in' }])
  await context.deleteCookie(...kept)
  await page.type('#email', EMAIL)
  await page.type('#password', PASSWORD)
  await press(page, 'button')
  const text = await page.$eval('main', (main) => (main as { innerText: string }).innerText)
  t.match(text, /opened in another browser, or cookies are switched off/)
  await context.close()
})
