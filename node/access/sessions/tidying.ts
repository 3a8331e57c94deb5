// What leaves the maps of the `system` shard by time: revocations that nobody needs any more, and
// sessions as earlier versions kept them there. The shard's owner takes them away, a bounded number
// at a time. Source: PROTOCOL 3.0 "Sessions".

import type { ActorSystem } from '../../../cluster/actor-system.ts'
import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError, isRetryable } from '../../../protocol/errors.ts'
import type { ErrorCode } from '../../../protocol/errors.ts'
import { compileShape } from '../../../protocol/json/validation.ts'
import { Type } from '@sinclair/typebox'
import { deleteRequest, failureOf, systemActor } from '../../system-actor.ts'
import { REVOCATION } from './revocation.ts'
import type { Revocations } from './revocation.ts'

/** Sessions of earlier versions: none is made any more, and their tokens are good no more. */
export const OLD_SESSION = 'session'

export const oldSessionBehaviour = systemActor<unknown>(
  OLD_SESSION,
  compileShape(Type.Unknown()),
  ({ turn, message }) =>
    message.type === 'delete' && turn.by === 'system' ? null : 'sessions are not kept here',
)

export interface TidyingOptions {
  readonly actorSystem: ActorSystem
  readonly clock: Clock
  readonly revocations: Pick<Revocations, 'due'>
  /** This member has the `system` shard: it alone takes entries away. */
  readonly tidies: () => boolean
  readonly onError: (error: unknown) => void
}

export class Tidying {
  readonly #options: TidyingOptions
  #stopped = false
  #cancel: (() => void) | null = null

  constructor(options: TidyingOptions) {
    this.#options = options
  }

  start(): void {
    this.#sweepLater()
  }

  stop(): void {
    this.#stopped = true
    this.#cancel?.()
  }

  /** Returns how many it took away. */
  async sweep(): Promise<number> {
    const { tidies } = this.#options
    const due = this.#due()
    let gone = 0
    const remove = async (): Promise<void> => {
      while (!this.#stopped && tidies()) {
        const next = due.next()
        if (next.done === true) return
        await this.#remove(...next.value)
        gone++
      }
    }
    await Promise.all(Array.from({ length: LIMITS.access.tidyingInFlightMax }, remove))
    return gone
  }

  /** As it is at the beginning: what is taken away meanwhile changes the maps. */
  #due(): Iterator<readonly [type: string, key: string]> {
    const { actorSystem, revocations } = this.#options
    const old = Array.from(actorSystem.system.withPrefix(OLD_SESSION, ''), ({ key }) => key)
    return [
      ...Array.from(revocations.due(), (key) => [REVOCATION, key] as const),
      ...old.map((key) => [OLD_SESSION, key] as const),
    ].values()
  }

  async #remove(type: string, key: string): Promise<void> {
    const origin = { by: 'system', trace: 'session-tidying' }
    const asked = deleteRequest(type, key, {}, origin)
    const error = failureOf(await this.#options.actorSystem.ask(asked))
    if (error === null || error.code === 'NOT_FOUND') return
    throw new RequestError(error.code as ErrorCode, error.message, error.details)
  }

  #sweepLater(): void {
    if (this.#stopped) return
    const { clock, onError } = this.#options
    this.#cancel = clock.after(LIMITS.access.tidyingMs, () => {
      void this.sweep()
        .catch((error: unknown) => {
          const busy = error instanceof RequestError && isRetryable(error.errors[0]!.code)
          if (!busy) onError(error)
        })
        .finally(() => this.#sweepLater())
    })
  }
}
