// Which principal an account at the provider is. Its issuer and subject alone say so, for good; an
// e-mail address that the provider has verified may lead to a principal once, by which the account
// becomes one of its logins. An address goes from one person to another, so a principal that has an
// account there already gets no second one by it. What may be written so is decided by the owner of
// the system shard (administration/sign-in-changes.ts). Source: CONTRACT 1.11 "External sign-in",
// OpenID Connect Core 1.0 5.7.

import type { ActorSystem, SystemEntry } from '../../../cluster/actor-system.ts'
import type { World } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { OidcSettings } from '../../../config/settings.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { ErrorCode } from '../../../protocol/errors.ts'
import { uuidMaker } from '../../../protocol/ids.ts'
import { etagOf, failureOf, putRequest } from '../../system-actor.ts'
import type { PutBody } from '../../system-actor.ts'
import { foldedEmail, isEmail, isName, loginName } from '../principal.ts'
import type { Principal } from '../principal.ts'
import type { Account, Profile } from './provider.ts'

export interface LoginsOptions {
  readonly actorSystem: ActorSystem
  readonly world: World
  readonly settings: Pick<OidcSettings, 'findBy' | 'firstSignIn' | 'domains' | 'roles'>
}

interface Writing {
  readonly key: string
  readonly body: PutBody<Principal>
}

/** What a change is refused with whose principal has changed since; of a link 403 as well. */
const SECOND = new Set(['CONFLICT', 'ALREADY_EXISTS', 'FORBIDDEN'])

export class Logins {
  readonly #options: LoginsOptions
  readonly #newId: () => string

  constructor(options: LoginsOptions) {
    const { clock, random } = options.world
    this.#options = options
    const make = uuidMaker(random)
    this.#newId = () => make(clock.nowMs())
  }

  /**
   * The principal's id; null: nobody's account, or of somebody who is suspended. Throws
   * ProviderFault, and RequestError where the store can't be written.
   */
  async principalOf(account: Account, trace: string): Promise<string | null> {
    const { system } = this.#options.actorSystem
    const find = (name: string) => system.find<Principal>('principal', name)
    const own = loginName(account)
    for (let tries = 1; ; tries++) {
      const linked = find(own)
      if (linked !== null) return isActive(linked) ? linked.key : null
      const profile = await account.profile()
      const address = profile.email === null ? '' : foldedEmail(profile.email)
      const found = find(address)
      const writing = this.#writing(account, profile, found)
      if (writing === null) return null
      const { key, body } = writing
      const asked = putRequest('principal', key, body, { by: key, trace })
      const error = failureOf(await this.#options.actorSystem.ask(asked))
      if (error === null) {
        await this.#until(() => find(own) !== null)
        return key
      }
      const isLast = tries === LIMITS.access.externalTriesMax
      if (isLast && error.code === 'FORBIDDEN') return null
      if (isLast || !SECOND.has(error.code)) {
        throw new RequestError(error.code as ErrorCode, error.message, error.details)
      }
      // Somebody was first, with this account or with this address: seen here in a moment.
      await this.#until(() => find(own) !== null || find(address) !== found)
    }
  }

  /** What would make the account somebody's; null: nothing may. */
  #writing(
    { issuer, subject }: Account,
    { email, name }: Profile,
    found: SystemEntry<Principal> | null,
  ): Writing | null {
    const { settings, world } = this.#options
    if (email === null || !isEmail(email)) return null
    const login = { issuer, subject }
    if (found !== null) {
      const logins = found.value.logins ?? []
      const isOthers = logins.some((one) => one.issuer === issuer)
      const isFull = logins.length >= LIMITS.access.loginsMax
      if (settings.findBy !== 'email' || !isActive(found) || isOthers || isFull) return null
      const value = { ...found.value, logins: [...logins, login] }
      return { key: found.key, body: { value, ifMatch: [etagOf(found.version)] } }
    }
    if (settings.firstSignIn !== 'make' || !isOfOne(settings.domains, email)) return null
    const value: Principal = {
      properties: { name: name !== null && isName(name) ? name : email, email },
      roles: [...settings.roles],
      accessAttributes: {},
      password: null,
      logins: [login],
      sessionEpoch: 0,
      createdAt: new Date(world.clock.nowMs()).toISOString(),
      suspendedAt: null,
    }
    return { key: this.#newId(), body: { value, ifAbsent: true } }
  }

  /** Until this member's maps say so, or as long as they may be behind. */
  #until(isThere: () => boolean): Promise<void> {
    const { actorSystem, world } = this.#options
    if (isThere()) return Promise.resolve()
    return new Promise((resolve) => {
      const end = (): void => {
        unfollow()
        cancel()
        resolve()
      }
      const unfollow = actorSystem.system.onChange('principal', () => isThere() && end())
      const cancel = world.clock.after(LIMITS.cluster.systemStaleMs, end)
    })
  }
}

/** Of no domains: any will do. */
function isOfOne(domains: readonly string[], email: string): boolean {
  const domain = foldedEmail(email.slice(email.lastIndexOf('@') + 1))
  return domains.length === 0 || domains.includes(domain)
}

function isActive({ value }: { readonly value: Principal }): boolean {
  return value.suspendedAt === null
}
