// How often sign-ins were wrong of late, by account and network and by network, in bounded memory.
// Only outcomes that were wrong count: who is right is never slowed by them. Of an account some are
// free, from then on each has to wait, twice as long as the one before it; of a network the count
// is a leaky bucket kept as one time (GCRA): when it will be empty. Source: CONTRACT 1.11 "Wrong
// sign-ins".

import { hash } from 'node:crypto'
import { LIMITS } from '../../config/limits.ts'
import { networkOf } from './network.ts'

/** Whom a sign-in counts for. */
export interface Origin {
  /** The account and the network; a digest, for a name may be long. */
  readonly pair: string
  readonly network: string
  readonly block: string
}

export function originOf(clientId: string, address: string): Origin {
  const { own, block } = networkOf(address)
  return { pair: hash('sha256', `${own}\n${clientId}`, 'base64url'), network: own, block }
}

class Buckets {
  readonly #max: number
  readonly #everyMs: number
  /** When each is empty, in order of the last wrong one. */
  readonly #emptyMs = new Map<string, number>()

  /** `max` wrong ones at once, and one more each `everyMs`; further ones make it no fuller. */
  constructor(max: number, everyMs: number) {
    this.#max = max
    this.#everyMs = everyMs
  }

  add(key: string, nowMs: number): void {
    const withThisMs = Math.max(nowMs, this.#emptyMs.get(key) ?? 0) + this.#everyMs
    const emptyMs = Math.min(withThisMs, nowMs + this.#max * this.#everyMs)
    this.#emptyMs.delete(key)
    if (this.#emptyMs.size >= LIMITS.access.signInOriginsMax) {
      this.#emptyMs.delete(this.#emptyMs.keys().next().value!)
    }
    this.#emptyMs.set(key, emptyMs)
  }

  isEmpty(key: string, nowMs: number): boolean {
    return (this.#emptyMs.get(key) ?? 0) <= nowMs
  }

  /** Until there is room for one more. */
  waitMs(key: string, nowMs: number): number {
    const fullMs = (this.#max - 1) * this.#everyMs
    return Math.max(0, (this.#emptyMs.get(key) ?? 0) - nowMs - fullMs)
  }

  get size(): number {
    return this.#emptyMs.size
  }
}

interface Lockout {
  wrong: number
  /** They are forgotten so long after the first, and once each has to wait, after the last. */
  sinceMs: number
  /** Nothing is checked before. */
  untilMs: number
}

class Lockouts {
  readonly #max: number
  readonly #ms: number
  /** In order of the last wrong one. */
  readonly #known = new Map<string, Lockout>()

  constructor({ max, ms }: WrongSignInsOptions) {
    this.#max = max
    this.#ms = ms
  }

  add(key: string, nowMs: number): void {
    const one = this.#at(key, nowMs) ?? { wrong: 0, sinceMs: nowMs, untilMs: nowMs }
    const { signInWaitMs, signInWaitMaxMs, signInOriginsMax } = LIMITS.access
    const waits = ++one.wrong - this.#max
    if (waits >= 0) {
      one.sinceMs = nowMs
      one.untilMs = nowMs + Math.min(signInWaitMaxMs, signInWaitMs * 2 ** waits)
    }
    this.#known.delete(key)
    if (this.#known.size >= signInOriginsMax) {
      this.#known.delete(this.#known.keys().next().value!)
    }
    this.#known.set(key, one)
  }

  isEmpty(key: string, nowMs: number): boolean {
    return this.#at(key, nowMs) === undefined
  }

  waitMs(key: string, nowMs: number): number {
    return Math.max(0, (this.#at(key, nowMs)?.untilMs ?? 0) - nowMs)
  }

  get size(): number {
    return this.#known.size
  }

  #at(key: string, nowMs: number): Lockout | undefined {
    const one = this.#known.get(key)
    return one !== undefined && one.sinceMs + this.#ms > nowMs ? one : undefined
  }
}

export interface WrongSignInsOptions {
  /** Wrong ones of an account from a network that are checked at once. */
  readonly max: number
  /** Until so many are forgotten, milliseconds. */
  readonly ms: number
}

const USUAL = { max: LIMITS.access.signInWrongMax, ms: LIMITS.access.signInWrongMs }

export class WrongSignIns {
  readonly #nowMs: () => number
  readonly #pairs: Lockouts
  readonly #networks = new Buckets(
    LIMITS.access.signInWrongOfNetworkMax,
    LIMITS.access.signInWrongOfNetworkEveryMs,
  )
  readonly #all = new Buckets(LIMITS.access.signInFloodMax, LIMITS.access.signInFloodEveryMs)

  /** `nowMs` is monotonic. */
  constructor(nowMs: () => number, options: WrongSignInsOptions = USUAL) {
    this.#nowMs = nowMs
    this.#pairs = new Lockouts(options)
  }

  count({ pair, network }: Origin): void {
    const nowMs = this.#nowMs()
    this.#pairs.add(pair, nowMs)
    this.#networks.add(network, nowMs)
    this.#all.add('', nowMs)
  }

  /** How long nothing more is checked for this origin; 0: it may be. */
  waitMs({ pair, network }: Origin): number {
    const nowMs = this.#nowMs()
    return Math.max(this.#pairs.waitMs(pair, nowMs), this.#networks.waitMs(network, nowMs))
  }

  /** It was wrong of late: it waits behind those who were not. */
  isSuspect({ pair, network }: Origin): boolean {
    const nowMs = this.#nowMs()
    return !this.#pairs.isEmpty(pair, nowMs) || !this.#networks.isEmpty(network, nowMs)
  }

  /** Of this account from this network there was a wrong one of late. */
  wasWrong({ pair }: Origin): boolean {
    return !this.#pairs.isEmpty(pair, this.#nowMs())
  }

  /** There are so many wrong ones from everywhere that checking them all is a load. */
  get isFlooded(): boolean {
    return this.#all.waitMs('', this.#nowMs()) > 0
  }

  /** Origins that are remembered. */
  get size(): number {
    return this.#pairs.size + this.#networks.size
  }
}
