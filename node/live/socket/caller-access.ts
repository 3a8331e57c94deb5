// What the caller behind a connection may do, for as long as it is open: the token is looked at
// again when its session is revoked, its identity, its client or any role changes, and by the
// clock. A member that can't know what was revoked says so, and nothing is pushed meanwhile.
// Source: CONTRACT 1.10, 1.11.

import type { SystemView } from '../../../cluster/actor-system.ts'
import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { type Identity, callerOf } from '../../access/identity.ts'
import { REVOCATION } from '../../access/sessions/revocation.ts'
import type { Authenticate } from '../../http/core.ts'

/** Who calls, asked again before each push. */
export interface CallerAccess {
  /** null: it can't be told at the moment, or has ended; nothing may be shown. */
  readonly identity: Identity | null
  /** What it may do may be another from now. Runs until the access ends. */
  onChange(run: () => void): void
}

export interface AccessBookOptions {
  readonly system: SystemView
  readonly authenticate: Authenticate
  /** Whether this member may go by the system maps now. */
  readonly isKnown: () => boolean
  readonly clock: Clock
}

/** Whose access it is, and what becomes of it. */
export interface AccessEnd {
  /** Where the caller is: strangers of one network share what is looked up for them. */
  readonly address: string
  /** The token is refused from now on. */
  ended(error: RequestError): void
  /** For too long nobody could tell whether it stands. */
  unknowable(): void
}

export class AccessBook {
  readonly #options: AccessBookOptions
  readonly #bySession = new Map<string, Set<FollowedAccess>>()
  readonly #unfollow: readonly (() => void)[]
  /** Still to be looked at, longest first. */
  readonly #stale = new Set<FollowedAccess>()

  constructor(options: AccessBookOptions) {
    this.#options = options
    const { system } = options
    const recheckOf = (key: string): void => this.#recheck((access) => access.isOf(key))
    this.#unfollow = [
      system.onChange(REVOCATION, (key) => {
        for (const one of this.#bySession.get(key) ?? []) one.recheck()
      }),
      system.onChange('client', recheckOf),
      system.onChange('principal', recheckOf),
      system.onChange('role', () => this.#recheck(() => true)),
    ]
  }

  stop(): void {
    for (const unfollow of this.#unfollow) unfollow()
  }

  /** Who sent this token, followed until `release`; a RequestError is returned. */
  async open(token: string, end: AccessEnd): Promise<FollowedAccess | RequestError> {
    const who = await this.#options.authenticate(`Bearer ${token}`, () => end.address)
    if (who instanceof RequestError) return who
    const own = this.#bySession.get(who.sessionId) ?? new Set()
    if (own.size >= LIMITS.live.socketsOfSessionMax) {
      const text = `a session has at most ${LIMITS.live.socketsOfSessionMax} sockets`
      return new RequestError('TOO_BUSY', text)
    }
    const access = new FollowedAccess(this.#options, { token, who, end })
    this.#bySession.set(who.sessionId, own.add(access))
    return access
  }

  release(access: FollowedAccess): void {
    access.release()
    this.#stale.delete(access)
    const own = this.#bySession.get(access.sessionId)
    own?.delete(access)
    if (own?.size === 0) this.#bySession.delete(access.sessionId)
  }

  /** Ends what has expired, and looks again at what could not be told. */
  sweep(): void {
    for (const own of this.#bySession.values()) for (const access of own) access.sweep()
  }

  /** Nothing is shown by what was, from this moment; they are looked at some at a time. */
  #recheck(isConcerned: (access: FollowedAccess) => boolean): void {
    const isUnderWay = this.#stale.size > 0
    for (const own of this.#bySession.values()) {
      for (const access of own) {
        if (!isConcerned(access)) continue
        access.markStale()
        // Whoever waits already keeps the place: one change after another keeps nobody waiting.
        this.#stale.add(access)
      }
    }
    if (!isUnderWay && this.#stale.size > 0) this.#options.clock.defer(this.#recheckSome)
  }

  readonly #recheckSome = (): void => {
    const { clock } = this.#options
    const endMs = clock.monotonicMs() + LIMITS.live.recheckTurnMs
    for (const one of this.#stale) {
      this.#stale.delete(one)
      one.recheck()
      if (clock.monotonicMs() >= endMs) break
    }
    if (this.#stale.size > 0) clock.defer(this.#recheckSome)
  }
}

/**
 * known -> stale (a role changed) -> known | unknown | ended; unknown -> known | ended.
 */
export class FollowedAccess implements CallerAccess {
  readonly sessionId: string
  /** Whose it is, whatever they may do by now. */
  readonly owner: string
  readonly #options: AccessBookOptions
  readonly #token: string
  readonly #end: AccessEnd
  #who: Identity
  #state: 'known' | 'stale' | 'unknown' | 'ended' = 'known'
  /** A look is under way: it says how things are when it ends. */
  #isLooking = false
  #unknownSinceMs = 0
  /** When the token was looked at last, by the monotonic clock. */
  #lookedMs: number
  readonly #changed: (() => void)[] = []

  constructor(
    options: AccessBookOptions,
    {
      token,
      who,
      end,
    }: { readonly token: string; readonly who: Identity; readonly end: AccessEnd },
  ) {
    this.#options = options
    this.#token = token
    this.#end = end
    this.#who = who
    this.sessionId = who.sessionId
    this.owner = callerOf(who).group
    this.#lookedMs = options.clock.monotonicMs()
  }

  get identity(): Identity | null {
    if (this.#state === 'stale') this.recheck()
    return this.#state === 'known' && this.#options.isKnown() && !this.#isOver ? this.#who : null
  }

  /** It acts for the identity with this id, or by it. */
  isOf(key: string): boolean {
    return this.#who.id === key || this.#who.session.clientId === key
  }

  onChange(run: () => void): void {
    this.#changed.push(run)
  }

  release(): void {
    this.#state = 'ended'
    this.#changed.length = 0
  }

  markStale(): void {
    if (this.#state === 'known') this.#state = 'stale'
  }

  recheck(): void {
    if (this.#state === 'ended' || this.#isLooking) return
    const found = this.#options.authenticate(`Bearer ${this.#token}`, () => this.#end.address)
    if (!(found instanceof Promise)) {
      this.#take(found)
      return
    }
    this.#unknown()
    this.#isLooking = true
    void found
      .catch((): RequestError => new RequestError('UNAVAILABLE', 'the token cannot be checked'))
      .then((who) => {
        this.#isLooking = false
        this.#take(who)
      })
  }

  sweep(): void {
    if (this.#state === 'ended') return
    const { isKnown, clock } = this.#options
    if (this.#state === 'known' && !isKnown()) this.#unknown()
    const nowMs = clock.monotonicMs()
    // Within what its member may believe of a session before it asks again.
    const isDue = nowMs - this.#lookedMs >= (LIMITS.access.tokenLeaseMs * 3) / 4
    if (this.#isOver || isDue || this.#state !== 'known') this.recheck()
    const sinceMs = nowMs - this.#unknownSinceMs
    if (this.#state === 'unknown' && sinceMs >= LIMITS.live.unknowableMs) this.#end.unknowable()
  }

  get #isOver(): boolean {
    return this.#who.expiresAtMs <= this.#options.clock.nowMs()
  }

  #unknown(): void {
    if (this.#state === 'unknown' || this.#state === 'ended') return
    this.#state = 'unknown'
    this.#unknownSinceMs = this.#options.clock.monotonicMs()
  }

  #take(found: Identity | RequestError): void {
    if (this.#state === 'ended') return
    if (!(found instanceof RequestError)) {
      // Most roles that change are of others, or change nothing of what counts here.
      const isAnother = this.#state === 'unknown' || found.acl.text !== this.#who.acl.text
      this.#who = found
      this.#state = 'known'
      this.#lookedMs = this.#options.clock.monotonicMs()
      if (isAnother) for (const run of [...this.#changed]) run()
    } else if (found.errors[0]!.code === 'UNAUTHENTICATED') {
      this.#state = 'ended'
      this.#end.ended(found)
    } else this.#unknown()
  }
}
