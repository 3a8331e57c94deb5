// A bound on what the refused may have remembered. An answer under an idempotency key is kept with
// its actor for a day, a refusal by permission too: who may do nothing could fill a disk, and the
// windows of other people's actors, by new keys. Source: CONTRACT 0 "Idempotency", PROTOCOL 3.6
// "Marks".

import { hash } from 'node:crypto'
import type { World } from '../../cluster/clock.ts'
import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'

interface Account {
  /** Refusals that may still be remembered; below 0 after a request with many messages. */
  left: number
  atMs: number
}

/** A request under an idempotency key: by these a repeat is known. */
export interface KeyedRequest {
  readonly identity: string
  /** Type of the actor. */
  readonly type: string
  /** As the caller has named the actor. */
  readonly id: string
  readonly idempotencyKey: string
  readonly bodyHash: string
}

/** By identity: some refusals at once, and then one now and then, for each member. */
export class ForbiddenKeys {
  readonly #world: Pick<World, 'clock'>
  /** Whoever was met last stands last. */
  readonly #accounts = new Map<string, Account>()
  /** Requests that room was taken for, by digest, with the time; the oldest first. */
  readonly #taken = new Map<string, number>()

  constructor(world: Pick<World, 'clock'>) {
    this.#world = world
  }

  /**
   * Takes room for as many refusals. A repeat takes none: its answer is there. Throws RequestError
   * 429 where there is no room.
   */
  take(request: KeyedRequest, count: number): void {
    if (count === 0) return
    const { forbiddenKeysMax, forbiddenKeyMs, forbiddenCallersMax } = LIMITS.actors
    const nowMs = this.#world.clock.monotonicMs()
    const { identity } = request
    const name = nameOf(request)
    const takenMs = this.#taken.get(name)
    if (takenMs !== undefined && nowMs - takenMs < LIMITS.storage.callerMarkMs) return
    const known = this.#accounts.get(identity)
    const regained = known ? (nowMs - known.atMs) / forbiddenKeyMs : 0
    const left = known ? Math.min(forbiddenKeysMax, known.left + regained) : forbiddenKeysMax
    const isOver = left < 1
    this.#accounts.delete(identity)
    this.#accounts.set(identity, { left: isOver ? left : left - count, atMs: nowMs })
    if (this.#accounts.size > forbiddenCallersMax) {
      this.#accounts.delete(this.#accounts.keys().next().value!)
    }
    if (!isOver) return this.#note(name, nowMs)
    const text =
      'you have no permission for this, and have asked so often under new Idempotency-Keys that ' +
      'no more answers are kept for you; nothing was done'
    throw new RequestError('RATE_LIMITED', text)
  }

  #note(name: string, nowMs: number): void {
    this.#taken.delete(name)
    this.#taken.set(name, nowMs)
    if (this.#taken.size <= LIMITS.actors.forbiddenRepeatsMax) return
    this.#taken.delete(this.#taken.keys().next().value!)
  }
}

function nameOf({ identity, type, id, idempotencyKey, bodyHash }: KeyedRequest): string {
  const text = JSON.stringify([identity, type, id, idempotencyKey, bodyHash])
  return hash('sha256', text, 'base64url')
}
