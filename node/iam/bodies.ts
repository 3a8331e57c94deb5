// What callers send to change identities and roles. Source: CONTRACT 1.8, RFC 7591 2.

import { Type } from '@sinclair/typebox'
import type { Static, TSchema } from '@sinclair/typebox'
import { LIMITS } from '../../config/limits.ts'
import { AUTH_METHODS, GRANT_TYPES } from '../access/client.ts'
import { AccessAttributes, Logins } from '../access/principal.ts'

const { access, protocol, commerce } = LIMITS

const closed = { additionalProperties: false }
const name = Type.String({
  format: 'key',
  minLength: 1,
  maxLength: access.identityNameCharsMax,
  examples: ['Ada'],
})
const uri = Type.String({ maxLength: access.uriCharsMax })
const roleKey = Type.String({
  pattern: '^[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)+$',
  maxLength: commerce.keyCharsMax,
  description: '<namespace>:<capability>',
  examples: ['shop:clerk'],
})
const roles = Type.Array(roleKey, { maxItems: access.rolesOfIdentityMax, uniqueItems: true })
const object = Type.Record(Type.String(), Type.Unknown())
const grantTypes = Type.Array(Type.Union(GRANT_TYPES.map((grant) => Type.Literal(grant))), {
  uniqueItems: true,
})
const authMethod = Type.Union(AUTH_METHODS.map((method) => Type.Literal(method)))
const jwks = Type.Object({ keys: Type.Array(object, { maxItems: access.jwksMax }) }, closed)
const redirectUris = Type.Array(uri, { maxItems: access.redirectUrisMax, uniqueItems: true })
const tag = (description: string): TSchema =>
  Type.Optional(Type.String({ maxLength: LIMITS.iam.tagCharsMax, description }))
const ETAG = { eTag: tag('ETag as last read; If-Match wins'), etag: tag('The same') }

/** Members that an answer has and a change may send back are let pass, and change nothing. */
const record = <T extends Record<string, TSchema>>(members: T) =>
  Type.Object({ ...members, ...ETAG }, { additionalProperties: true })

export const PrincipalBody = record({
  properties: Type.Object(
    {
      name,
      email: Type.String({
        format: 'email',
        maxLength: access.emailCharsMax,
        description: 'ASCII, names of domains as they are in DNS; told from others without case',
        examples: ['ada@example.com'],
      }),
      phone: Type.Optional(Type.String({ format: 'key', maxLength: access.phoneCharsMax })),
      picture: Type.Optional(uri),
      settings: Type.Optional(object),
      dynamic: Type.Optional(object),
    },
    closed,
  ),
  roles: Type.Optional(roles),
  accessAttributes: Type.Optional(AccessAttributes),
  logins: Type.Optional(Logins),
})
export type PrincipalBody = Static<typeof PrincipalBody>

export const ClientBody = record({
  properties: Type.Object(
    {
      name,
      description: Type.Optional(Type.String({ maxLength: commerce.textCharsMax })),
      redirectUris,
      grantTypes,
      scopes: Type.Optional(
        Type.Array(Type.String({ maxLength: protocol.aceCharsMax }), {
          maxItems: protocol.acesMax,
          description: 'ACEs that its tokens have at most',
        }),
      ),
      tokenEndpointAuthMethod: Type.Optional(authMethod),
      jwks: Type.Optional(jwks),
    },
    closed,
  ),
  roles: Type.Optional(roles),
})
export type ClientBody = Static<typeof ClientBody>

/** Client metadata of RFC 7591 2; what it doesn't name is passed over, as it asks for. */
export const RegistrationBody = Type.Object(
  {
    name: Type.Optional(name),
    client_name: Type.Optional(name),
    description: Type.Optional(Type.String({ maxLength: commerce.textCharsMax })),
    redirect_uris: Type.Optional(redirectUris),
    grant_types: Type.Optional(grantTypes),
    token_endpoint_auth_method: Type.Optional(authMethod),
    scope: Type.Optional(
      Type.String({ maxLength: 65_536, description: 'ACEs with spaces between' }),
    ),
    jwks: Type.Optional(jwks),
    roles: Type.Optional(roles),
  },
  { additionalProperties: true },
)
export type RegistrationBody = Static<typeof RegistrationBody>

export const RolesBody = record({ roles })
export type RolesBody = Static<typeof RolesBody>

export const SecretBody = Type.Object(
  {
    description: Type.Optional(
      Type.String({ format: 'key', maxLength: access.secretTextCharsMax }),
    ),
    expiresAt: Type.Optional(Type.Union([Type.String({ format: 'timestamp' }), Type.Null()])),
  },
  closed,
)
export type SecretBody = Static<typeof SecretBody>

export const RoleBody = record({
  description: Type.Optional(Type.String({ maxLength: commerce.textCharsMax })),
  acl: Type.Object(
    {
      entries: Type.Array(
        Type.Union([
          Type.String({ maxLength: protocol.aceCharsMax }),
          Type.Object(
            {
              resource: Type.String({ maxLength: protocol.aceCharsMax }),
              permission: Type.String({ maxLength: protocol.aceCharsMax }),
            },
            closed,
          ),
        ]),
        { maxItems: protocol.acesMax, examples: [[{ resource: 'graph', permission: '*' }]] },
      ),
    },
    closed,
  ),
})
export type RoleBody = Static<typeof RoleBody>

const password = Type.String({ maxLength: access.secretCharsMax })
export const PasswordBody = Type.Object(
  { currentPassword: password, newPassword: password },
  closed,
)
export type PasswordBody = Static<typeof PasswordBody>

/** Of paths and of `PUT /resources/iam/roles/{roleKey}`. */
export const ROLE_KEY = new RegExp(roleKey.pattern!)
