// `kontor` against a running node: sign-in as an application and as a person, renewal by two
// commands at once, identities, formats and exit codes.

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { cell } from '../../cli/kontor/output.ts'
import { run } from '../../cli/kontor/program.ts'
import { DEFAULT_URL } from '../../cli/kontor/session-commands.ts'
import type { World } from '../../cli/kontor/world.ts'
import { loadSettings } from '../../config/load.ts'
import { SECRET, startNode } from '../harness/node-process.ts'
import { PlainBrowser } from '../harness/plain-browser.ts'

t.setTimeout(180_000)

const PASSWORD = 'three odd lamps hum'
const EMAIL = 'ada@shop.example'

const node = await startNode(t)
const url = `http://127.0.0.1:${node.port}`

interface Told {
  readonly code: number
  readonly out: string
  readonly said: string
}

/** A machine of its own; the browser is the test's. */
class Machine {
  readonly dir = mkdtempSync(join(tmpdir(), 'kontor-cli-'))
  env: Record<string, string> = { KONTOR_CONFIG_DIR: this.dir, KONTOR_BOOTSTRAP_SECRET: SECRET }
  browser: ((address: string) => Promise<void>) | null = null
  typed = ''
  aheadMs = 0

  get file(): string {
    return join(this.dir, 'profiles.json')
  }

  async run(...args: string[]): Promise<Told> {
    let out = ''
    let said = ''
    const world: World = {
      ...{ env: this.env, home: this.dir, fetch, outIsTerminal: false, sayIsTerminal: false },
      nowMs: () => Date.now() + this.aheadMs,
      out: (text) => void (out += text),
      say: (text) => void (said += text),
      ask: () => Promise.resolve(this.typed),
      openBrowser: async (address) => {
        await this.browser?.(address)
        return this.browser !== null
      },
    }
    return { code: await run(args, world), out, said }
  }

  async json<T>(...args: string[]): Promise<T> {
    const told = await this.run(...args, '-o', 'json')
    if (told.code !== 0) throw new Error(`${args.join(' ')}: ${told.code} ${told.said}`)
    return JSON.parse(told.out) as T
  }
}

function machine(t: { teardown(end: () => void): void }): Machine {
  const one = new Machine()
  t.teardown(() => rmSync(one.dir, { recursive: true }))
  return one
}

type Asserted = Pick<typeof t, 'match' | 'not' | 'same'>

interface Me {
  readonly id: string
  readonly type: string
}

t.test('nobody is signed in at first; wrong arguments are told', async (t) => {
  const m = machine(t)
  t.match(await m.run('whoami'), { code: 3, said: /kontor login/ })
  t.match(await m.run('login', '--url', 'ftp://x'), { code: 2, said: /http/ })
  t.match(await m.run('login', '--url', url), { code: 2, said: /--client-id/ })
  t.match(await m.run('whoami', '-o', 'xml'), { code: 2 })
  t.match(await m.run('nothing'), { code: 2 })
  t.match(await m.run('--help'), { code: 0, out: /Exit codes/ })
  t.match(await m.run('login', '--bootstrap', '--url', 'http://127.0.0.1:9'), { code: 7 })
  const asClient = ['login', '--client-id', 'x', '--client-secret', '--url', url]
  t.match(await m.run(...asClient), { code: 2, said: /secret is empty/ })
  const own = { ok: { http: { baseUrl: DEFAULT_URL } } }
  t.match(
    loadSettings({}, [], () => ''),
    own,
    'a node of no settings is found',
  )
  const other = url.replace('127.0.0.1', 'localhost')
  t.match(await m.run('login', '--bootstrap', '--url', other), {
    code: 1,
    said: `kontor login --url ${url}`,
  })
})

t.test('the first hour: the bootstrap secret, an application for people, a person', async (t) => {
  const m = machine(t)
  t.match(await m.run('login', '--bootstrap', '--url', url), { code: 0 })
  t.equal(statSync(m.file).mode & 0o777, 0o600, 'nobody else reads the tokens')
  t.match(await m.json<Me>('whoami'), { id: 'bootstrap', type: 'client' })
  const make = ['iam', 'principals', 'create', '--name', 'Ada', '--email', EMAIL]
  const ada = await m.json<Me & { temporaryPassword: string }>(...make, '--role', 'system:owner')
  const { clientId } = await m.json<{ clientId: string }>(
    ...['iam', 'clients', 'create', '--name', 'Kontor CLI', '--cli'],
  )
  m.browser = async (address) => {
    const browser = new PlainBrowser()
    await browser.open(address)
    await browser.send({ email: EMAIL, password: ada.temporaryPassword })
    await browser.send({
      ...{ email: EMAIL, password: ada.temporaryPassword },
      ...{ new_password: PASSWORD, again: PASSWORD },
    })
    const back = await new PlainBrowser().agree(address, EMAIL, PASSWORD)
    t.equal((await fetch(back)).status, 200, 'the command listens')
  }
  const login = ['login', '--url', url, '--client-id', clientId, '-p', 'ada']
  t.match(await m.run(...login), { code: 0, said: /profile "ada"/ })
  t.match(await m.json<Me>('whoami'), { id: ada.id, type: 'principal' })

  const table = await m.run('iam', 'principals', 'list')
  t.match(table.out, /E-MAIL[^]*ada@shop\.example/)
  t.equal(cell('Ada\x1b[31m\u202e'), 'Ada?[31m?', 'a name moves no cursor')
  t.same(
    parse((await m.run('iam', 'principals', 'list', '-o', 'yaml')).out),
    await m.json('iam', 'principals', 'list'),
  )
  await renewsOnce(t, m)
  t.match(await m.run('iam', 'principals', 'show', 'nobody@shop.example'), { code: 5 })
  t.match(await m.run('iam', 'roles', 'set', 'shop:reader', 'graph:query', 'me:read'), { code: 0 })
  t.match(await m.run('iam', 'roles', 'set', 'shop:reader', 'me:read'), { said: /Changed/ })
  t.match(await m.run('iam', 'roles', 'set', 'system:mine', 'me:read'), { code: 4 })
  t.match(await m.run('iam', 'roles', 'set', 'shop:odd', 'noresource'), { code: 2 })
  t.match(await m.run('profiles'), { code: 0, out: /\* +ada/ })
  await signsOut(t, m)
})

/** Two commands find the same token expired: one renews it, the other goes by what it got. */
async function renewsOnce(t: Asserted, m: Machine): Promise<void> {
  const before = readFileSync(m.file, 'utf8')
  m.aheadMs = 2 * 3_600_000
  const told = await Promise.all([1, 2, 3].map(() => m.run('whoami')))
  t.same(
    told.map(({ code }) => code),
    [0, 0, 0],
  )
  m.aheadMs = 0
  t.not(readFileSync(m.file, 'utf8'), before)
  t.match(await m.run('whoami'), { code: 0 }, 'the session stands')
}

async function signsOut(t: Asserted, m: Machine): Promise<void> {
  const kept = readFileSync(m.file, 'utf8')
  t.match(await m.run('logout'), { code: 0 })
  t.match(await m.run('whoami'), { code: 3 })
  writeFileSync(m.file, kept)
  t.match(await m.run('whoami'), { code: 3 }, 'its tokens are over')
}

t.test('an application signs in by itself; what it may not do is told', async (t) => {
  const m = machine(t)
  await m.run('login', '--bootstrap', '--url', url)
  await m.run('iam', 'roles', 'set', 'shop:me', 'me:read')
  const made = await m.json<{ clientId: string; client_secret: string }>(
    ...['iam', 'clients', 'create', '--name', 'Job', '--role', 'shop:me'],
  )
  t.match(made, { roles: ['shop:me'] })
  m.env['KONTOR_CLIENT_SECRET'] = made.client_secret
  const login = ['login', '--url', url, '--client-id', made.clientId, '--client-secret']
  t.match(await m.run(...login, '-p', 'job'), { code: 0 })
  t.match(await m.run('iam', 'clients', 'list'), { code: 4, said: /iam\/clients:read/ })
  t.match(await m.run('iam', 'clients', 'suspend', made.clientId, '-p', 'default'), { code: 0 })
  t.match(await m.run('whoami'), { code: 3 })
  m.env['KONTOR_CLIENT_SECRET'] = 'wrong'
  t.match(await m.run(...login), { code: 3 })
  t.match(await m.run('profiles', 'use', 'nobody'), { code: 5 })
})

t.test('what an application asked for holds when its token is renewed; it signs out', async (t) => {
  const m = machine(t)
  const login = ['login', '--bootstrap', '--url', url, '--scope', 'me:read']
  t.match(await m.run(...login), { code: 0 })
  const only = { acl: { entries: [{ resource: 'me', permission: 'read' }] } }
  t.match(await m.json('whoami'), only)
  const before = tokenIn(m)
  m.aheadMs = 2 * 3_600_000
  t.match(await m.json('whoami'), only, 'no more than it asked for')
  t.not(tokenIn(m), before)
  m.aheadMs = 0
  const token = tokenIn(m)
  t.equal((await node.ask('/resources/me', { token })).status, 200)
  t.match(await m.run('logout'), { code: 0, said: /Signed out/ })
  t.equal((await node.ask('/resources/me', { token })).status, 401, 'its session is over')
})

const tokenIn = ({ file }: Machine): string =>
  (JSON.parse(readFileSync(file, 'utf8')) as { profiles: { default: { accessToken: string } } })
    .profiles.default.accessToken

t.test('a node that leads people or secrets elsewhere is not followed', async (t) => {
  const m = machine(t)
  const opened: string[] = []
  m.browser = (address) => Promise.resolve(void opened.push(address))
  let told: Record<string, string> = {}
  const server = createServer((_, response) => {
    const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const own = { authorization_endpoint: `${issuer}/a`, token_endpoint: `${issuer}/t` }
    response.setHeader('Content-Type', 'application/json')
    response.end(JSON.stringify({ issuer, ...own, ...told }))
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => void server.close())
  const there = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  for (told of [
    { authorization_endpoint: 'file:///C:/Windows/System32/calc.exe' },
    { authorization_endpoint: 'javascript:alert(1)' },
    { authorization_endpoint: 'nonsense' },
    { token_endpoint: 'http://127.0.0.1:9/token' },
    { revocation_endpoint: 'https://elsewhere.example/revoke' },
  ]) {
    const said = new RegExp(`${Object.keys(told)[0]} is not at http://127`)
    t.match(await m.run('login', '--url', there, '--client-id', 'x'), { code: 1, said })
  }
  t.same(opened, [])
})

t.test('without a browser an address is shown, and one is pasted', async (t) => {
  const m = machine(t)
  await m.run('login', '--bootstrap', '--url', url)
  const { clientId } = await m.json<{ clientId: string }>(
    ...['iam', 'clients', 'create', '--name', 'Kontor CLI', '--cli'],
  )
  const login = ['login', '--url', url, '--client-id', clientId, '--no-browser', '-p', 'pasted']
  m.typed = 'no address'
  t.match(await m.run(...login), { code: 2, said: /oauth\/authorize\?/ })
  m.typed = 'http://127.0.0.1:1/callback?code=x&state=another'
  t.match(await m.run(...login), { code: 1, said: /state/ }, "another sign-in's answer counts not")
  m.typed = `http://127.0.0.1:1/callback?error=access_denied&error_description=No`
  t.not((await m.run(...login)).code, 0)
})

t.test('a token of the environment; damaged profiles', async (t) => {
  const m = machine(t)
  m.env = { ...m.env, KONTOR_URL: url, KONTOR_TOKEN: await node.token() }
  t.match(await m.json<Me>('whoami'), { id: 'bootstrap' })
  m.env = { ...m.env, KONTOR_URL: 'nowhere' }
  for (const args of [['whoami'], ['login', '--bootstrap']]) {
    t.match(await m.run(...args), { code: 2, said: /KONTOR_URL is nowhere/ }, args.join(' '))
  }
  m.env = { KONTOR_CONFIG_DIR: m.dir }
  writeFileSync(m.file, '{')
  t.match(await m.run('whoami'), { code: 1, said: /damaged/ })
})
