// An OpenID Connect provider for tests: it does as the specification says, and each step of it can
// be made to do otherwise. It answers calls as `fetch` does, and behind a port where one is wanted.
// Source: OpenID Connect Core 1.0 3.1, OpenID Connect Discovery 1.0 4.

import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'

type Claims = Record<string, unknown>
type Endpoint = 'discovery' | 'token' | 'keys' | 'userinfo'
/** What an endpoint does instead of, or with, the usual. */
type Twist = (usual: () => Promise<Response>, init: RequestInit) => Response | Promise<Response>

interface Grant {
  readonly nonce: string
  readonly challenge: string
  readonly redirectUri: string
  readonly user: Claims
}

export const CLIENT_ID = 'kontor'
/** Of characters that HTTP Basic has to encode. */
export const CLIENT_SECRET = 'a secret: of+the provider/'

const pair = await generateKeyPair('RS256', { extractable: true })
export const PUBLIC_JWK = { ...(await exportJWK(pair.publicKey)), kid: 'k1', use: 'sig' }
const stranger = await generateKeyPair('RS256')

export class FakeProvider {
  issuer = 'https://id.example'
  /** Milliseconds since 1970. */
  nowMs: () => number = Date.now
  /** Who signs in there next. */
  user: Claims = { sub: 'u1', email: 'ada@shop.example', email_verified: true, name: 'Ada L' }
  /** null: nobody has to show anything but PKCE. */
  secret: string | null = CLIENT_SECRET
  /** Added to what it tells of itself. */
  metadata: Claims = {}
  /** Added to each ID token; undefined takes a claim away. */
  claims: Claims = {}
  /** Signs ID tokens; by default with its own key. */
  sign: (claims: Claims) => Promise<string> | string = (claims) => this.signed(claims)
  readonly twists: Partial<Record<Endpoint, Twist>> = {}
  /** A code is good again and again. */
  isLax = false
  /** How often each endpoint was asked. */
  readonly asked: Record<Endpoint, number> = { discovery: 0, token: 0, keys: 0, userinfo: 0 }
  readonly #codes = new Map<string, Grant>()
  readonly #tokens = new Map<string, Grant>()

  signed(claims: Claims, { kid = 'k1', isStranger = false } = {}): Promise<string> {
    return new SignJWT(claims)
      .setProtectedHeader({ alg: 'RS256', kid })
      .sign(isStranger ? stranger.privateKey : pair.privateKey)
  }

  /** A browser signs in at `address`: where it is led back to. */
  visit(address: string, more: Readonly<Record<string, string>> = {}): URL {
    const asked = new URL(address).searchParams
    const code = randomBytes(8).toString('hex')
    this.#codes.set(code, {
      nonce: asked.get('nonce') ?? '',
      challenge: asked.get('code_challenge') ?? '',
      redirectUri: asked.get('redirect_uri') ?? '',
      user: this.user,
    })
    const back = new URL(asked.get('redirect_uri')!)
    const answer = { code, state: asked.get('state') ?? '', ...more }
    for (const [name, value] of Object.entries(answer)) back.searchParams.set(name, value)
    return back
  }

  /** `fetch`, of this provider alone. */
  readonly fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const path = url.slice(this.issuer.replace(/\/$/, '').length)
    const endpoint = ENDPOINTS[path]
    if (!url.startsWith(this.issuer.replace(/\/$/, '')) || endpoint === undefined) {
      throw new TypeError('fetch failed', { cause: { code: 'ENOTFOUND' } })
    }
    this.asked[endpoint]++
    const usual = (): Promise<Response> => this.#answer(endpoint, init)
    return this.twists[endpoint]?.(usual, init) ?? usual()
  }

  /** Behind a port of this machine; `visit` is what its own page leads to. Ends with the test. */
  async listen(t: { teardown(end: () => void): void }): Promise<this> {
    const server = createServer((request, response) => {
      const url = new URL(request.url!, this.issuer)
      if (url.pathname === '/authorize') {
        const back = this.visit(url.href).href
        const text = `<!doctype html><title>Id</title><a href="${back.replaceAll('&', '&amp;')}">Go on</a>`
        if (this.isSignedIn) response.writeHead(302, { Location: back }).end()
        else response.writeHead(200, { 'Content-Type': 'text/html' }).end(text)
        return
      }
      const parts: Buffer[] = []
      request.on('data', (part: Buffer) => parts.push(part))
      request.on('end', () => {
        const body = Buffer.concat(parts).toString()
        const headers = { authorization: request.headers.authorization ?? '' }
        void this.fetch(url.href, { method: request.method!, headers, body }).then(
          async (answer) => {
            response.writeHead(answer.status, Object.fromEntries(answer.headers))
            response.end(Buffer.from(await answer.arrayBuffer()))
          },
          () => response.destroy(),
        )
      })
    })
    await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => {
      server.close()
      server.closeAllConnections()
    })
    this.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return this
  }

  /** Whoever comes has signed in before: no page is shown. */
  isSignedIn = false

  async #answer(endpoint: Endpoint, init: RequestInit): Promise<Response> {
    switch (endpoint) {
      case 'discovery':
        return Response.json(this.#told())
      case 'keys':
        return Response.json({ keys: [PUBLIC_JWK] })
      case 'userinfo':
        return this.#userinfo(init)
      case 'token':
        return this.#token(init)
    }
  }

  #told(): Claims {
    const at = (path: string): string => `${this.issuer.replace(/\/$/, '')}${path}`
    return {
      issuer: this.issuer,
      authorization_endpoint: at('/authorize'),
      token_endpoint: at('/token'),
      jwks_uri: at('/keys'),
      userinfo_endpoint: at('/userinfo'),
      id_token_signing_alg_values_supported: ['RS256'],
      ...this.metadata,
    }
  }

  #userinfo(init: RequestInit): Response {
    const token = new Headers(init.headers).get('authorization')?.slice('Bearer '.length)
    const grant = this.#tokens.get(token ?? '')
    return grant === undefined ? new Response(null, { status: 401 }) : Response.json(grant.user)
  }

  async #token(init: RequestInit): Promise<Response> {
    const refuse = (error: string): Response => Response.json({ error }, { status: 400 })
    const form = new URLSearchParams(String(init.body as string | URLSearchParams))
    if (!this.#isClient(new Headers(init.headers), form)) return refuse('invalid_client')
    const code = form.get('code') ?? ''
    const grant = this.#codes.get(code)
    if (!this.isLax) this.#codes.delete(code)
    const verifier = form.get('code_verifier') ?? ''
    const isProved =
      grant?.challenge === createHash('sha256').update(verifier).digest('base64url') &&
      grant.redirectUri === form.get('redirect_uri')
    if (!isProved) return refuse('invalid_grant')
    const token = randomBytes(8).toString('hex')
    this.#tokens.set(token, grant)
    const iat = Math.floor(this.nowMs() / 1_000)
    const claims = {
      ...{ iss: this.issuer, aud: CLIENT_ID, iat, exp: iat + 300, nonce: grant.nonce },
      ...grant.user,
      ...this.claims,
    }
    const id_token = await this.sign(claims)
    return Response.json({ access_token: token, token_type: 'Bearer', id_token })
  }

  #isClient(headers: Headers, form: URLSearchParams): boolean {
    if (this.secret === null) return form.get('client_id') === CLIENT_ID
    const basic = headers.get('authorization')
    if (basic === null || basic === '') return form.get('client_secret') === this.secret
    const text = Buffer.from(basic.slice('Basic '.length), 'base64').toString()
    const [id, secret] = text.split(':').map((part) => decodeURIComponent(part.replace(/\+/g, ' ')))
    return id === CLIENT_ID && secret === this.secret
  }
}

const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  '/.well-known/openid-configuration': 'discovery',
  '/token': 'token',
  '/keys': 'keys',
  '/userinfo': 'userinfo',
}
