// Passivation: which actors of a shard are in memory, how much that is, and when one goes to rest:
// after some idle time by the clock, at once when it was made and not asked again, sooner when
// memory runs short. Source: PROTOCOL 3.12.

import { LIMITS } from '../../../config/limits.ts'
import { ReleasingMap } from '../../../protocol/releasing-map.ts'
import type { Clock } from '../../clock.ts'
import type { Activation } from './activation.ts'

const SWEEP_EVERY = 64

export interface RestingOptions {
  readonly clock: Clock
  /** Bounds are the member's: each of its shards has an equal part. */
  readonly shards: number
  /** Most that the heap may grow to, bytes: where there is more, more actors stay. */
  readonly heapBytes: number
  /** Offset of the newest committed entry. */
  readonly head: () => number
}

export class Passivation {
  readonly activations = new ReleasingMap<string, Activation>()
  readonly #options: RestingOptions
  readonly #countMax: number
  readonly #weightMax: number
  #weight = 0
  #sinceSweep = 0

  constructor(options: RestingOptions) {
    this.#options = options
    const { activationsMax, activationsBytesMax, activationsHeapShare } = LIMITS.sharding
    const more = Math.max(1, (options.heapBytes * activationsHeapShare) / activationsBytesMax)
    const part = more / (options.shards + 1)
    this.#countMax = activationsMax * part
    this.#weightMax = activationsBytesMax * part
  }

  /** Keeps the account of how much memory the activations take. */
  count(activation: Activation): void {
    const { weight } = activation
    this.#weight += weight - activation.counted
    activation.counted = weight
  }

  /** An activation is asked something. */
  touched(activation: Activation): void {
    activation.used = true
    if (++this.#sinceSweep >= SWEEP_EVERY && this.#isCrowded(1)) this.sweep(false)
  }

  forget(activation: Activation): void {
    if (this.activations.get(activation.id) !== activation) return
    this.activations.delete(activation.id)
    this.#weight -= activation.counted
  }

  /** Empties it. */
  clear(): Activation[] {
    const all = [...this.activations.values()]
    this.activations.clear()
    this.#weight = 0
    return all
  }

  /**
   * An actor that was made and not asked again goes to rest with its commit: most orders come in by
   * the thousand and are next asked for much later. Keeping each for a while would cost more
   * (memory that outlives its generation) than loading the few that are needed. So does one that is
   * deleted: nobody asks it again but by mistake.
   */
  settled(activation: Activation): void {
    const { n, state, behaviour, isIdle, newest } = activation
    const isOver = state !== null && behaviour.isDeleted(state)
    if ((n > 1 && !isOver) || !isIdle || newest > this.#options.head()) return
    this.forget(activation)
  }

  /**
   * Puts actors to rest: those idle for long by the clock and, when memory runs short, those not
   * used since they were last looked at, the oldest first. `idle`: look whether crowded or not.
   */
  sweep(idle: boolean): void {
    this.#sinceSweep = 0
    const nowMs = this.#options.clock.monotonicMs()
    const head = this.#options.head()
    let looked = 0
    for (const [id, activation] of this.activations) {
      const isCrowded = this.#isCrowded(0.9)
      if (++looked > LIMITS.sharding.sweepMax || (!idle && !isCrowded)) break
      this.activations.delete(id)
      // Never what has a turn, or is ahead of the log: it could not be loaded again.
      const mayRest = activation.isIdle && activation.newest <= head
      if (mayRest && !activation.used) {
        if (isCrowded || nowMs - activation.idleSinceMs >= LIMITS.sharding.passivateMs) {
          this.#weight -= activation.counted
          continue
        }
      } else {
        activation.idleSinceMs = nowMs
        if (mayRest) activation.used = false
      }
      this.activations.set(id, activation)
    }
  }

  #isCrowded(share: number): boolean {
    return this.activations.size > this.#countMax * share || this.#weight > this.#weightMax * share
  }
}
