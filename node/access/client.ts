// Clients: applications with an identity of their own. The OAuth endpoints check their secrets;
// tokens act for them. Source: specification "Identity resources", CONTRACT 1.8.

import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { LIMITS } from '../../config/limits.ts'
import { narrow, parseScope } from '../../protocol/ace.ts'
import type { Acl } from '../../protocol/ace.ts'
import { type Attributes, NO_ATTRIBUTES } from '../../protocol/attributes.ts'
import type { ConfigurationView } from '../../protocol/behaviour.ts'
import { compileShape } from '../../protocol/json/validation.ts'
import { aclOfRoles } from './role.ts'

export const GRANT_TYPES = [
  'authorization_code',
  'client_credentials',
  'implicit',
  'refresh_token',
] as const

/** How a client shows at the token endpoint who it is (RFC 7591 2). */
export const AUTH_METHODS = [
  'client_secret_basic',
  'client_secret_post',
  'none',
  'private_key_jwt',
] as const

export type AuthMethod = (typeof AUTH_METHODS)[number]

const text = (maxLength: number): ReturnType<typeof Type.String> => Type.String({ maxLength })

/** What a client is registered as. */
export const ClientProperties = Type.Object(
  {
    name: text(LIMITS.commerce.keyCharsMax),
    description: Type.Optional(text(LIMITS.commerce.textCharsMax)),
    redirectUris: Type.Array(text(LIMITS.access.uriCharsMax), {
      maxItems: LIMITS.access.redirectUrisMax,
    }),
    grantTypes: Type.Array(Type.Union(GRANT_TYPES.map((grant) => Type.Literal(grant)))),
    /** Absent: `client_secret_basic`, which takes `client_secret_post` as well. */
    tokenEndpointAuthMethod: Type.Optional(
      Type.Union(AUTH_METHODS.map((method) => Type.Literal(method))),
    ),
    /** Public keys of a client that signs (`private_key_jwt`): JWKs (RFC 7517 5). */
    jwks: Type.Optional(
      Type.Object(
        {
          keys: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
            maxItems: LIMITS.access.jwksMax,
          }),
        },
        { additionalProperties: false },
      ),
    ),
    /** ACEs that its tokens may have at most; absent: all that its roles grant. */
    scopes: Type.Optional(
      Type.Array(text(LIMITS.protocol.aceCharsMax), { maxItems: LIMITS.protocol.acesMax }),
    ),
  },
  { additionalProperties: false },
)

const ClientSchema = Type.Object(
  {
    properties: ClientProperties,
    roles: Type.Array(text(LIMITS.commerce.keyCharsMax), {
      maxItems: LIMITS.access.rolesOfIdentityMax,
    }),
    secrets: Type.Array(
      Type.Object(
        {
          secretId: Type.String(),
          /** `secret.ts` says what is in it; never the secret. */
          hash: Type.String(),
          /** `bootstrap`: replaced when the settings name another one. */
          source: Type.Union([Type.Literal('bootstrap'), Type.Literal('issued')]),
          createdAt: Type.String(),
          expiresAt: Type.Union([Type.String(), Type.Null()]),
          description: Type.Optional(text(LIMITS.access.secretTextCharsMax)),
        },
        { additionalProperties: false },
      ),
      { maxItems: LIMITS.access.secretsOfClientMax },
    ),
    /** Of older programs there is none: `epochOf`. */
    sessionEpoch: Type.Optional(Type.Integer({ minimum: 0 })),
    isSystem: Type.Boolean(),
    createdAt: Type.String(),
    suspendedAt: Type.Union([Type.String(), Type.Null()]),
  },
  { additionalProperties: false },
)

/** Value of a client; its id is the actor's key. */
export type Client = Static<typeof ClientSchema>

/**
 * The epoch in which sessions of an identity are good: those that were made in a former one are
 * over (suspension raises it).
 */
export function epochOf({ sessionEpoch }: { readonly sessionEpoch?: number }): number {
  return sessionEpoch ?? 0
}

/** How a client shows who it is. */
export function authMethodOf({ properties }: Client): AuthMethod {
  return properties.tokenEndpointAuthMethod ?? 'client_secret_basic'
}

/** Whether it may do without a secret, with PKCE: `implicit` says the same (CONTRACT 1.11). */
export function isPublic(client: Client): boolean {
  return authMethodOf(client) === 'none' || client.properties.grantTypes.includes('implicit')
}

/** Whether people sign in with it. */
export function mayUseCodes({ properties: { grantTypes } }: Client): boolean {
  return grantTypes.includes('authorization_code') || grantTypes.includes('implicit')
}

/** The client that the first start makes. */
export const BOOTSTRAP_CLIENT = 'bootstrap'

export const clientShape = compileShape(ClientSchema)

/** What a client may do at most: its roles, cut to its registered scopes when it has any. */
export function aclOfClient(
  client: Client,
  system: ConfigurationView,
  attributes: Attributes = NO_ATTRIBUTES,
): Acl {
  const acl = aclOfRoles(client.roles, system, attributes)
  if (client.properties.scopes === undefined) return acl
  const scopes = parseScope(client.properties.scopes.join(' '))
  return narrow(acl, scopes.ok ? scopes.aces : [])
}
