// When identities were active last, as lists and single answers show it: asked of their activities'
// owners, some side by side and all within a deadline. What can't be told by then is left out,
// which is not the same as never. Source: CONTRACT 1.8 "Last use".

import type { ActorSystem } from '../../../cluster/actor-system.ts'
import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { askActor } from '../sessions/read.ts'
import { ACTIVITY, activityId } from './activity.ts'
import type { ActivityAnswer, Identified } from './activity.ts'

/** ISO 8601, or null: never; undefined: it can't be told. */
export interface ShownActivity {
  readonly lastActiveAt: string | null | undefined
  secretUsedAt(secretId: string): string | null | undefined
}

const NEVER: ShownActivity = { lastActiveAt: null, secretUsedAt: () => null }

export class LastActivity {
  readonly #actorSystem: Pick<ActorSystem, 'ask'>
  readonly #clock: Clock

  constructor(actorSystem: Pick<ActorSystem, 'ask'>, clock: Clock) {
    this.#actorSystem = actorSystem
    this.#clock = clock
  }

  /** In the order of the identities; null: it can't be told at the moment. */
  async of(
    kind: Identified['kind'],
    identities: readonly string[],
    trace: string,
  ): Promise<readonly (ShownActivity | null)[]> {
    const untilMs = this.#clock.monotonicMs() + LIMITS.access.activityReadMs
    const found: (ShownActivity | null)[] = identities.map(() => null)
    const left = identities.entries()
    const readSome = async (): Promise<void> => {
      for (const [at, identity] of left) {
        const budgetMs = untilMs - this.#clock.monotonicMs()
        if (budgetMs <= 0) return
        found[at] = await this.#read({ kind, identity }, { budgetMs, trace })
      }
    }
    await Promise.all(Array.from({ length: LIMITS.access.activityReadsMax }, readSome))
    return found
  }

  async #read(
    of: Identified,
    asked: { readonly budgetMs: number; readonly trace: string },
  ): Promise<ShownActivity | null> {
    const to = { type: ACTIVITY, id: activityId(of) }
    const message = { type: 'read', body: {} }
    try {
      const origin = { by: 'system', ...asked }
      const answer = await askActor<ActivityAnswer>(this.#actorSystem, to, message, origin)
      return 'refused' in answer ? NEVER : this.#shown(answer)
    } catch (error) {
      if (error instanceof RequestError) return null
      throw error
    }
  }

  /**
   * The owner's clock may be ahead of this one: nobody sees what is to come. What is far ahead says
   * nothing: shown as now, it would call an identity active that nobody uses.
   */
  #shown({ activeAtMs, secrets }: ActivityAnswer): ShownActivity {
    const nowMs = this.#clock.nowMs()
    const text = (ms: number): string | undefined =>
      ms > nowMs + LIMITS.access.activityAheadMs
        ? undefined
        : new Date(Math.min(ms, nowMs)).toISOString()
    return {
      lastActiveAt: text(activeAtMs),
      secretUsedAt(secretId) {
        const ms = secrets[secretId]
        return ms === undefined ? null : text(ms)
      },
    }
  }
}
