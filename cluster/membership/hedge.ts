// Asking again while an answer is late: one silent coordinator must cost a moment, not the
// lease. For statements and reads whose own timeouts are longer than that. Whatever is asked here
// may be asked twice. Source: PROTOCOL 3.3, 4.2 (F14).

import type { Clock } from '../clock.ts'

export interface Hedge {
  readonly clock: Clock
  /** Without an answer for so long it is asked once more. */
  readonly everyMs: number
  /** Times it is asked at most. */
  readonly times: number
}

/** However often it was asked, no answer has come. */
export class LateAnswer extends Error {
  constructor() {
    super('the store has not answered in time')
    this.name = 'LateAnswer'
  }
}

/**
 * The first answer, whichever asking it is to. Rejects when all that are under way have failed, and
 * with LateAnswer when the last has not answered in time either.
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
