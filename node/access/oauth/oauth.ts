// The OAuth endpoints with all their parts. Source: CONTRACT 1.11.

import type { ActorSystem } from '../../../cluster/actor-system.ts'
import type { World } from '../../../cluster/clock.ts'
import type { RateLimit } from '../../http/guard/rate-limit.ts'
import type { Operation } from '../../http/operation.ts'
import type { AttributesOf, Authenticator, Ready } from '../authenticate.ts'
import type { ClientSecrets } from '../client-secrets.ts'
import type { Passwords } from '../password.ts'
import type { SessionGrants } from '../sessions/grants.ts'
import { AssertionPlace } from './assertion-place.ts'
import { Assertions } from './assertions.ts'
import { Authorize } from './authorize.ts'
import { ClientCheck } from './client-check.ts'
import { ExternalSignIn } from './external-sign-in.ts'
import type { ExternalOptions } from './external-sign-in.ts'
import { FormSeal } from './form-seal.ts'
import { Introspection } from './introspection.ts'
import { IntrospectionRates } from './introspection-rates.ts'
import type { IntrospectionRatesOptions } from './introspection-rates.ts'
import { People } from './people.ts'
import { oauthOperations } from './routes.ts'
import { TokenRequests } from './token-requests.ts'

/** How much in a minute; null: any number. */
export interface OAuthRates extends IntrospectionRatesOptions {
  /** Token requests of one client. */
  readonly tokens: RateLimit | null
}

export interface OAuthOptions {
  readonly actorSystem: ActorSystem
  readonly world: World
  readonly sessions: SessionGrants
  readonly clientSecrets: ClientSecrets
  readonly rates: OAuthRates
  readonly passwords: Passwords
  readonly authenticator: Pick<Authenticator, 'authenticate'>
  readonly ready: Ready
  readonly attributesOf: AttributesOf
  /** Public address, without a slash at its end. */
  readonly baseUrl: string
  /** The store's secret, the same on all members. */
  readonly storeSecret: string
  /** Other members serve the same store. */
  readonly hasPeers: boolean
  /** null: nobody signs in by an external provider. */
  readonly external: ExternalOptions | null
}

export function createOAuth(options: OAuthOptions): Operation[] {
  const { actorSystem, world, sessions, clientSecrets, passwords, authenticator } = options
  const { ready, attributesOf, baseUrl, storeSecret, rates } = options
  const { system } = actorSystem
  const { random } = world
  const nowMs = (): number => world.clock.nowMs()
  const endpoints = ['token', 'revoke', 'introspect'].map((name) => `${baseUrl}/oauth/${name}`)
  const place = options.hasPeers ? new AssertionPlace(actorSystem, random) : null
  const assertions = new Assertions({ audiences: [baseUrl, ...endpoints], nowMs, place })
  const people = new People({ actorSystem, passwords, nowMs })
  const seal = new FormSeal({ secret: storeSecret, random, nowMs, baseUrl })
  const parts = { actorSystem, world, seal, people, baseUrl }
  const external = options.external && new ExternalSignIn({ ...options.external, ...parts })
  return oauthOperations({
    ready,
    sessions,
    baseUrl,
    clients: new ClientCheck({ system, clientSecrets, assertions }),
    tokens: new TokenRequests({ system, sessions, people, attributesOf, rate: rates.tokens }),
    authorize: new Authorize({ system, ready, people, sessions, seal, external, baseUrl }),
    introspection: new Introspection({ authenticator, baseUrl }),
    introspectionRates: new IntrospectionRates(rates),
  })
}
