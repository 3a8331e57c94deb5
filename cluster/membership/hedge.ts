// Asking again while an answer is late: one silent coordinator must cost a moment, not the
// lease. For statements and reads whose own timeouts are longer than that. Whatever is asked here
// may be asked twice. Source: PROTOCOL 3.3, 4.2 (F14).

import type { Clock } from '../clock.ts'

export interface Hedge {
  readonly clock: Clock
  /** Milliseconds without an answer after which another attempt is made. */
  readonly everyMs: number
  /** Attempts at most. */
  readonly times: number
}

/** No attempt was answered in time. */
export class LateAnswer extends Error {
  constructor() {
    super('the store has not answered in time')
    this.name = 'LateAnswer'
  }
}

/**
 * Returns the first answer, of whichever attempt. Rejects when all attempts under way have failed,
 * and with LateAnswer when the last one is not answered in time either.
 */
export function hedged<T>({ clock, everyMs, times }: Hedge, attempt: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    let attempts = 0
    let open = 0
    let cancel = (): void => undefined
    const next = (): void => {
      if (attempts === times) {
        reject(new LateAnswer())
        return
      }
      attempts++
      open++
      cancel = clock.after(everyMs, next)
      attempt().then(
        (answer) => {
          cancel()
          resolve(answer)
        },
        (error: unknown) => {
          if (--open > 0) return
          cancel()
          reject(error)
        },
      )
    }
    next()
  })
}
