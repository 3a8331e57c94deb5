// What an access token is good for, told to the client that it was issued to: of all others'
// tokens, and of what is none, it is said that it is not active, and no more. Source: RFC 7662 2.2,
// 4, CONTRACT 1.11.

import { RequestError } from '../../../protocol/errors.ts'
import { grantedScope } from '../../../protocol/granted-aces.ts'
import type { Authenticator } from '../authenticate.ts'

export interface IntrospectionOptions {
  readonly authenticator: Pick<Authenticator, 'authenticate'>
  /** Public address, without a slash at its end. */
  readonly baseUrl: string
}

export class Introspection {
  readonly #options: IntrospectionOptions

  constructor(options: IntrospectionOptions) {
    this.#options = options
  }

  /** Throws RequestError while it can't be told. */
  async of(
    token: string,
    /** Who asks. */
    clientId: string,
    address: string,
  ): Promise<Record<string, unknown>> {
    const { authenticator, baseUrl } = this.#options
    const identity = await authenticator.authenticate(`Bearer ${token}`, () => address)
    if (identity instanceof RequestError) {
      if (identity.errors[0]!.code === 'UNAUTHENTICATED') return { active: false }
      throw identity
    }
    if (identity.session.clientId !== clientId) return { active: false }
    return {
      active: true,
      scope: grantedScope(identity.acl),
      client_id: clientId,
      token_type: 'Bearer',
      exp: Math.floor(identity.expiresAtMs / 1_000),
      sub: identity.id,
      iss: baseUrl,
    }
  }
}
