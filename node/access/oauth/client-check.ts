// Who a client is, at the endpoints that want to know: by its secret, by what it signed, or by its
// name alone where it has nothing that it could keep. Each is held to the way that it registered.
// Source: RFC 6749 2.3, RFC 7523, CONTRACT 1.11.

import type { SystemView } from '../../../cluster/actor-system.ts'
import { authMethodOf, isPublic } from '../client.ts'
import type { Client } from '../client.ts'
import type { ClientSecrets } from '../client-secrets.ts'
import type { SignInAnswer } from '../sign-ins.ts'
import type { Assertions } from './assertions.ts'
import { OAuthError } from './request.ts'
import type { ShownClient } from './request.ts'

export interface CheckedClient {
  readonly clientId: string
  readonly client: Client
  /** It showed more than its name. */
  readonly isShown: boolean
}

export interface ClientCheckOptions {
  readonly system: SystemView
  readonly clientSecrets: Pick<ClientSecrets, 'check'>
  readonly assertions: Assertions
}

export class ClientCheck {
  readonly #options: ClientCheckOptions

  constructor(options: ClientCheckOptions) {
    this.#options = options
  }

  /** Throws an OAuthError: `invalid_client`, or `temporarily_unavailable` before any check. */
  check(shown: ShownClient, address: string): Promise<CheckedClient> {
    switch (shown.by) {
      case 'secret':
        return this.#bySecret(shown, address)
      case 'assertion':
        return this.#byAssertion(shown.clientId, shown.assertion)
      case 'name':
        return Promise.resolve(this.#byName(shown.clientId))
    }
  }

  #find(clientId: string): Client | null {
    const client = this.#options.system.get<Client>('client', clientId)?.value
    return client === undefined || client.suspendedAt !== null ? null : client
  }

  async #bySecret(
    { clientId, secret, orElse }: Extract<ShownClient, { by: 'secret' }>,
    address: string,
  ): Promise<CheckedClient> {
    const sent = { clientId, secret, ...(orElse !== undefined && { orElse }), address }
    const answer = await this.#options.clientSecrets.check(sent)
    if (typeof answer === 'object') throw notChecked(answer)
    // Looked up anew: the check took a while.
    const client = this.#find(clientId)
    const takesSecrets = client !== null && authMethodOf(client).startsWith('client_secret_')
    if (answer === 'wrong' || !takesSecrets) throw unknownClient('its secret is another')
    return { clientId, client, isShown: true }
  }

  async #byAssertion(named: string | null, assertion: string): Promise<CheckedClient> {
    const { assertions } = this.#options
    const clientId = assertions.subjectOf(assertion)
    const client = clientId === null ? null : this.#find(clientId)
    if (clientId === null || client === null) throw unknownClient(UNFIT)
    if (named !== null && named !== clientId) {
      throw new OAuthError('invalid_request', 'client_id differs from the one that signed')
    }
    const answer = await assertions.check(assertion, clientId, client)
    if (answer === 'full') {
      const why = 'too many assertions that have not expired; let them live for a minute'
      throw new OAuthError('temporarily_unavailable', why, {
        status: 429,
        headers: { 'Retry-After': '60' },
      })
    }
    if (answer === 'used') {
      throw new OAuthError('invalid_client', 'the assertion was used before: sign a new one')
    }
    if (answer === 'wrong') throw unknownClient(UNFIT)
    return { clientId, client, isShown: true }
  }

  #byName(clientId: string): CheckedClient {
    const client = this.#find(clientId)
    if (client === null || !isPublic(client)) throw unknownClient('it has to show more of itself')
    return { clientId, client, isShown: false }
  }
}

const UNFIT = 'its assertion was not signed by it, for this server and for now'

/** The same whether there is such a client or not. */
function unknownClient(or: string): OAuthError {
  return new OAuthError('invalid_client', `the client is not known, or ${or}`)
}

/** Nothing was checked; the same is said whether there is such a client or not. */
function notChecked({ refused, retryAfterMs }: Exclude<SignInAnswer, string>): OAuthError {
  const seconds = Math.max(1, Math.ceil(retryAfterMs / 1_000))
  const why =
    refused === 'busy'
      ? 'too many sign-ins at once'
      : 'too many wrong sign-ins from your address of late'
  return new OAuthError(
    'temporarily_unavailable',
    `${why}; the secret was not looked at: try again in ${seconds} s`,
    { status: 429, headers: { 'Retry-After': String(seconds) } },
  )
}
