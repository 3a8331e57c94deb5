// Client libraries of others against a node, by their usual calls alone: every grant, each way in
// which a client shows who it is, refresh, revocation, introspection and the metadata. One of
// JavaScript (oauth4webapi), one of Python (Authlib). Source: CONTRACT 1.11.

import t from 'tap'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { exportJWK, exportPKCS8, generateKeyPair } from 'jose'
import * as oauth from 'oauth4webapi'
import { addPerson, choosePassword, register } from '../../harness/identities.ts'
import type { RegisteredClient } from '../../harness/identities.ts'
import { startNode } from '../../harness/node-process.ts'
import { PlainBrowser } from '../../harness/plain-browser.ts'
import { python } from './python.ts'

const REDIRECT = 'http://127.0.0.1:7777/cb'
const EMAIL = 'ada@shop.example'
const PASSWORD = 'three odd lamps hum'
const SCOPE = 'graph:query me:read'
const OWNER = 'system:owner'

t.setTimeout(280_000)

const node = await startNode(t)
const issuer = `http://127.0.0.1:${node.port}`
const pair = await generateKeyPair('RS256', { extractable: true })
const codes = { redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'] }
const jwks = { keys: [await exportJWK(pair.publicKey)] }

const made: Record<string, RegisteredClient> = {}
for (const method of ['client_secret_basic', 'client_secret_post', 'none', 'private_key_jwt']) {
  const keys = method === 'private_key_jwt' ? { jwks } : {}
  made[method] = await register(node, { ...codes, token_endpoint_auth_method: method, ...keys })
}
/** Those that act by themselves. */
const machines: Record<string, RegisteredClient> = {}
for (const method of ['client_secret_basic', 'client_secret_post', 'private_key_jwt']) {
  const of = { grant_types: ['client_credentials'], token_endpoint_auth_method: method }
  const keys = method === 'private_key_jwt' ? { jwks } : {}
  machines[method] = await register(node, { ...of, ...keys }, [OWNER])
}

const id = '0190c7a0-0000-7000-8000-000000000001'
const temporary = await addPerson(node, { id, email: EMAIL, roles: [OWNER] })
const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
const first = new URLSearchParams({
  response_type: 'code',
  client_id: made['none']!.id,
  redirect_uri: REDIRECT,
  code_challenge: challenge,
  code_challenge_method: 'S256',
})
await choosePassword(`${issuer}/oauth/authorize?${first.toString()}`, {
  email: EMAIL,
  temporary,
  password: PASSWORD,
})

const visit = (url: string): Promise<URL> => new PlainBrowser().agree(url, EMAIL, PASSWORD)

async function works(token: string): Promise<number> {
  return (await node.ask('/resources/graph/meta', { token })).status
}

/** The server is on this machine, without TLS. */
const http = { [oauth.allowInsecureRequests]: true }

async function discover(): Promise<oauth.AuthorizationServer> {
  const address = new URL(issuer)
  const answer = await oauth.discoveryRequest(address, { algorithm: 'oauth2', ...http })
  return oauth.processDiscoveryResponse(address, answer)
}

/** How each client shows who it is. */
function waysOf(clients: typeof made): [string, oauth.Client, oauth.ClientAuth][] {
  const ways = {
    client_secret_basic: ({ secret }: RegisteredClient) => oauth.ClientSecretBasic(secret!),
    client_secret_post: ({ secret }: RegisteredClient) => oauth.ClientSecretPost(secret!),
    none: () => oauth.None(),
    private_key_jwt: () => oauth.PrivateKeyJwt(pair.privateKey),
  }
  return Object.entries(clients).map(([method, one]) => {
    return [method, { client_id: one.id }, ways[method as keyof typeof ways](one)]
  })
}

t.test('oauth4webapi: codes, refresh, revocation', async (t) => {
  const server = await discover()
  for (const [method, client, way] of waysOf(made)) {
    const verifier = oauth.generateRandomCodeVerifier()
    const state = oauth.generateRandomState()
    const url = new URL(server.authorization_endpoint!)
    url.search = new URLSearchParams({
      response_type: 'code',
      client_id: client.client_id,
      redirect_uri: REDIRECT,
      scope: SCOPE,
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }).toString()
    const answer = await visit(url.href)
    const parameters = oauth.validateAuthResponse(server, client, answer, state)
    const got = await oauth.authorizationCodeGrantRequest(
      ...([server, client, way, parameters, REDIRECT, verifier, http] as const),
    )
    const token = await oauth.processAuthorizationCodeResponse(server, client, got)
    t.equal(await works(token.access_token), 200, `${method}: a token`)
    t.equal(token.scope, SCOPE)
    const asked = await oauth.refreshTokenGrantRequest(
      ...([server, client, way, token.refresh_token!, http] as const),
    )
    const renewed = await oauth.processRefreshTokenResponse(server, client, asked)
    t.not(renewed.refresh_token, token.refresh_token)
    t.equal(await works(renewed.access_token), 200, `${method}: a renewed token`)
    const ended = await oauth.revocationRequest(server, client, way, renewed.refresh_token!, http)
    await oauth.processRevocationResponse(ended)
    t.equal(await works(renewed.access_token), 401, `${method}: a revoked token`)
    const again = await oauth.authorizationCodeGrantRequest(
      ...([server, client, way, parameters, REDIRECT, verifier, http] as const),
    )
    const error = oauth.processAuthorizationCodeResponse(server, client, again)
    await t.rejects(error, Object.assign(new Error(), { error: 'invalid_grant' }))
  }
})

t.test('oauth4webapi: a client with a secret, without a challenge', async (t) => {
  const server = await discover()
  const [, client, way] = waysOf(made)[0]!
  const url = new URL(server.authorization_endpoint!)
  const asked = { response_type: 'code', client_id: client.client_id, redirect_uri: REDIRECT }
  url.search = new URLSearchParams({ ...asked, scope: SCOPE }).toString()
  const answer = await visit(url.href)
  const parameters = oauth.validateAuthResponse(server, client, answer, oauth.expectNoState)
  const got = await oauth.authorizationCodeGrantRequest(
    ...([server, client, way, parameters, REDIRECT, oauth.nopkce, http] as const),
  )
  const token = await oauth.processAuthorizationCodeResponse(server, client, got)
  t.equal(await works(token.access_token), 200)
})

t.test('oauth4webapi: client credentials, introspection, revocation', async (t) => {
  const server = await discover()
  for (const [method, client, way] of waysOf(machines)) {
    const of = { scope: SCOPE }
    const got = await oauth.clientCredentialsGrantRequest(server, client, way, of, http)
    const token = await oauth.processClientCredentialsResponse(server, client, got)
    t.equal(await works(token.access_token), 200, method)
    const introspect = async (): Promise<oauth.IntrospectionResponse> => {
      const asked = await oauth.introspectionRequest(server, client, way, token.access_token, http)
      return oauth.processIntrospectionResponse(server, client, asked)
    }
    const shown = { active: true, scope: SCOPE, client_id: client.client_id, iss: issuer }
    t.match(await introspect(), shown, method)
    const ended = await oauth.revocationRequest(server, client, way, token.access_token, http)
    await oauth.processRevocationResponse(ended)
    t.equal(await works(token.access_token), 401, method)
    t.strictSame(await introspect(), { active: false }, method)
  }
})

interface Told {
  readonly told: string
  readonly works: number[]
  readonly [name: string]: unknown
}

const program = await python('authlib-1.9.6', ['authlib==1.9.6', 'requests==2.34.2'])
const skip = typeof program === 'string' ? false : program.skipped

t.test('Authlib, in Python', { skip }, async (t) => {
  const key = await exportPKCS8(pair.privateKey)
  const shown = (of: typeof made): object[] =>
    Object.entries(of).map(([method, one]) => ({ method, key, ...one }))
  const child = spawn(program as string, [fileURLToPath(new URL('client.py', import.meta.url))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  t.teardown(() => child.kill())
  const of = { clients: shown(made), machines: shown(machines) }
  const given = { issuer, scope: SCOPE, redirect: REDIRECT, ...of }
  child.stdin.write(`${JSON.stringify(given)}\n`)
  const all = new Map<string, Told>()
  for await (const line of createInterface({ input: child.stdout })) {
    const said = JSON.parse(line) as Told | { visit: string }
    if ('told' in said) all.set(said.told, said)
    else child.stdin.write(`${(await visit(said.visit)).href}\n`)
  }
  t.equal(all.get('metadata')?.['issuer'], issuer)
  for (const method of Object.keys(made)) {
    t.match(
      all.get(method),
      { works: [200, 200, 401], scope: SCOPE, again: 'invalid_grant' },
      method,
    )
  }
  t.match(all.get('without a challenge'), { works: 200 })
  for (const method of Object.keys(machines)) {
    const of = { works: [200, 401], active: [true, false] }
    t.match(all.get(`client_credentials ${method}`), of, method)
  }
})
