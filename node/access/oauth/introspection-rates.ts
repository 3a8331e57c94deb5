// How often somebody may introspect tokens: a client that shows who it is as often as it may ask
// anything, for a resource server looks at each token that it is brought; all others are counted by
// address, and only they. So what a neighbour behind the same gateway sends is held against nobody
// who shows a client. Source: RFC 7662 4, CONTRACT 0 "Rate limits".

import type { RateLimit, Taken } from '../../http/guard/rate-limit.ts'
import { networkOf } from '../network.ts'
import type { CheckedClient } from './client-check.ts'
import { OAuthError } from './request.ts'

export interface IntrospectionRatesOptions {
  /** Requests of a client in a minute; null: any number. */
  readonly clients: RateLimit | null
  /** Of an address, of those who show no client; null: any number. */
  readonly strangers: RateLimit | null
}

export interface Admitted {
  readonly clientId: string
  readonly headers: Readonly<Record<string, string>>
}

export class IntrospectionRates {
  readonly #options: IntrospectionRatesOptions

  constructor(options: IntrospectionRatesOptions) {
    this.#options = options
  }

  /**
   * The client, counted; `isCostly`: to check what it shows takes long, so it is not looked at
   * once its address has shown too much that was wrong. Throws an OAuthError: its own, or 429.
   */
  async admit(
    address: string,
    isCostly: boolean,
    check: () => Promise<CheckedClient>,
  ): Promise<Admitted> {
    const { clients, strangers } = this.#options
    const { own } = networkOf(address)
    if (isCostly && strangers?.isFull(own) === true) throw tooMany(strangers.take(own), 'address')
    let clientId: string
    try {
      clientId = (await check()).clientId
    } catch (error) {
      const taken = error instanceof OAuthError ? strangers?.take(own) : undefined
      throw taken?.isOver === true ? tooMany(taken, 'address') : error
    }
    const taken = clients?.take(clientId)
    if (taken?.isOver === true) throw tooMany(taken, 'client')
    return { clientId, headers: taken?.headers ?? {} }
  }
}

function tooMany({ seconds, headers }: Taken, whose: 'address' | 'client'): OAuthError {
  const why = `too many requests of this ${whose} in a minute; try again in ${seconds} s`
  return new OAuthError('temporarily_unavailable', why, {
    status: 429,
    headers: { ...headers, 'Retry-After': String(seconds) },
  })
}
