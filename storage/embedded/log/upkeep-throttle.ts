// How fast the log is read and written in the background. Work that gives room back has so many
// bytes a second of the disk, a quarter of it while commits come. Source: PROTOCOL 3.16.

import { LIMITS } from '../../../config/limits.ts'

export interface UpkeepThrottleOptions {
  /** Resolves after so many milliseconds. */
  readonly pause: (ms: number) => Promise<void>
  /** Something was committed since it was asked last. */
  readonly isBusy: () => boolean
}

/** The journal is being closed: what was begun is gone on with by the next one. */
export class UpkeepStopped extends Error {}

export class UpkeepThrottle {
  readonly #options: UpkeepThrottleOptions
  #bytes = 0
  #isStopped = false

  constructor(options: UpkeepThrottleOptions) {
    this.#options = options
  }

  /** Before so many bytes are worked at. Rejects with UpkeepStopped. */
  readonly take = async (bytes: number): Promise<void> => {
    if (this.#isStopped) throw new UpkeepStopped()
    this.#bytes += bytes
    if (this.#bytes < LIMITS.embedded.upkeepStepBytes) return
    const rate =
      LIMITS.embedded.upkeepBytesPerSecond /
      (this.#options.isBusy() ? LIMITS.embedded.upkeepBusyFactor : 1)
    const ms = (this.#bytes / rate) * 1_000
    this.#bytes = 0
    await this.#options.pause(ms)
    if (this.#isStopped) throw new UpkeepStopped()
  }

  stop(): void {
    this.#isStopped = true
  }
}
