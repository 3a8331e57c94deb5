// How often sign-ins were wrong of late, by client and network and by network, in bounded memory.
// Only outcomes that were wrong count: who is right is never slowed by them. Each count is a leaky
// bucket kept as one time (GCRA): when it will be empty. Source: CONTRACT 1.11 "Wrong sign-ins".

import { hash } from 'node:crypto'
import { LIMITS } from '../../config/limits.ts'
import { networkOf } from './network.ts'

/** Whom a sign-in counts for. */
export interface Origin {
  /** The client and the network; a digest, for a client's name may be long. */
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

export class WrongSignIns {
  readonly #nowMs: () => number
  readonly #pairs = new Buckets(LIMITS.access.signInWrongMax, LIMITS.access.signInWrongEveryMs)
  readonly #networks = new Buckets(
    LIMITS.access.signInWrongOfNetworkMax,
    LIMITS.access.signInWrongOfNetworkEveryMs,
  )
  readonly #all = new Buckets(LIMITS.access.signInFloodMax, LIMITS.access.signInFloodEveryMs)

  /** `nowMs` is monotonic. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
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

  /** There are so many wrong ones from everywhere that checking them all is a load. */
  get isFlooded(): boolean {
    return this.#all.waitMs('', this.#nowMs()) > 0
  }

  /** Origins that are remembered. */
  get size(): number {
    return this.#pairs.size + this.#networks.size
  }
}
