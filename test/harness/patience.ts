// Waiting with a deadline that is told by looks, not by the clock: where a machine stands still (a
// paused virtual machine, a laptop's lid), the test and what it waits for stand still alike.

/** A single look counts for at most this much of the waiting time. */
const LOOK_MS_MAX = 250

export class Patience {
  #leftMs: number
  #lastMs = performance.now()

  constructor(ms: number) {
    this.#leftMs = ms
  }

  /** True once the time is over. Call it at each look. */
  isOver(): boolean {
    const nowMs = performance.now()
    this.#leftMs -= Math.min(nowMs - this.#lastMs, LOOK_MS_MAX)
    this.#lastMs = nowMs
    return this.#leftMs < 0
  }
}

/** Lets a moment pass between two looks. */
export function tick(ms = 20): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms))
}

/** Looks again until it holds; throws after the deadline. */
export async function until(
  what: string,
  holds: () => Promise<boolean> | boolean,
  ms = 20_000,
): Promise<void> {
  const patience = new Patience(ms)
  while (!(await holds())) {
    if (patience.isOver()) throw new Error(`in ${ms} ms it did not come true: ${what}`)
    await tick()
  }
}
