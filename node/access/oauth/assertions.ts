// Clients that sign: `private_key_jwt`. The client shows a JWT that it signed with a key whose
// public half it has registered; each is taken once. What was taken is remembered until it would
// have expired, in bounded memory; where there are several members they agree about what this one
// has not seen (`assertion-place.ts`). Source: RFC 7523 3, RFC 7521 4.2, CONTRACT 1.11.

import { createLocalJWKSet, decodeJwt, errors, jwtVerify } from 'jose'
import type { JSONWebKeySet, JWTPayload } from 'jose'
import { LIMITS } from '../../../config/limits.ts'
import { faultOfKey, PUBLIC_KEY_ALGORITHMS } from '../client-keys.ts'
import { authMethodOf } from '../client.ts'
import type { Client } from '../client.ts'
import type { AssertionPlace } from './assertion-place.ts'

export interface AssertionsOptions {
  /** What an assertion may be meant for: this server by its name, or an endpoint of it. */
  readonly audiences: readonly string[]
  /** Wall clock, milliseconds. */
  readonly nowMs: () => number
  /** What all members ask, once an assertion is good; null: this is the only one. */
  readonly place: Pick<AssertionPlace, 'take'> | null
}

export type AssertionAnswer = 'right' | 'wrong' | 'used' | 'full'

export class Assertions {
  readonly #options: AssertionsOptions
  /** When what was taken expires, by client and `jti`. */
  readonly #taken = new Map<string, Map<string, number>>()
  #count = 0

  constructor(options: AssertionsOptions) {
    this.#options = options
  }

  /** Whose it says it is, before anything is believed; null: no assertion at all. */
  subjectOf(assertion: string): string | null {
    if (assertion.length > LIMITS.access.assertionCharsMax) return null
    try {
      const { sub, iss } = decodeJwt(assertion)
      return typeof sub === 'string' && sub === iss ? sub : null
    } catch {
      return null
    }
  }

  /**
   * Whether this client signed it, for us, for now, and showed it never before. Throws RequestError
   * where other members can't be asked (429, 503, 504).
   */
  async check(assertion: string, clientId: string, client: Client): Promise<AssertionAnswer> {
    const keys = client.properties.jwks
    if (authMethodOf(client) !== 'private_key_jwt' || keys === undefined) return 'wrong'
    const fit = { keys: keys.keys.filter((key) => faultOfKey(key) === null) }
    const claims = await this.#verify(assertion, clientId, fit)
    if (claims === null) return 'wrong'
    const { jti, exp } = claims
    const { clockToleranceMs, assertionLifeMsMax } = LIMITS.access
    const endMs = exp! * 1_000 + clockToleranceMs
    if (endMs > this.#options.nowMs() + assertionLifeMsMax + 2 * clockToleranceMs) return 'wrong'
    if (typeof jti !== 'string' || jti.length > LIMITS.access.assertionIdCharsMax) return 'wrong'
    const taken = this.#take(clientId, jti, endMs)
    const { place } = this.#options
    if (taken !== 'right' || place === null) return taken
    try {
      return (await place.take(clientId, jti)) ? 'right' : 'used'
    } catch (error) {
      // Who comes again with it is told by the others.
      this.#giveBack(clientId, jti)
      throw error
    }
  }

  async #verify(
    assertion: string,
    clientId: string,
    jwks: JSONWebKeySet,
  ): Promise<JWTPayload | null> {
    const nowMs = this.#options.nowMs()
    const options = {
      algorithms: [...PUBLIC_KEY_ALGORITHMS],
      audience: [...this.#options.audiences],
      issuer: clientId,
      subject: clientId,
      requiredClaims: ['exp', 'jti'],
      clockTolerance: LIMITS.access.clockToleranceMs / 1_000,
      currentDate: new Date(nowMs),
    }
    try {
      return (await jwtVerify(assertion, createLocalJWKSet(jwks), options)).payload
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) return null
      // Without a key's name each that could be the one is tried.
      for await (const key of error) {
        const found = await jwtVerify(assertion, key, options).catch(() => null)
        if (found !== null) return found.payload
      }
      return null
    }
  }

  #take(clientId: string, jti: string, endMs: number): AssertionAnswer {
    const own = this.#taken.get(clientId) ?? new Map<string, number>()
    if (own.has(jti)) return 'used'
    if (!this.#hasRoom(own.size)) this.#sweep()
    if (!this.#hasRoom(own.size)) return 'full'
    own.set(jti, endMs)
    this.#count++
    this.#taken.set(clientId, own)
    return 'right'
  }

  /** Of one client no more than are still free: a few that ask for all leave room for others. */
  #hasRoom(ownCount: number): boolean {
    const { assertionsOfClientMax, assertionsMax } = LIMITS.access
    return ownCount < Math.min(assertionsOfClientMax, assertionsMax - this.#count)
  }

  #giveBack(clientId: string, jti: string): void {
    const own = this.#taken.get(clientId)
    if (own?.delete(jti) !== true) return
    this.#count--
    if (own.size === 0) this.#taken.delete(clientId)
  }

  #sweep(): void {
    const nowMs = this.#options.nowMs()
    for (const [clientId, own] of this.#taken) {
      for (const [jti, endMs] of own) {
        if (endMs > nowMs) continue
        own.delete(jti)
        this.#count--
      }
      if (own.size === 0) this.#taken.delete(clientId)
    }
  }
}
