// A bound on what the refused may have remembered. An answer under an idempotency key is kept with
// its actor for a day, a refusal by permission too: who may do nothing could fill a disk, and the
// windows of other people's actors, by new keys. It stands between the check of permissions and the
// owner. Source: CONTRACT 0 "Idempotency", PROTOCOL 3.6 "Marks".

import type { World } from '../../cluster/clock.ts'
import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'

interface Account {
  /** Refusals that may still be remembered; below 0 after a request with many messages. */
  left: number
  atMs: number
}

/** By identity: some refusals at once, and then one now and then, for each member. */
export class ForbiddenKeys {
  readonly #world: Pick<World, 'clock'>
  /** Whoever was met last stands last. */
  readonly #accounts = new Map<string, Account>()

  constructor(world: Pick<World, 'clock'>) {
    this.#world = world
  }

  /** Takes room for as many refusals. Throws RequestError 429 where there is none. */
  take(identity: string, count: number): void {
    if (count === 0) return
    const { forbiddenKeysMax, forbiddenKeyMs, forbiddenCallersMax } = LIMITS
    const nowMs = this.#world.clock.monotonicMs()
    const known = this.#accounts.get(identity)
    const regained = known ? (nowMs - known.atMs) / forbiddenKeyMs : 0
    const left = known ? Math.min(forbiddenKeysMax, known.left + regained) : forbiddenKeysMax
    const isOver = left < 1
    this.#accounts.delete(identity)
    this.#accounts.set(identity, { left: isOver ? left : left - count, atMs: nowMs })
    if (this.#accounts.size > forbiddenCallersMax) {
      this.#accounts.delete(this.#accounts.keys().next().value!)
    }
    if (!isOver) return
    const text =
      'you have no permission for this, and have asked so often under new Idempotency-Keys that ' +
      'no more answers are kept for you; nothing was done'
    throw new RequestError('RATE_LIMITED', text)
  }
}
