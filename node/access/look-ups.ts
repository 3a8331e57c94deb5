// Sessions that are being looked up at their owners: each once at a time, so many for strangers,
// and so many of one network. Whose token this member knew has room of their own, so a flood of
// made-up tokens keeps nobody waiting who was here before. Source: PROTOCOL 3.10, 3.0 "Sessions".

import { LIMITS } from '../../config/limits.ts'
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

export class LookUps {
  readonly #options: LookUpsOptions
  readonly #underWay = new Map<string, UnderWay>()
  #strangers = 0
  readonly #ofNetwork = new Map<string, number>()

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
    return this.#underWay.get(sessionId)?.found ?? this.#begin(sessionId, () => undefined)
  }

  /** null: there is no room. `address`: of the caller; empty where nobody can tell. */
  forStranger(sessionId: string, address: string): Promise<LookUp> | null {
    const known = this.#underWay.get(sessionId)
    if (known !== undefined) return known.found
    const network = address === '' ? '' : networkOf(address).own
    const own = this.#ofNetwork.get(network) ?? 0
    const { lookUpsMax, lookUpsOfNetworkMax } = LIMITS.access
    if (this.#strangers >= lookUpsMax || own >= lookUpsOfNetworkMax) return null
    this.#strangers++
    this.#ofNetwork.set(network, own + 1)
    return this.#begin(sessionId, () => {
      this.#strangers--
      const left = this.#ofNetwork.get(network)! - 1
      if (left === 0) this.#ofNetwork.delete(network)
      else this.#ofNetwork.set(network, left)
    })
  }

  /** The session has ended: what is under way was asked before, and finds none. */
  over(sessionId: string): void {
    const underWay = this.#underWay.get(sessionId)
    if (underWay !== undefined) underWay.isOver = true
  }

  #begin(sessionId: string, done: () => void): Promise<LookUp> {
    const askedMs = this.#options.nowMs()
    const found = this.#options
      .read(sessionId)
      .then((session) => ({ session: underWay.isOver ? null : session, askedMs }))
      .finally(() => {
        this.#underWay.delete(sessionId)
        done()
      })
    const underWay: UnderWay = { found, isOver: false }
    this.#underWay.set(sessionId, underWay)
    return found
  }
}
