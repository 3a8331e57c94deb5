// How many requests somebody may make in a window of time, and what they are told of it. Windows
// are fixed: one begins with a first request and ends after its time, whatever comes meanwhile.
// Source: CONTRACT 0 "Rate limits"; draft-ietf-httpapi-ratelimit-headers-11.

import { LIMITS } from '../../../config/limits.ts'

interface Window {
  readonly endsMs: number
  used: number
}

export class RateLimit {
  readonly #max: number
  readonly #nowMs: () => number
  /** By whom they are of; the one that ends first is first. */
  readonly #windows = new Map<string, Window>()
  readonly #name: string
  readonly #policy: string

  /**
   * @param name of the policy in answers, and of what is counted: `client`, `address`
   * @param max requests in `LIMITS.http.rateWindowMs`
   * @param nowMs monotonic milliseconds
   */
  constructor(name: string, max: number, nowMs: () => number) {
    this.#max = max
    this.#nowMs = nowMs
    this.#name = name
    const seconds = LIMITS.http.rateWindowMs / 1_000
    this.#policy = `"${name}";q=${max};w=${seconds}`
  }

  /** Counts one request of `key`. */
  take(key: string): Taken {
    const nowMs = this.#nowMs()
    let window = this.#windows.get(key)
    if (window === undefined || window.endsMs <= nowMs) {
      window = { endsMs: nowMs + LIMITS.http.rateWindowMs, used: 0 }
      this.#begin(key, window)
    }
    if (window.used <= this.#max) window.used++
    return new Taken(this.#name, this.#policy, {
      left: this.#max - window.used,
      seconds: Math.max(1, Math.ceil((window.endsMs - nowMs) / 1_000)),
    })
  }

  /** Whether one more of `key` would be one too many; nothing is counted. */
  isFull(key: string): boolean {
    const window = this.#windows.get(key)
    return window !== undefined && window.endsMs > this.#nowMs() && window.used >= this.#max
  }

  /** Whose requests are counted. */
  get size(): number {
    return this.#windows.size
  }

  #begin(key: string, window: Window): void {
    this.#windows.delete(key)
    if (this.#windows.size >= LIMITS.http.rateWindowsMax) {
      this.#windows.delete(this.#windows.keys().next().value!)
    }
    this.#windows.set(key, window)
  }
}

/** What one request was told. */
export class Taken {
  readonly #name: string
  readonly #policy: string
  readonly #left: number
  /** Until the window ends, at least 1. */
  readonly seconds: number

  constructor(
    name: string,
    policy: string,
    { left, seconds }: { readonly left: number; readonly seconds: number },
  ) {
    this.#name = name
    this.#policy = policy
    this.#left = left
    this.seconds = seconds
  }

  /** It is one too many: nothing may be done for it. */
  get isOver(): boolean {
    return this.#left < 0
  }

  get headers(): Readonly<Record<string, string>> {
    const left = Math.max(0, this.#left)
    return {
      'RateLimit-Policy': this.#policy,
      RateLimit: `"${this.#name}";r=${left};t=${this.seconds}`,
    }
  }

  /** The same as text that follows another header. */
  get text(): string {
    const left = Math.max(0, this.#left)
    return (
      `\r\nRateLimit-Policy: ${this.#policy}` +
      `\r\nRateLimit: "${this.#name}";r=${left};t=${this.seconds}`
    )
  }
}
