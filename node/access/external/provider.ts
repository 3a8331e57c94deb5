// The external provider, as a relying party has to do with it: where people are sent, and who they
// are by what comes back. Claims, signatures and answers are checked by oauth4webapi. Source:
// OpenID Connect Core 1.0 3.1, OpenID Connect Discovery 1.0 4, RFC 7636, RFC 9207, CONTRACT 1.11
// "External sign-in".

import * as oauth from 'oauth4webapi'
import { LIMITS } from '../../../config/limits.ts'
import type { OidcSettings } from '../../../config/settings.ts'
import { PUBLIC_KEY_ALGORITHMS } from '../client-keys.ts'
import { isPlace } from './bounded-fetch.ts'
import type { Fetch } from './bounded-fetch.ts'

/** One way there and back: known to us and to the browser that is on it alone. */
export interface Journey {
  readonly issuer: string
  /** Of the ID token. */
  readonly nonce: string
  /** Of the code (RFC 7636 4.1). */
  readonly verifier: string
}

export interface Profile {
  /** null: there is none, or it is not verified. */
  readonly email: string | null
  readonly name: string | null
}

/** Somebody at the provider. */
export interface Account {
  readonly issuer: string
  readonly subject: string
  /** What the provider says of them; may have to ask for it. Throws ProviderFault. */
  profile(): Promise<Profile>
}

/**
 * `away`: it can't be asked, or answers as none does; `denied`: it let the person not in; `wrong`:
 * what came back can't be relied on. The message is for the log: nothing of a caller, no secret.
 */
export class ProviderFault extends Error {
  readonly is: 'away' | 'denied' | 'wrong'
  constructor(is: 'away' | 'denied' | 'wrong', message: string) {
    super(message)
    this.is = is
  }
}

export interface ProviderOptions {
  readonly settings: OidcSettings
  /** Where the provider leads people back to. */
  readonly redirectUri: string
  readonly fetch: Fetch
  /** Wall clock, milliseconds: ends of ID tokens are by it. */
  readonly nowMs: () => number
  readonly monotonicMs: () => number
}

type Server = oauth.AuthorizationServer

export class Provider {
  readonly #options: ProviderOptions
  #known: { readonly server: Server; readonly sinceMs: number } | null = null
  #asking: Promise<Server> | null = null

  constructor(options: ProviderOptions) {
    this.#options = options
  }

  /** The address at which somebody signs in there. Throws ProviderFault. */
  async addressFor({ nonce, verifier }: Journey, state: string): Promise<string> {
    const { settings, redirectUri } = this.#options
    const server = await this.#server()
    const address = new URL(server.authorization_endpoint!)
    const asked = {
      ...{ response_type: 'code', client_id: settings.clientId, redirect_uri: redirectUri },
      ...{ scope: settings.scopes, state, nonce },
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }
    for (const [name, value] of Object.entries(asked)) address.searchParams.set(name, value)
    return address.href
  }

  /** Whom the parameters that came back are of. Throws ProviderFault. */
  async account(given: URLSearchParams, journey: Journey, state: string): Promise<Account> {
    const server = await this.#server()
    const { settings, redirectUri } = this.#options
    const client = this.#client
    return asFault('wrong', async () => {
      // `iss` as well, where there is one or the provider says that it sends one (RFC 9207 2.4).
      const parameters = oauth.validateAuthResponse(server, client, given, state)
      const response = await oauth.authorizationCodeGrantRequest(
        ...([server, client, authOf(server, settings), parameters] as const),
        ...([redirectUri, journey.verifier, this.#http] as const),
      )
      const answer = await oauth.processAuthorizationCodeResponse(server, client, response, {
        expectedNonce: journey.nonce,
        requireIdToken: true,
      })
      const claims = oauth.getValidatedIdTokenClaims(answer)!
      checkParty(claims, settings.clientId)
      await oauth.validateApplicationLevelSignature(server, response, this.#http)
      return { ...accountOf(claims), profile: () => this.#profile(server, claims, answer) }
    })
  }

  /** Of the ID token, or asked for where it has no address (OpenID Connect Core 1.0 5.3, 5.4). */
  async #profile(
    server: Server,
    claims: oauth.IDToken,
    { access_token: token }: oauth.TokenEndpointResponse,
  ): Promise<Profile> {
    if (claims['email'] !== undefined || server.userinfo_endpoint === undefined) {
      return profileOf(claims)
    }
    return asFault('wrong', async () => {
      const response = await oauth.userInfoRequest(server, this.#client, token, this.#http)
      const { sub } = claims
      return profileOf(await oauth.processUserInfoResponse(server, this.#client, sub, response))
    })
  }

  get #client(): oauth.Client {
    const { settings, nowMs } = this.#options
    return {
      client_id: settings.clientId,
      // The library reads the machine's clock: what ours is ahead of it.
      [oauth.clockSkew]: Math.floor(nowMs() / 1_000) - Math.floor(Date.now() / 1_000),
      [oauth.clockTolerance]: LIMITS.access.clockToleranceMs / 1_000,
    }
  }

  get #http() {
    return {
      // What may be asked at all, `boundedFetch` says.
      [oauth.allowInsecureRequests]: true,
      [oauth.customFetch]: (url: string, init: object) => this.#ask(url, init),
    }
  }

  async #ask(url: string, init: RequestInit): Promise<Response> {
    const response = await asFault('away', () => this.#options.fetch(url, init))
    const { status } = response
    // 400 to 499 may say what is wrong with a code; all else is no answer.
    if (status === 200 || (status >= 400 && status < 500)) return response
    throw new ProviderFault('away', `the provider answered ${status}`)
  }

  #server(): Promise<Server> {
    const { externalMetadataMs } = LIMITS.access
    const known = this.#known
    if (known !== null && this.#options.monotonicMs() - known.sinceMs < externalMetadataMs) {
      return Promise.resolve(known.server)
    }
    // One asks for all that want to know at the moment.
    this.#asking ??= asFault('away', () => this.#discover()).finally(() => (this.#asking = null))
    return this.#asking
  }

  async #discover(): Promise<Server> {
    const { issuer } = this.#options.settings
    const url = new URL(issuer)
    const response = await oauth.discoveryRequest(url, this.#http)
    const told = await oauth.processDiscoveryResponse(url, response)
    // As text, not as addresses are compared: ID tokens have it so.
    if (told.issuer !== issuer) throw new Error('it calls itself otherwise than KONTOR_OIDC_ISSUER')
    for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const) {
      if (!isPlace(told[name], issuer)) throw new Error(`its ${name} is missing, or not https`)
    }
    const signs = told.id_token_signing_alg_values_supported
    const server = {
      ...told,
      // Whatever it says: with a shared key or none nobody has signed anything.
      id_token_signing_alg_values_supported: (Array.isArray(signs) ? signs : ['RS256']).filter(
        (one) => PUBLIC_KEY_ALGORITHMS.includes(one),
      ),
    }
    this.#known = { server, sinceMs: this.#options.monotonicMs() }
    return server
  }
}

/** Basic unless the provider says that it takes secrets in forms alone (Discovery 1.0 3). */
function authOf(server: Server, { clientSecret }: OidcSettings): oauth.ClientAuth {
  if (clientSecret === null) return oauth.None()
  const ways = server.token_endpoint_auth_methods_supported
  const isPost = Array.isArray(ways) && !ways.includes('client_secret_basic')
  return isPost ? oauth.ClientSecretPost(clientSecret) : oauth.ClientSecretBasic(clientSecret)
}

/** `azp`, where there is one, is this client (OpenID Connect Core 1.0 3.1.3.7, 4 and 5). */
function checkParty({ azp }: oauth.IDToken, clientId: string): void {
  if (azp !== undefined && azp !== clientId) {
    throw new ProviderFault('wrong', 'the ID token was made for another client (azp)')
  }
}

const SUBJECT = /^[ -~]+$/

/** At most 255 characters of ASCII (OpenID Connect Core 1.0 2). */
function accountOf({ iss, sub }: oauth.IDToken): Omit<Account, 'profile'> {
  if (!SUBJECT.test(sub) || sub.length > LIMITS.access.subjectCharsMax) {
    throw new ProviderFault('wrong', 'the subject is empty, too long, or not ASCII')
  }
  return { issuer: iss, subject: sub }
}

/** Only `true` is verified: a text that says so is none of OpenID Connect Core 1.0 5.1. */
function profileOf(claims: Readonly<Record<string, unknown>>): Profile {
  const { email, email_verified: isVerified, name } = claims
  return {
    email: typeof email === 'string' && isVerified === true ? email : null,
    name: typeof name === 'string' ? name : null,
  }
}

/** What the library, or the network, has against it, as a fault; `is` where neither says more. */
async function asFault<T>(is: 'away' | 'wrong', run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof ProviderFault) throw error
    throw new ProviderFault(isOf(error) ?? is, messageOf(error))
  }
}

function isOf(error: unknown): ProviderFault['is'] | null {
  if (error instanceof oauth.AuthorizationResponseError) return 'denied'
  if (error instanceof oauth.WWWAuthenticateChallengeError) return 'away'
  // That a code is none any more is the only thing that is not about this service itself.
  if (error instanceof oauth.ResponseBodyError) {
    return error.error === 'invalid_grant' ? 'wrong' : 'away'
  }
  const isOdd = error instanceof oauth.OperationProcessingError
  return isOdd && error.code === oauth.RESPONSE_IS_NOT_CONFORM ? 'away' : null
}

/** Words of the library's own and names of errors; what it was about hangs on them, unsaid. */
function messageOf(error: unknown): string {
  const { message = '', cause } = error as { message?: string; cause?: { code?: unknown } }
  const told =
    error instanceof oauth.ResponseBodyError || error instanceof oauth.AuthorizationResponseError
      ? error.error
      : cause?.code
  const known = typeof told === 'string' && /^\w{1,60}$/.test(told) ? ` (${told})` : ''
  return `${message}${known}`
}
