// Passivation: which actors of a shard are in memory, how much that is, and when one goes to rest:
// after some idle time by the clock, at once when it was made and not asked again, sooner when
// memory runs short. Source: PROTOCOL 3.12.

import { LIMITS } from '../../../config/limits.ts'
import { ReleasingMap } from '../../../protocol/releasing-map.ts'
import type { Clock } from '../../clock.ts'
import type { ActivationMemory } from './activation-memory.ts'
import type { Activation } from './activation.ts'

const SWEEP_EVERY = 64

export interface RestingOptions {
  readonly clock: Clock
  /** The member's. */
  readonly memory: ActivationMemory
  /** Offset of the newest committed entry. */
  readonly head: () => number
}

export class Passivation {
  readonly activations = new ReleasingMap<string, Activation>()
  readonly #options: RestingOptions
  readonly #memory: ActivationMemory
  #sinceSweep = 0

  constructor(options: RestingOptions) {
    this.#options = options
    this.#memory = options.memory
  }

  /** One that isn't here yet. */
  add(activation: Activation): void {
    this.activations.set(activation.id, activation)
    this.#memory.add(1, activation.counted)
  }

  /** Keeps the account of how much memory the activations take. */
  count(activation: Activation): void {
    const { weight } = activation
    if (this.activations.get(activation.id) !== activation) return
    this.#memory.add(0, weight - activation.counted)
    activation.counted = weight
  }

  /** An activation is asked something. */
  touched(activation: Activation): void {
    activation.used = true
    if (++this.#sinceSweep >= SWEEP_EVERY && this.#memory.isOver(1)) this.sweep(false)
  }

  forget(activation: Activation): void {
    if (this.activations.get(activation.id) === activation) this.#leave(activation)
  }

  #leave(activation: Activation): void {
    this.activations.delete(activation.id)
    this.#memory.add(-1, -activation.counted)
  }

  /** Empties it. */
  clear(): Activation[] {
    const all = [...this.activations.values()]
    for (const activation of all) this.#leave(activation)
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
      const isCrowded = this.#memory.isOver(0.9)
      if (++looked > LIMITS.sharding.sweepMax || (!idle && !isCrowded)) break
      // Never what has a turn, or is ahead of the log: it could not be loaded again.
      const mayRest = activation.isIdle && activation.newest <= head
      if (mayRest && !activation.used) {
        if (isCrowded || nowMs - activation.idleSinceMs >= LIMITS.sharding.passivateMs) {
          this.#leave(activation)
          continue
        }
      } else {
        activation.idleSinceMs = nowMs
        if (mayRest) activation.used = false
      }
      // To the end: the next look begins with those that this one has not reached.
      this.activations.delete(id)
      this.activations.set(id, activation)
    }
  }
}
