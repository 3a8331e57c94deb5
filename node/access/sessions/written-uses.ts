// Writes down now and then that a session is used, for people who look at their sessions: nothing
// waits for it, and what fails is written the next time. Source: CONTRACT 1.8.

import type { ActorSystem } from '../../../cluster/actor-system.ts'
import { LIMITS } from '../../../config/limits.ts'
import { askActor } from './read.ts'
import { SESSION } from './session.ts'

export class WrittenUses {
  readonly #actorSystem: Pick<ActorSystem, 'ask'>
  /** Being written. */
  readonly #underWay = new Set<string>()

  constructor(actorSystem: Pick<ActorSystem, 'ask'>) {
    this.#actorSystem = actorSystem
  }

  write(sessionId: string): void {
    const { sessionUsesInFlightMax } = LIMITS.access
    if (this.#underWay.has(sessionId) || this.#underWay.size >= sessionUsesInFlightMax) return
    this.#underWay.add(sessionId)
    const to = { type: SESSION, id: sessionId }
    const message = { type: 'used', body: {} }
    const origin = { by: 'system', trace: 'session-used' }
    void askActor(this.#actorSystem, to, message, origin)
      .catch(() => undefined)
      .finally(() => this.#underWay.delete(sessionId))
  }
}
