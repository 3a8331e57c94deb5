// Sessions that are being looked up at their owners: each once at a time, so many for strangers,
// and so many of one network; more wait a moment, networks in turns. Whose token this member knew
// has room of their own, so a flood of made-up tokens keeps nobody waiting who was here before.
// Source: PROTOCOL 3.10, 3.0 "Sessions".

import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import { networkOf } from './network.ts'
import type { LiveSession } from './sessions/session-state.ts'

/** What was found. */
export interface LookUp {
  /** null: there is none, or it has ended, or ended while it was looked for. */
  readonly session: LiveSession | null
  /** Monotonic time before it was asked for. */
  readonly askedMs: number
}

export interface LookUpsOptions {
  /** The session as its owner has it. Throws RequestError when it can't be told. */
  readonly read: (sessionId: string) => Promise<LiveSession | null>
  /** Monotonic milliseconds. */
  readonly nowMs: () => number
}

interface UnderWay {
  readonly found: Promise<LookUp>
  isOver: boolean
}

/** A stranger's, for which there is no room yet. */
interface Waiting {
  readonly network: string
  readonly sinceMs: number
  readonly begin: () => void
  readonly refuse: () => void
}

export class LookUps {
  readonly #options: LookUpsOptions
  readonly #underWay = new Map<string, UnderWay>()
  #strangers = 0
  readonly #ofNetwork = new Map<string, number>()
  /** Longest first. */
  readonly #waiting = new Set<Waiting>()
  /** The same by network; whose turn comes next is first. */
  readonly #turns = new Map<string, Set<Waiting>>()

  constructor(options: LookUpsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#underWay.size
  }

  isUnderWay(sessionId: string): boolean {
    return this.#underWay.has(sessionId)
  }

  /** Of a session that this member knows; there are never more than it has at hand. */
  again(sessionId: string): Promise<LookUp> {
    const known = this.#underWay.get(sessionId)
    return known?.found ?? this.#track(sessionId, this.#ask(sessionId))
  }

  /**
   * null: too many wait. `address`: of the caller; empty where nobody can tell. Rejects with a
   * RequestError what has waited too long, or can't be told.
   */
  forStranger(sessionId: string, address: string): Promise<LookUp> | null {
    const known = this.#underWay.get(sessionId)
    if (known !== undefined) return known.found
    const network = address === '' ? '' : networkOf(address).own
    if (this.#hasRoom(network)) return this.#track(sessionId, this.#askFor(sessionId, network))
    this.#refuseLate()
    const own = this.#turns.get(network)?.size ?? 0
    const { lookUpsWaitingMax, lookUpsOfNetworkWaitingMax } = LIMITS.access
    if (this.#waiting.size >= lookUpsWaitingMax || own >= lookUpsOfNetworkWaitingMax) return null
    return this.#track(sessionId, this.#wait(sessionId, network))
  }

  /** The session has ended: what is under way was asked before, and finds none. */
  over(sessionId: string): void {
    const underWay = this.#underWay.get(sessionId)
    if (underWay !== undefined) underWay.isOver = true
  }

  #track(sessionId: string, asked: Promise<LookUp>): Promise<LookUp> {
    const found = asked
      .then(({ session, askedMs }) => ({ session: underWay.isOver ? null : session, askedMs }))
      .finally(() => this.#underWay.delete(sessionId))
    const underWay: UnderWay = { found, isOver: false }
    this.#underWay.set(sessionId, underWay)
    return found
  }

  async #ask(sessionId: string): Promise<LookUp> {
    const askedMs = this.#options.nowMs()
    return { session: await this.#options.read(sessionId), askedMs }
  }

  #askFor(sessionId: string, network: string): Promise<LookUp> {
    this.#strangers++
    this.#ofNetwork.set(network, (this.#ofNetwork.get(network) ?? 0) + 1)
    return this.#ask(sessionId).finally(() => {
      this.#strangers--
      const left = this.#ofNetwork.get(network)! - 1
      if (left === 0) this.#ofNetwork.delete(network)
      else this.#ofNetwork.set(network, left)
      this.#next()
    })
  }

  #hasRoom(network: string): boolean {
    const { lookUpsMax, lookUpsOfNetworkMax } = LIMITS.access
    const own = this.#ofNetwork.get(network) ?? 0
    return this.#strangers < lookUpsMax && own < lookUpsOfNetworkMax
  }

  #wait(sessionId: string, network: string): Promise<LookUp> {
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        network,
        sinceMs: this.#options.nowMs(),
        begin: () => resolve(this.#askFor(sessionId, network)),
        refuse: () => reject(new RequestError('UNAVAILABLE', 'tokens wait too long; try again')),
      }
      this.#waiting.add(waiting)
      const own = this.#turns.get(network)
      if (own) own.add(waiting)
      else this.#turns.set(network, new Set([waiting]))
    })
  }

  /** Begins with those for whom there is room now, one of each network in turn. */
  #next(): void {
    this.#refuseLate()
    for (const [network, own] of this.#turns) {
      if (this.#strangers >= LIMITS.access.lookUpsMax) return
      if (!this.#hasRoom(network)) continue
      const [waiting] = own
      this.#leave(waiting!)
      if (own.size > 0) {
        this.#turns.delete(network)
        this.#turns.set(network, own)
      }
      waiting!.begin()
    }
  }

  /** Owners are slow or away: who would be served next would be served too late. */
  #refuseLate(): void {
    const untilMs = this.#options.nowMs() - LIMITS.access.lookUpWaitMs
    for (const waiting of this.#waiting) {
      if (waiting.sinceMs > untilMs) return
      this.#leave(waiting)
      waiting.refuse()
    }
  }

  #leave(waiting: Waiting): void {
    this.#waiting.delete(waiting)
    const own = this.#turns.get(waiting.network)!
    own.delete(waiting)
    if (own.size === 0) this.#turns.delete(waiting.network)
  }
}
