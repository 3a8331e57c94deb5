// Sign-in by an external provider as the pages have it: the way there, and the way back. What
// belongs to a way travels in its `state`, sealed for the browser that is on it, as a form is: no
// member has to remember it, and in another browser it opens nothing. Source: CONTRACT 1.11
// "External sign-in", OpenID Connect Core 1.0 3.1.2, RFC 9700 4.4, 4.5, 4.7.

import type { ActorSystem } from '../../../cluster/actor-system.ts'
import type { World } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { OidcSettings } from '../../../config/settings.ts'
import { boundedFetch } from '../external/bounded-fetch.ts'
import type { Fetch } from '../external/bounded-fetch.ts'
import { Exchanges } from '../external/exchanges.ts'
import { Logins } from '../external/logins.ts'
import { Provider, ProviderFault } from '../external/provider.ts'
import type { Journey } from '../external/provider.ts'
import { Returns } from '../external/returns.ts'
import type { FormSeal, FormState } from './form-seal.ts'
import type { PageError } from './pages/pages.ts'
import type { People, Person } from './people.ts'

/** Where providers lead people back to, behind the public address. */
export const CALLBACK_PATH = '/oauth/external/callback'

export interface ExternalOptions {
  readonly settings: OidcSettings
  readonly fetch: Fetch
  /** A sign-in failed, for this reason; for the log. */
  readonly onFault: (why: string) => void
}

interface Parts extends ExternalOptions {
  readonly actorSystem: ActorSystem
  readonly world: World
  readonly seal: FormSeal
  readonly people: Pick<People, 'find'>
  /** Public address, without a slash at its end. */
  readonly baseUrl: string
}

/** Of the page from which somebody goes, or to which they come back. */
export interface Place {
  readonly cookie: string
  readonly address: string
}

export type Left = { readonly location: string } | { readonly error: PageError }

export type Returned =
  /** Another browser's, too old, or taken before: nothing is known of what it was for. */
  | { readonly is: 'gone' }
  | { readonly is: 'person'; readonly state: FormState; readonly person: Person }
  | { readonly is: 'refused'; readonly state: FormState; readonly error: PageError }

const RANDOM_BYTES = 32

export class ExternalSignIn {
  readonly #parts: Parts
  readonly #provider: Provider
  readonly #logins: Logins
  readonly #exchanges: Exchanges
  readonly #returns: Returns

  constructor(parts: Parts) {
    const { settings, world, fetch, actorSystem, baseUrl } = parts
    const { clock } = world
    const monotonicMs = (): number => clock.monotonicMs()
    this.#parts = parts
    this.#provider = new Provider({
      ...{ settings, redirectUri: `${baseUrl}${CALLBACK_PATH}`, monotonicMs },
      fetch: boundedFetch({ fetch, clock, issuer: settings.issuer }),
      nowMs: () => clock.nowMs(),
    })
    this.#exchanges = new Exchanges(clock)
    this.#logins = new Logins({ actorSystem, world, settings })
    this.#returns = new Returns(monotonicMs)
  }

  /** What it is called, and where its pages are. */
  get shown(): { readonly label: string; readonly issuer: string } {
    const { label, issuer } = this.#parts.settings
    return { label, issuer }
  }

  /** Where the browser goes to sign in there. */
  async leave(at: FormState, { cookie, address }: Place): Promise<Left> {
    const { settings, seal } = this.#parts
    const { issuer, label } = settings
    const journey: Journey = { issuer, nonce: this.#random(), verifier: this.#random() }
    const state = seal.seal({ step: 'external', request: at.request, journey }, cookie)
    if (state.length > LIMITS.access.externalStateCharsMax) {
      const message = `the application asks for too much at once to sign in with ${label}`
      return { error: { status: 400, fields: [], message: `${message}; use your password` } }
    }
    try {
      const asked = (): Promise<string> => this.#provider.addressFor(journey, state)
      const location = await this.#exchanges.run(address, asked)
      return location === null ? { error: this.#busy() } : { location }
    } catch (error) {
      return { error: this.#told(error) }
    }
  }

  /** Who has come back with these parameters. Throws RequestError where the store is away. */
  async return(
    given: URLSearchParams,
    { cookie, address, trace }: Place & { readonly trace: string },
  ): Promise<Returned> {
    const { seal, settings, people } = this.#parts
    const text = given.get('state') ?? ''
    const at = seal.open(text, cookie)
    const journey = at?.journey
    if (at?.step !== 'external' || journey === undefined) return { is: 'gone' }
    // Another provider was settled meanwhile: what comes back is not of it (RFC 9700 4.4).
    if (journey.issuer !== settings.issuer || !this.#returns.take(journey.nonce)) {
      return { is: 'gone' }
    }
    const state: FormState = { step: 'sign-in', request: at.request }
    try {
      const id = await this.#exchanges.run(address, async () => {
        const account = await this.#provider.account(given, journey, text)
        return (await this.#logins.principalOf(account, trace)) ?? ''
      })
      if (id === null) return { is: 'refused', state, error: this.#busy() }
      const person = id === '' ? null : people.find(id)
      if (person === null) return { is: 'refused', state, error: this.#nobody() }
      return { is: 'person', state, person }
    } catch (error) {
      return { is: 'refused', state, error: this.#told(error) }
    }
  }

  /** The same for whoever is not known, suspended, or has an address that is not verified. */
  #nobody(): PageError {
    const { label } = this.#parts.settings
    const message = `your account at ${label} is not let in here; ask those who run this service`
    return { status: 403, fields: [], message }
  }

  #busy(): PageError {
    const message = `too many people sign in with ${this.#parts.settings.label} at once`
    return { status: 429, fields: [], message: `${message}; try again`, retryAfterSeconds: 1 }
  }

  /** What a person is told of a fault; the log hears which it was. */
  #told(error: unknown): PageError {
    if (!(error instanceof ProviderFault)) throw error
    const { settings, onFault } = this.#parts
    const { label } = settings
    onFault(`${error.is}: ${error.message}`)
    switch (error.is) {
      case 'away': {
        const message = `${label} can't be asked at the moment; use your password, or try again`
        return { status: 503, fields: [], message, retryAfterSeconds: 5 }
      }
      case 'denied':
        return { status: 403, fields: [], message: `you were not signed in at ${label}` }
      case 'wrong': {
        const message = `what ${label} answered does not hold; sign in again`
        return { status: 400, fields: [], message }
      }
    }
  }

  #random(): string {
    const bytes = Buffer.alloc(RANDOM_BYTES)
    this.#parts.world.random(bytes)
    return bytes.toString('base64url')
  }
}
