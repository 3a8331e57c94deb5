// Access with an external provider: people of the shop, an application, and browsers that sign in
// by the provider. All in one process, with a clock that stands still.

import type { Test } from 'tap'
import type { OidcSettings } from '../../../config/settings.ts'
import { CLIENT_ID, CLIENT_SECRET, FakeProvider } from '../../../test/harness/fake-provider.ts'
import type { Operation, OperationRequest, OperationResponse } from '../../http/operation.ts'
import type { Principal } from '../principal.ts'
import { addClient, station } from './station.ts'

export const ADA = '0198c0de-7000-7abc-8def-0123456789ab'
const AT = '2026-01-01T00:00:00.000Z'
const REQUEST = {
  ...{ response_type: 'code', client_id: 'shop', redirect_uri: 'https://shop.example/cb' },
  state: 'st',
}

export function personOf(email: string, more: Partial<Principal> = {}): Principal {
  return {
    properties: { name: 'Ada', email },
    roles: [],
    accessAttributes: {},
    password: null,
    sessionEpoch: 0,
    createdAt: AT,
    suspendedAt: null,
    ...more,
  }
}

/** Ada is there, with the address that her account at the provider has. */
export async function externalScene(t: Test, more: Partial<OidcSettings> = {}) {
  const provider = new FakeProvider()
  const faults: string[] = []
  const setup = await station(t, {
    external: {
      settings: {
        ...{ issuer: provider.issuer, clientId: CLIENT_ID, clientSecret: CLIENT_SECRET },
        ...{ scopes: 'openid email profile', label: 'Example Id', findBy: 'email' },
        ...{ firstSignIn: 'refuse', domains: [], roles: [] },
        ...more,
      },
      fetch: (url, init) => {
        t.equal(init.redirect, 'manual', 'no redirect is followed')
        return provider.fetch(url, init)
      },
      onFault: (why) => void faults.push(why),
    },
  })
  provider.nowMs = () => setup.clock.nowMs
  if (more.issuer !== undefined) provider.issuer = more.issuer
  if (more.clientSecret === null) provider.secret = null
  addClient(setup, 'shop', (first) => ({
    ...first,
    properties: {
      ...{ name: 'Shop', redirectUris: [REQUEST.redirect_uri] },
      grantTypes: ['authorization_code'],
    },
  }))
  const { system } = setup
  system.put('principal', ADA, personOf('ada@shop.example'))
  const get = (id = ADA): Principal => system.system.get<Principal>('principal', id)!.value
  /** Of everybody who is there. */
  const all = (): string => JSON.stringify([...system.system.all('principal')])
  const browser = (address?: string): Browser => new Browser(setup.access.operations, address)
  return { ...setup, provider, faults, get, all, browser }
}

/** A browser without scripts, and its cookie. */
export class Browser {
  readonly #operations: readonly Operation[]
  readonly #address: string
  cookie = ''
  answer: OperationResponse = { status: 0 }
  text = ''

  constructor(operations: readonly Operation[], address = '192.0.2.1') {
    this.#operations = operations
    this.#address = address
  }

  open(more: Readonly<Record<string, string>> = {}): Promise<void> {
    const query = new URLSearchParams({ ...REQUEST, ...more })
    return this.#ask('GET', '/oauth/authorize', { query })
  }

  /** To the provider: the address that it is led to, or '' where a page is shown instead. */
  async leave(more: Readonly<Record<string, string>> = {}): Promise<string> {
    await this.open(more)
    await this.send({ external: 'yes' })
    return this.answer.headers?.['Location'] ?? ''
  }

  /** What the first form of the page carries. */
  get form(): string {
    return /name="form" value="([^"]*)"/.exec(this.text)?.[1] ?? ''
  }

  send(fields: Readonly<Record<string, string>>): Promise<void> {
    const body = new URLSearchParams({ form: this.form, ...fields })
    return this.#ask('POST', '/oauth/authorize', { body, bodyBytes: new Uint8Array(0) })
  }

  return(back: URL): Promise<void> {
    return this.#ask('GET', back.pathname, { query: back.searchParams })
  }

  /** There and back: what is shown at the end, in a few words. */
  async signIn(provider: FakeProvider): Promise<string> {
    const address = await this.leave()
    if (address === '') return this.told
    await this.return(provider.visit(address))
    return this.told
  }

  /** `in` where the person is asked to agree; else the status and what the page says is wrong. */
  get told(): string {
    if (/<h1>Let Shop in\?/.test(this.text)) return 'in'
    return `${this.answer.status} ${/role="alert">([^<]*)</.exec(this.text)?.[1] ?? ''}`
  }

  async #ask(method: string, path: string, parts: object): Promise<void> {
    const operation = this.#operations.find((one) => one.path === path && one.method === method)!
    const headers: Readonly<Record<string, string>> = { cookie: this.cookie }
    const request = {
      header: (name: string) => headers[name] ?? '',
      ...{ requestId: 'r1', address: this.#address, ...parts },
    } as unknown as OperationRequest
    this.answer = await operation.handle(request)
    this.text = String(this.answer.raw ?? '').replaceAll(/\s+/g, ' ')
    this.cookie = this.answer.headers?.['Set-Cookie']?.split(';')[0] ?? this.cookie
  }
}

/** What a page says where somebody isn't let in, by what was wrong. */
export const NOBODY = /^403 Your account at Example Id is not let in here/
export const WRONG = /^400 What Example Id answered does not hold/
export const AWAY = /^503 Example Id can&#39;t be asked at the moment/
export const GONE = /^400 This page is too old, or was opened in another browser/
/** Of the account of whoever signs in first. */
export const LOGIN = { issuer: 'https://id.example', subject: 'u1' }

/** What the person is told, where the provider is made to do something. */
export async function toldWhen(
  t: Test,
  change: (provider: FakeProvider) => void,
  more: Partial<OidcSettings> = {},
): Promise<string> {
  const scene = await externalScene(t, more)
  change(scene.provider)
  const before = scene.all()
  const told = await scene.browser().signIn(scene.provider)
  if (told !== 'in') {
    t.equal(scene.all(), before, 'and nothing was written')
    t.notMatch(scene.faults.join(), /eyJ|u1|ada@/, 'no token and nobody in the log')
  }
  return told
}
