// Requests to the provider, which is another's machine: each has a deadline, its answer a bound,
// and none goes anywhere but over TLS, to this machine itself aside where the provider is there.
// Redirects aren't followed. Source: CONTRACT 1.11 "External sign-in", RFC 9700 4.12.

import type { Clock } from '../../../cluster/clock.ts'
import { isLoopback } from '../../../config/kinds.ts'
import { LIMITS } from '../../../config/limits.ts'

/** The part of `fetch` that is needed. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

export interface BoundedFetchOptions {
  readonly fetch: Fetch
  readonly clock: Pick<Clock, 'after'>
  /** As the provider calls itself. */
  readonly issuer: string
}

/** Statuses that have no body (Fetch "null body status"). */
const BODILESS = [204, 205, 304]

/** Whether a place that a provider names may be asked, or a browser led to it. */
export function isPlace(url: unknown, issuer: string): url is string {
  if (typeof url !== 'string' || !URL.canParse(url)) return false
  const { protocol, hostname } = new URL(url)
  if (protocol === 'https:') return true
  return protocol === 'http:' && issuer.startsWith('http:') && isLoopback(hostname)
}

/** Rejects where there is no whole answer in time, or it is too large, or may not be asked for. */
export function boundedFetch({ fetch, clock, issuer }: BoundedFetchOptions): Fetch {
  return async (url, init) => {
    if (!isPlace(url, issuer)) throw new Error('an address of the provider is not https')
    const control = new AbortController()
    const late = new Promise<never>((_, reject) => {
      control.signal.addEventListener('abort', () => reject(control.signal.reason as Error))
    })
    const cancel = clock.after(LIMITS.access.externalRequestMs, () => {
      control.abort(new Error('no whole answer in time'))
    })
    const whole = async (): Promise<Response> => {
      const answer = await fetch(url, { ...init, redirect: 'manual', signal: control.signal })
      const bytes = await bytesOf(answer)
      const { status, headers } = answer
      return new Response(BODILESS.includes(status) ? null : bytes, { status, headers })
    }
    try {
      return await Promise.race([whole(), late])
    } finally {
      cancel()
    }
  }
}

async function bytesOf({ body }: Response): Promise<Buffer<ArrayBuffer>> {
  const parts: Uint8Array[] = []
  let count = 0
  // Leaving the loop early closes the connection.
  for await (const part of body ?? []) {
    parts.push(part)
    count += part.length
    if (count > LIMITS.access.externalAnswerBytesMax) throw new Error('its answer is too large')
  }
  return Buffer.concat(parts)
}
