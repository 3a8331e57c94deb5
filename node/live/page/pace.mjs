// How fast changes come and how late: a rate over the last seconds and the lags of the last
// changes, in bounded memory. A lag is told by two clocks; what is known of their difference comes
// in. Source: CONTRACT 1.10 "Page".

const WINDOW_MS = 5_000
const BUCKET_MS = 250
const LAGS_MAX = 500
const LAG_AGE_MS = 10_000

/** How far a node's clock is ahead of ours, and by how much that may be wrong. */
/** @typedef {{ readonly aheadMs: number, readonly errorMs: number }} Ahead */

export class Pace {
  /** @type {Map<number, number>} changes by the number of their slice of time */
  #counts = new Map()
  /** @type {{ readonly atMs: number, readonly lagMs: number }[]} */
  #lags = []
  #beganMs

  /** @param {number} nowMs */
  constructor(nowMs) {
    this.#beganMs = nowMs
  }

  /**
   * @param {number} nowMs
   * @param {number | null} lagMs null: not of a change whose time is known
   */
  count(nowMs, lagMs) {
    const slice = Math.floor(nowMs / BUCKET_MS)
    this.#counts.set(slice, (this.#counts.get(slice) ?? 0) + 1)
    this.#forget(nowMs)
    if (lagMs === null) return
    this.#lags.push({ atMs: nowMs, lagMs })
    if (this.#lags.length > LAGS_MAX) this.#lags.shift()
  }

  /**
   * Changes a second.
   *
   * @param {number} nowMs
   */
  rate(nowMs) {
    this.#forget(nowMs)
    let changes = 0
    for (const count of this.#counts.values()) changes += count
    const seconds = Math.min(WINDOW_MS, Math.max(1_000, nowMs - this.#beganMs)) / 1_000
    return changes / seconds
  }

  /**
   * Of the last changes: the one in the middle and the worst, milliseconds; null: there were none.
   *
   * @param {number} nowMs
   */
  lag(nowMs) {
    const lags = this.#lags.filter(({ atMs }) => nowMs - atMs <= LAG_AGE_MS)
    this.#lags = lags
    const sorted = lags.map(({ lagMs }) => lagMs).sort((a, b) => a - b)
    const [middleMs, worstMs] = [sorted[sorted.length >> 1], sorted.at(-1)]
    return middleMs === undefined || worstMs === undefined ? null : { middleMs, worstMs }
  }

  /** @param {number} nowMs */
  #forget(nowMs) {
    const oldest = Math.floor((nowMs - WINDOW_MS) / BUCKET_MS)
    for (const slice of this.#counts.keys()) if (slice <= oldest) this.#counts.delete(slice)
  }
}

/**
 * From a request whose answer names the node's time: it lies somewhere between the two of ours.
 *
 * @param {number} sentMs
 * @param {string | null} requestId a UUIDv7, made by the node when the request came
 * @param {number} answeredMs
 * @returns {Ahead | null} null: the id tells no time
 */
export function aheadOf(sentMs, requestId, answeredMs) {
  if (!/^[0-9a-f]{8}-[0-9a-f]{4}-7/.test(requestId ?? '')) return null
  const id = /** @type {string} */ (requestId)
  const nodeMs = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
  const errorMs = (answeredMs - sentMs) / 2 + 1
  return { aheadMs: nodeMs - (sentMs + answeredMs) / 2, errorMs }
}
