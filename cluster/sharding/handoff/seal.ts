// The seal of a shard on its way to another owner: pending until everything that was decided is in
// the log, then nothing more is released. Source: PROTOCOL 3.8 (2).

import { LIMITS } from '../../../config/limits.ts'
import type { Clock } from '../../clock.ts'
import type { OutputGate } from '../commit/output-gate.ts'

export class Seal {
  readonly #clock: Clock
  #end: ((isSealed: boolean) => void) | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Nobody else can have committed yet: what was decided before may still be answered. */
  get isPending(): boolean {
    return this.#end !== null
  }

  /** Resolves when it has ended; `tooLate` is called when that takes too long. */
  begin(tooLate: () => void): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(LIMITS.sharding.sealedHeldMs, tooLate)
      this.#end = (isSealed) => {
        this.#end = null
        cancel()
        resolve(isSealed)
      }
    })
  }

  /** Ends it once nothing is on its way into the log. */
  look(gate: OutputGate): void {
    if (this.#end !== null && !gate.hasOpen && !gate.isFlying) this.#end(true)
  }

  end(isSealed: boolean): void {
    this.#end?.(isSealed)
  }
}
