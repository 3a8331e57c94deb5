// Who signs in on the pages: people by e-mail address and password. Source: CONTRACT 1.11 "Pages",
// 1.8 "Passwords".

import type { ActorSystem, SystemEntry } from '../../../cluster/actor-system.ts'
import { narrow, parseScope } from '../../../protocol/ace.ts'
import type { Acl } from '../../../protocol/ace.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { ErrorCode } from '../../../protocol/errors.ts'
import { etagOf, failureOf, putRequest } from '../../system-actor.ts'
import type { Client } from '../client.ts'
import type { PasswordAnswer, Passwords } from '../password.ts'
import { aclOfPrincipal, principalByEmail } from '../principal.ts'
import type { Principal } from '../principal.ts'

export interface Person {
  readonly id: string
  readonly email: string
  /** Of their sessions: another one once a password was changed, or they were suspended. */
  readonly epoch: number
}

export type SignedInAnswer =
  | { readonly is: 'right'; readonly person: Person; readonly isTemporary: boolean }
  | { readonly is: 'wrong' }
  /** Nothing was checked. */
  | { readonly is: 'not-checked'; readonly retryAfterMs: number; readonly isBusy: boolean }

export interface NewPassword {
  readonly id: string
  readonly current: string
  readonly next: string
  readonly address: string
  readonly trace: string
}

export interface PeopleOptions {
  readonly actorSystem: ActorSystem
  readonly passwords: Passwords
  /** Wall clock, milliseconds. */
  readonly nowMs: () => number
}

export class People {
  readonly #options: PeopleOptions

  constructor(options: PeopleOptions) {
    this.#options = options
  }

  /** Null: there is no such person, or they are suspended. */
  find(id: string): Person | null {
    const entry = this.#entry(id)
    return entry === null ? null : personOf(entry)
  }

  /** What a person's sessions with a client may do at most; null: there is no such person. */
  aclOf(id: string, client: Client): Acl | null {
    const { system } = this.#options.actorSystem
    const entry = this.#entry(id)
    if (entry === null) return null
    const acl = aclOfPrincipal(entry.value, system)
    const scopes = client.properties.scopes
    if (scopes === undefined) return acl
    const most = parseScope(scopes.join(' '))
    return narrow(acl, most.ok ? most.aces : [])
  }

  async check(of: {
    readonly email: string
    readonly password: string
    readonly address: string
  }): Promise<SignedInAnswer> {
    const { actorSystem, passwords } = this.#options
    const entry = principalByEmail<SystemEntry<Principal>>(actorSystem.system, of.email)
    const answer = await passwords.check({ principal: entry?.value ?? null, ...of })
    return this.#answer(answer, entry)
  }

  /** Replaces a password by whoever knows it. Throws RequestError when the store refuses. */
  async changePassword(
    change: NewPassword,
  ): Promise<SignedInAnswer | { readonly is: 'weak'; readonly reason: string }> {
    const { actorSystem, passwords, nowMs } = this.#options
    const { id, current, next, address, trace } = change
    const entry = this.#entry(id)
    if (entry === null) return { is: 'wrong' }
    const principal = entry.value
    const { email } = principal.properties
    const answer = await passwords.check({ principal, email, password: current, address })
    const checked = this.#answer(answer, entry)
    if (checked.is !== 'right') return checked
    const isSame = current.normalize('NFC') === next.normalize('NFC')
    const fault = isSame ? 'the password is the temporary one' : passwords.fault(next, principal)
    if (fault !== null) {
      return { is: 'weak', reason: typeof fault === 'string' ? fault : fault.message }
    }
    const hash = await passwords.hash(next)
    const password = { hash, changedAt: new Date(nowMs()).toISOString(), expiresAt: null }
    const value = { ...principal, password, sessionEpoch: principal.sessionEpoch + 1 }
    const body = { value, ifMatch: [etagOf(entry.version)] }
    const reply = await actorSystem.ask(putRequest('principal', id, body, { by: id, trace }))
    const error = failureOf(reply)
    if (error === null) {
      const person = { ...checked.person, epoch: value.sessionEpoch }
      return { is: 'right', person, isTemporary: false }
    }
    // Somebody else has changed this person meanwhile: what was checked is no more.
    if (error.code === 'CONFLICT' || error.code === 'FORBIDDEN') return { is: 'wrong' }
    throw new RequestError(error.code as ErrorCode, error.message, error.details)
  }

  #entry(id: string): SystemEntry<Principal> | null {
    const entry = this.#options.actorSystem.system.get<Principal>('principal', id)
    return entry === null || entry.value.suspendedAt !== null ? null : entry
  }

  #answer(answer: PasswordAnswer, entry: SystemEntry<Principal> | null): SignedInAnswer {
    if (typeof answer === 'object') {
      const isBusy = answer.refused === 'busy'
      return { is: 'not-checked', retryAfterMs: answer.retryAfterMs, isBusy }
    }
    if (answer === 'wrong' || entry === null) return { is: 'wrong' }
    // The check took a while; what it was of may be over.
    const now = this.find(entry.key)
    if (now === null || now.epoch !== entry.value.sessionEpoch) return { is: 'wrong' }
    return { is: 'right', person: now, isTemporary: answer === 'temporary' }
  }
}

function personOf({ key, value }: SystemEntry<Principal>): Person {
  return { id: key, email: value.properties.email, epoch: value.sessionEpoch }
}
