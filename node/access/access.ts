// The access station as node.ts wires it: who calls and what they may do. The system shard keeps
// clients, principals, roles and revocations, the hashed shards keep sessions.

import type { ActorSystem } from '../../cluster/actor-system.ts'
import type { World } from '../../cluster/clock.ts'
import type { Rates } from '../../config/settings.ts'
import { NO_ATTRIBUTES, passedBound } from '../../protocol/attributes.ts'
import type { Behaviour } from '../../protocol/behaviour.ts'
import { assert } from '../../protocol/errors.ts'
import type { Authenticate } from '../http/core.ts'
import { RateLimit } from '../http/guard/rate-limit.ts'
import type { Operation } from '../http/operation.ts'
import { activityBehaviour } from './activity/activity.ts'
import { LastActivity } from './activity/last-activity.ts'
import { NotedActivity } from './activity/noted-activity.ts'
import { Authenticator } from './authenticate.ts'
import type { AttributesOf, Ready } from './authenticate.ts'
import { bootstrap } from './bootstrap.ts'
import { clientBehaviour } from './administration/client-changes.ts'
import { principalBehaviour } from './administration/principal-changes.ts'
import { roleBehaviour } from './administration/role-changes.ts'
import { assertionsBehaviour } from './oauth/assertion-place.ts'
import { ClientSecrets } from './client-secrets.ts'
import type { ExternalOptions } from './oauth/external-sign-in.ts'
import { createOAuth } from './oauth/oauth.ts'
import type { OAuthRates } from './oauth/oauth.ts'
import { Passwords } from './password.ts'
import { Secrets } from './secret.ts'
import { SignIns } from './sign-ins.ts'
import type { Subject } from './sessions/grants.ts'
import { PushedOut } from './sessions/pushed-out.ts'
import type { TellPushedOut } from './sessions/pushed-out.ts'
import { readSession } from './sessions/read.ts'
import { Revocations, revocationBehaviour } from './sessions/revocation.ts'
import { sessionListBehaviour } from './sessions/session-list.ts'
import { sessionBehaviour } from './sessions/session.ts'
import { Sessions } from './sessions/sessions.ts'
import { Tidying, oldSessionBehaviour } from './sessions/tidying.ts'
import { WrittenUses } from './sessions/written-uses.ts'

/** Actor types of this station, for the runtime's table. */
export function accessBehaviours(): Behaviour[] {
  return [
    ...[clientBehaviour, principalBehaviour, roleBehaviour],
    ...[sessionBehaviour, sessionListBehaviour, revocationBehaviour, oldSessionBehaviour],
    assertionsBehaviour,
    activityBehaviour,
  ] as Behaviour[]
}

export interface AccessOptions {
  readonly actorSystem: ActorSystem
  readonly world: World
  readonly dataDir: string
  /** KONTOR_BOOTSTRAP_SECRET, or null. */
  readonly bootstrapSecret: string | null
  /** Life of an access token, milliseconds. */
  readonly accessTokenMs: number
  /** Life of a refresh token, milliseconds. */
  readonly refreshTokenMs: number
  /** Public address, without a slash at its end. */
  readonly baseUrl: string
  /** The store's secret, the same on all members. */
  readonly storeSecret: string
  /** Other members serve the same store; absent: this is the only one. */
  readonly hasPeers?: boolean
  /** How often clients may sign in, and be wrong; absent: as often as they like, and the usual. */
  readonly rates?: Pick<Rates, 'signInClient' | 'wrongSignIns' | 'wrongSignInsMs'> & Partial<Rates>
  /** Sign-in by an external provider; absent: nobody does. */
  readonly external?: ExternalOptions | null
  /** Shows a text to the operator. */
  readonly tell: (text: string) => void
  /** Whether secrets may be shown so. */
  readonly isTerminal: boolean
  /** This member has the `system` shard. */
  readonly tidies: () => boolean
  /** Failures in the background. */
  readonly onError: (error: unknown) => void
  /** Valid sessions of this identity were ended: there were too many. Not told of each. */
  readonly onPushedOut: TellPushedOut
  readonly ready: Ready
  /** Absent: no identity has attributes. Throws from `authenticate` where they pass a bound. */
  readonly attributesOf?: AttributesOf
}

export interface Access {
  /** Of people, and of clients: how they are made and checked. */
  readonly passwords: Passwords
  readonly secrets: Secrets
  readonly operations: readonly Operation[]
  /** Who sent this Authorization header; a RequestError (401, 503) is returned, not thrown. */
  readonly authenticate: Authenticate
  readonly sessions: Sessions
  /** Secrets that clients show, and when identities were here last. */
  readonly clientSecrets: ClientSecrets
  readonly lastActivity: LastActivity
  /** Makes the first identity if there is none, and begins to tidy up. */
  start(): Promise<void>
  stop(): void
}

/** Call it when the system maps are there: they are read at `start`. */
export function createAccess(options: AccessOptions): Access {
  const { actorSystem, world, accessTokenMs, refreshTokenMs, baseUrl, ready } = options
  const { system } = actorSystem
  const { clock } = world
  const nowMs = (): number => clock.nowMs()
  const secrets = new Secrets(world.random)
  const { tidies, onError, onPushedOut } = options
  const revocations = new Revocations(actorSystem, clock)
  const tidying = new Tidying({ actorSystem, clock, revocations, tidies, onError })
  const uses = new WrittenUses(actorSystem)
  const noted = new NotedActivity(actorSystem, clock)
  const active = ({ kind, identity, clientId }: Subject): void => {
    noted.active({ kind, identity })
    // A client that people sign in with is in use as well.
    if (kind === 'principal') noted.active({ kind: 'client', identity: clientId })
  }
  const { rates } = options
  const monotonicMs = (): number => clock.monotonicMs()
  const wrong = rates && { max: rates.wrongSignIns, ms: rates.wrongSignInsMs }
  const signIns = new SignIns({ secrets, nowMs: monotonicMs, ...(wrong && { wrong }) })
  const attributesOf = checkedAttributes(options.attributesOf ?? (() => NO_ATTRIBUTES))
  const origin = { by: 'system', trace: 'token-check' }
  const authenticator = new Authenticator({
    ...{ system, revocations, nowMs, ready, attributesOf },
    monotonicMs,
    read: (sessionId) => readSession(actorSystem, sessionId, origin),
    used: (sessionId) => uses.write(sessionId),
    active,
  })
  const lives = { accessTokenMs, refreshTokenMs }
  const pushedOut = new PushedOut(clock, onPushedOut)
  const of = { actorSystem, world, revocations, pushedOut, ...lives }
  const sessions = new Sessions({ ...of, active, book: authenticator })
  const { random } = world
  const passwords = new Passwords({ random, nowMs, monotonicMs, ...(wrong && { wrong }) })
  const clientSecrets = new ClientSecrets({ system, signIns, secrets, noted, nowMs })
  return {
    passwords,
    secrets,
    operations: createOAuth({
      ...{ actorSystem, world, sessions, clientSecrets, passwords, authenticator },
      ...{ ready, attributesOf, baseUrl, storeSecret: options.storeSecret },
      hasPeers: options.hasPeers ?? false,
      external: options.external ?? null,
      rates: oauthRates(rates ?? {}, monotonicMs),
    }),
    authenticate: (authorization, addressOf) =>
      authenticator.authenticate(authorization, addressOf),
    sessions,
    clientSecrets,
    lastActivity: new LastActivity(actorSystem, clock),
    async start() {
      tidying.start()
      const { dataDir, bootstrapSecret: secret, tell, isTerminal } = options
      await bootstrap({ actorSystem, world, secrets, dataDir, secret, tell, isTerminal })
    },
    stop() {
      tidying.stop()
      noted.stop()
      pushedOut.stop()
      revocations.stop()
      authenticator.stop()
    },
  }
}

function oauthRates(
  { signInClient, signInAddress, client }: Partial<Rates>,
  monotonicMs: () => number,
): OAuthRates {
  const limit = (name: string, max = 0): RateLimit | null =>
    max === 0 ? null : new RateLimit(name, max, monotonicMs)
  return {
    tokens: limit('client', signInClient),
    clients: limit('client', client),
    strangers: limit('address', signInAddress),
  }
}

/** Attributes stand in plans and travel with messages: those past a bound stop here. */
function checkedAttributes(attributesOf: AttributesOf): AttributesOf {
  return (identity) => {
    const attributes = attributesOf(identity)
    const passed = passedBound(attributes)
    assert(passed === null, `the attributes of ${identity} have ${passed}`)
    return attributes
  }
}
