// What this member has seen of identities' activity, and has it written now and then: nobody waits
// for it. An identity is written once an hour (LIMITS.access.activityEveryMs), whoever of the
// members wrote it last; all identities together a bounded number a second, those first that have
// waited longest. What fails, or finds no room, is written when the identity is seen again; what
// waits when the process ends is lost: a second of it, more only where more wait than may be
// written in a second. Source: CONTRACT 1.8 "Last use".

import type { ActorSystem } from '../../../cluster/actor-system.ts'
import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { askActor } from '../sessions/read.ts'
import type { Asked } from '../sessions/read.ts'
import { ACTIVITY, activityId } from './activity.ts'
import type { ActivityAnswer, Identified, UsedAnswer, UsedBody } from './activity.ts'

interface Seen extends Identified {
  readonly secretId: string | null
  atMs: number
}

const ORIGIN = { by: 'system', trace: 'identity-activity' }

export class NotedActivity {
  readonly #actorSystem: Pick<ActorSystem, 'ask' | 'system'>
  readonly #clock: Clock
  /** Time that was written last, as far as this member knows, the one learned first is first. */
  readonly #written = new Map<string, number>()
  /** To be written, in the order in which they were seen first. */
  readonly #waiting = new Map<string, Seen>()
  #underWay = 0
  #cancel: (() => void) | null = null

  constructor(actorSystem: Pick<ActorSystem, 'ask' | 'system'>, clock: Clock) {
    this.#actorSystem = actorSystem
    this.#clock = clock
  }

  /** Times at hand, and how many wait. */
  get sizes(): { readonly written: number; readonly waiting: number } {
    return { written: this.#written.size, waiting: this.#waiting.size }
  }

  stop(): void {
    this.#cancel?.()
    this.#waiting.clear()
  }

  /** The identity is here: it signs in, or a token of it was looked at. */
  active({ kind, identity }: Identified): void {
    this.#note(identity, { kind, identity, secretId: null })
  }

  /** A secret of the client was right. */
  secretUsed(clientId: string, secretId: string): void {
    this.#note(`${clientId} ${secretId}`, { kind: 'client', identity: clientId, secretId })
  }

  #note(key: string, seen: Omit<Seen, 'atMs'>): void {
    const atMs = this.#clock.nowMs()
    const writtenMs = this.#written.get(key)
    const { activityEveryMs, activityAheadMs, activityWaitingMax } = LIMITS.access
    const isKnown = writtenMs !== undefined && writtenMs <= atMs + activityAheadMs
    if (isKnown && atMs < writtenMs + activityEveryMs) return
    const waiting = this.#waiting.get(key)
    if (waiting !== undefined) waiting.atMs = atMs
    else if (this.#waiting.size < activityWaitingMax) {
      this.#waiting.set(key, { ...seen, atMs })
      this.#writeLater()
    }
  }

  #writeLater(): void {
    this.#cancel ??= this.#clock.after(1_000, () => {
      this.#cancel = null
      for (const [key, seen] of this.#waiting) {
        if (this.#underWay >= LIMITS.access.activityWritesPerSecondMax) break
        this.#waiting.delete(key)
        void this.#write(key, seen)
      }
      if (this.#waiting.size > 0) this.#writeLater()
    })
  }

  async #write(key: string, seen: Seen): Promise<void> {
    const known = this.#actorSystem.system.get<{ secrets?: { secretId: string }[] }>(
      seen.kind,
      seen.identity,
    )
    if (known === null) return
    const { atMs, secretId } = seen
    this.#underWay++
    // Meanwhile it isn't written a second time.
    this.#learn(key, atMs)
    try {
      const secretIds = secretId === null ? [] : (known.value.secrets ?? []).map(idOf)
      const answer = await this.#ask<UsedAnswer>(seen, 'used', { ...seen, secretIds })
      if (!('refused' in answer)) this.#learn(key, answer.atMs)
      else if (answer.refused === 'INVALID_STATE') await this.#read(key, seen)
    } catch {
      this.#written.delete(key)
    } finally {
      this.#underWay--
    }
  }

  /** Another member has written it less than an hour ago: when? */
  async #read(key: string, seen: Seen): Promise<void> {
    const answer = await this.#ask<ActivityAnswer>(seen, 'read', {})
    if ('refused' in answer) return
    const { activeAtMs, secrets } = answer
    this.#learn(key, seen.secretId === null ? activeAtMs : (secrets[seen.secretId] ?? seen.atMs))
  }

  #ask<T extends object>(
    of: Identified,
    type: 'used' | 'read',
    body: UsedBody | object,
  ): Promise<Asked<T>> {
    const to = { type: ACTIVITY, id: activityId(of) }
    return askActor<T>(this.#actorSystem, to, { type, body }, ORIGIN)
  }

  #learn(key: string, atMs: number): void {
    this.#written.delete(key)
    this.#written.set(key, atMs)
    if (this.#written.size <= LIMITS.access.activityKnownMax) return
    this.#written.delete(this.#written.keys().next().value!)
  }
}

function idOf({ secretId }: { readonly secretId: string }): string {
  return secretId
}
