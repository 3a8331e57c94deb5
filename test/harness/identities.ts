// People and applications on a real node, made as an administrator makes them.

import type { NodeProcess } from './node-process.ts'
import { PlainBrowser } from './plain-browser.ts'

export interface RegisteredClient {
  readonly id: string
  /** null: it has none. */
  readonly secret: string | null
}

export interface NewClient {
  readonly name?: string
  readonly redirect_uris?: readonly string[]
  readonly grant_types: readonly string[]
  readonly token_endpoint_auth_method?: string
  readonly jwks?: object
  /** What it may have at most. */
  readonly scope?: string
}

/** Registers a client (RFC 7591), with these roles. */
export async function register(
  node: NodeProcess,
  client: NewClient,
  roles: readonly string[] = [],
): Promise<RegisteredClient> {
  const answer = await node.ask('/iam/clients', {
    method: 'POST',
    body: { name: 'Test', redirect_uris: [], ...client },
  })
  if (answer.status >= 300) throw new Error(answer.text)
  const made = answer.json<{ client_id: string; client_secret?: string }>()
  if (roles.length > 0) await assign(node, `clients/${made.client_id}`, roles)
  return { id: made.client_id, secret: made.client_secret ?? null }
}

/** Makes a person with a temporary password, and returns that. */
export async function addPerson(
  node: NodeProcess,
  { id, email, roles }: { readonly id: string; readonly email: string; readonly roles: string[] },
): Promise<string> {
  const path = `/resources/iam/principals/${id}`
  const body = { properties: { name: 'Ada', email }, roles }
  const made = await node.ask(path, { method: 'PUT', body, headers: { 'If-Match': '*' } })
  if (made.status >= 300) throw new Error(made.text)
  const reset = await node.ask(`${path}/password/reset`, { method: 'POST' })
  if (reset.status >= 300) throw new Error(reset.text)
  return reset.json<{ temporaryPassword: string }>().temporaryPassword
}

/** The first sign-in of a person: the temporary password is changed on its page. */
export async function choosePassword(
  url: string,
  { email, temporary, password }: Record<'email' | 'temporary' | 'password', string>,
): Promise<PlainBrowser> {
  const browser = new PlainBrowser()
  await browser.open(url)
  await browser.send({ email, password: temporary })
  await browser.send({ email, password: temporary, new_password: password, again: password })
  return browser
}

async function assign(node: NodeProcess, of: string, roles: readonly string[]): Promise<void> {
  const path = `/resources/iam/${of}/roles`
  const answer = await node.ask(path, { method: 'PUT', body: { roles } })
  if (answer.status >= 300) throw new Error(answer.text)
}

/** Somebody new who has signed in through an application, with a token of theirs. */
export async function signedIn(
  node: NodeProcess,
  person: { readonly id: string; readonly email: string; readonly roles: string[] },
): Promise<{ readonly token: string; readonly password: string }> {
  const password = 'three odd lamps hum'
  const redirect_uri = 'https://shop.example/cb'
  const grant_types = ['authorization_code']
  const { id, secret } = await register(node, { grant_types, redirect_uris: [redirect_uri] })
  const asked = new URLSearchParams({ response_type: 'code', client_id: id, redirect_uri })
  const url = `http://127.0.0.1:${node.port}/oauth/authorize?${asked.toString()}`
  const temporary = await addPerson(node, person)
  const browser = await choosePassword(url, { email: person.email, temporary, password })
  const { location } = await browser.send({ decision: 'allow' })
  const code = location?.searchParams.get('code') ?? ''
  const grant = { grant_type: 'authorization_code', code, redirect_uri }
  const client = { client_id: id, client_secret: secret! }
  const answer = await node.form('/oauth/token', { ...grant, ...client })
  if (answer.status !== 200) throw new Error(answer.text)
  return { token: answer.json<{ access_token: string }>().access_token, password }
}
