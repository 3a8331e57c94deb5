// Sign-in of a command: the code grant with PKCE over a port of this machine (RFC 8252 7.3) or a
// pasted address, client credentials, and the renewal of what they gave. Source: CONTRACT 1.11.

import * as oauth from 'oauth4webapi'
import { EXIT, Failure } from './failure.ts'
import type { Profile } from './profiles.ts'
import type { World } from './world.ts'

/** A request of a sign-in takes no longer. */
const REQUEST_MS = 15_000

export interface Wish {
  readonly url: string
  readonly clientId: string
  /** ACEs; absent: all that the person and the client may. */
  readonly scope?: string
}

export interface PersonWish extends Wish {
  readonly redirectUri: string
  /** Sends the person to the address, and resolves with the address that came back. */
  readonly visit: (address: string) => Promise<URL>
}

interface Options {
  readonly [oauth.allowInsecureRequests]: boolean
  readonly [oauth.customFetch]: (url: string, options: object) => Promise<Response>
  readonly signal: () => AbortSignal
}

export class SignIn {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  async asPerson({ url, clientId, scope, redirectUri, visit }: PersonWish): Promise<Profile> {
    const server = await this.#server(url)
    const verifier = oauth.generateRandomCodeVerifier()
    const state = oauth.generateRandomState()
    const address = new URL(server.authorization_endpoint!)
    const asked = {
      ...{ response_type: 'code', client_id: clientId, redirect_uri: redirectUri, state },
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...(scope !== undefined && { scope }),
    }
    for (const [name, value] of Object.entries(asked)) address.searchParams.set(name, value)
    const back = await visit(address.href)
    return this.#told(async () => {
      const client = { client_id: clientId }
      const parameters = oauth.validateAuthResponse(server, client, back, state)
      const response = await oauth.authorizationCodeGrantRequest(
        ...([server, client, oauth.None(), parameters, redirectUri, verifier] as const),
        this.#options(url),
      )
      return this.#profile(
        { url, clientId },
        await oauth.processAuthorizationCodeResponse(server, client, response),
      )
    })
  }

  async asClient({ url, clientId, scope }: Wish, clientSecret: string): Promise<Profile> {
    const server = await this.#server(url)
    return this.#told(async () => {
      const client = { client_id: clientId }
      const asked = scope === undefined ? {} : { scope }
      const response = await oauth.clientCredentialsGrantRequest(
        ...([server, client, authOf({ clientSecret }), asked] as const),
        this.#options(url),
      )
      const answer = await oauth.processClientCredentialsResponse(server, client, response)
      return { ...this.#profile({ url, clientId }, answer), clientSecret, ...asked }
    })
  }

  /** The same with tokens that are good again. */
  async renewed(profile: Profile): Promise<Profile> {
    const { url, clientId, clientSecret, refreshToken } = profile
    if (clientSecret !== undefined) return this.asClient(profile, clientSecret)
    if (refreshToken === undefined) {
      throw new Failure('the sign-in has expired: kontor login', EXIT.notSignedIn)
    }
    const server = await this.#server(url)
    return this.#told(async () => {
      const client = { client_id: clientId }
      const response = await oauth.refreshTokenGrantRequest(
        ...([server, client, oauth.None(), refreshToken] as const),
        this.#options(url),
      )
      const answer = await oauth.processRefreshTokenResponse(server, client, response)
      return this.#profile({ url, clientId }, answer)
    })
  }

  /** Ends the session of the profile. */
  async revoke(profile: Profile): Promise<void> {
    const { url, clientId, accessToken, refreshToken } = profile
    const server = await this.#server(url)
    await this.#told(async () => {
      const client = { client_id: clientId }
      const response = await oauth.revocationRequest(
        ...([server, client, authOf(profile), refreshToken ?? accessToken] as const),
        this.#options(url),
      )
      await oauth.processRevocationResponse(response)
    })
  }

  /** The address must be the one that the node itself goes by (RFC 8414 3.3). */
  #server(url: string): Promise<oauth.AuthorizationServer> {
    return this.#told(async () => {
      const issuer = new URL(url)
      const options = { ...this.#options(url), algorithm: 'oauth2' as const }
      const response = await oauth.discoveryRequest(issuer, options)
      const told = (await response
        .clone()
        .json()
        .catch(() => null)) as { issuer?: unknown } | null
      const own = typeof told?.issuer === 'string' ? told.issuer : null
      if (own !== null && URL.parse(own)?.href !== issuer.href) {
        throw new Failure(`the node at ${url} calls itself ${own}: kontor login --url ${own}`)
      }
      const server = await oauth.processDiscoveryResponse(issuer, response)
      checkPlaces(server, issuer)
      return server
    })
  }

  #options(url: string): Options {
    return {
      // A node on this machine, or behind a tunnel, speaks plain HTTP; `kontor login` warns else.
      [oauth.allowInsecureRequests]: url.startsWith('http:'),
      [oauth.customFetch]: (asked, options) => this.#world.fetch(asked, options),
      signal: () => AbortSignal.timeout(REQUEST_MS),
    }
  }

  #profile(
    of: Pick<Profile, 'url' | 'clientId'>,
    { access_token, refresh_token, expires_in = 0 }: oauth.TokenEndpointResponse,
  ): Profile {
    const expiresAtMs = this.#world.nowMs() + expires_in * 1_000
    const refresh = refresh_token === undefined ? {} : { refreshToken: refresh_token }
    return { ...of, accessToken: access_token, expiresAtMs, ...refresh }
  }

  async #told<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      throw failureOfSignIn(error)
    }
  }
}

/** Who the profile is, as its application is registered: with a secret, or by its name. */
function authOf({ clientSecret }: Pick<Profile, 'clientSecret'>): oauth.ClientAuth {
  return clientSecret === undefined ? oauth.None() : oauth.ClientSecretBasic(clientSecret)
}

const PLACES = ['authorization_endpoint', 'token_endpoint', 'revocation_endpoint'] as const

/**
 * Where a node sends people and secrets is its own: what opens an address for a person would start
 * a program by another one (`file:`). Throws Failure.
 */
function checkPlaces(server: oauth.AuthorizationServer, issuer: URL): void {
  for (const name of PLACES) {
    const place = server[name]
    if (place !== undefined && URL.parse(place)?.origin !== issuer.origin) {
      throw new Failure(`the node's ${name} is not at ${issuer.origin}, so it is not used`)
    }
  }
}

/** What the library throws, in the words of the node where it has said something. */
function failureOfSignIn(error: unknown): Failure {
  if (error instanceof Failure) return error
  if (
    error instanceof oauth.ResponseBodyError ||
    error instanceof oauth.AuthorizationResponseError
  ) {
    const why = error.error_description ?? error.error
    const isBusy = error instanceof oauth.ResponseBodyError && error.status === 429
    return new Failure(`sign-in refused: ${why}`, isBusy ? EXIT.unavailable : EXIT.notSignedIn)
  }
  if (error instanceof oauth.WWWAuthenticateChallengeError) {
    return new Failure('sign-in refused: the client or its secret is wrong', EXIT.notSignedIn)
  }
  if (error instanceof oauth.OperationProcessingError) {
    return new Failure(`the node's answer is none of OAuth: ${error.message}`)
  }
  const { message, cause } = error as Error
  const why = cause instanceof Error ? `${message}: ${cause.message}` : message
  return new Failure(`the node can't be reached: ${why}`, EXIT.unavailable)
}
