// Principals: people. Each is told from all others by an e-mail address, under which they sign in.
// Source: specification "Identity resources", CONTRACT 1.8.

import { Type } from '@sinclair/typebox'
import type { Static } from '@sinclair/typebox'
import { LIMITS } from '../../config/limits.ts'
import type { Ace, Acl } from '../../protocol/ace.ts'
import type { ConfigurationView } from '../../protocol/behaviour.ts'
import { compileShape } from '../../protocol/json/validation.ts'
import { aclOfRoles } from './role.ts'

const text = (maxLength: number): ReturnType<typeof Type.String> => Type.String({ maxLength })
const nullable = Type.Union([Type.String(), Type.Null()])

/** What a principal is said to be, by people with the right to say so. */
export const PrincipalProperties = Type.Object(
  {
    name: text(LIMITS.access.identityNameCharsMax),
    /** As it was written; told from others by `foldedEmail`. */
    email: text(LIMITS.access.emailCharsMax),
    phone: Type.Optional(text(LIMITS.access.phoneCharsMax)),
    /** URL. */
    picture: Type.Optional(text(LIMITS.access.uriCharsMax)),
    settings: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    dynamic: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  },
  { additionalProperties: false },
)

/** What attribute entries go by (`region@graph/order:query`): values by name. */
export const AccessAttributes = Type.Record(
  Type.String(),
  Type.Array(Type.Union([Type.String(), Type.Number(), Type.Boolean()])),
)

/** Accounts at external providers (OpenID Connect), by what these call themselves and them. */
export const Logins = Type.Array(
  Type.Object(
    { issuer: text(LIMITS.access.uriCharsMax), subject: text(LIMITS.access.subjectCharsMax) },
    { additionalProperties: false },
  ),
  { maxItems: LIMITS.access.loginsMax, uniqueItems: true },
)
export type Login = Static<typeof Logins>[number]

const PrincipalSchema = Type.Object(
  {
    properties: PrincipalProperties,
    roles: Type.Array(text(LIMITS.commerce.keyCharsMax), {
      maxItems: LIMITS.access.rolesOfIdentityMax,
    }),
    accessAttributes: AccessAttributes,
    /** null: none, so nobody signs in by one. */
    password: Type.Union([
      Type.Object(
        {
          /** `password.ts` says what is in it; never the password. */
          hash: Type.String(),
          changedAt: Type.String(),
          /** Of a temporary one, which must be changed: from then on it opens nothing. */
          expiresAt: nullable,
        },
        { additionalProperties: false },
      ),
      Type.Null(),
    ]),
    /** Whoever signs in by one of them is this principal; no two have the same. */
    logins: Type.Optional(Logins),
    /**
     * Sessions and personal access tokens carry the epoch in which they were made, and are good in
     * that one alone: suspension and a new password raise it.
     */
    sessionEpoch: Type.Integer({ minimum: 0 }),
    createdAt: Type.String(),
    suspendedAt: nullable,
  },
  { additionalProperties: false },
)

/** Value of a principal; its id, a UUIDv7, is the actor's key. */
export type Principal = Static<typeof PrincipalSchema>

export const principalShape = compileShape(PrincipalSchema)

/** What its roles grant a principal, for what it is said to be. */
export function grantedTo(principal: Principal, view: ConfigurationView): Acl {
  return aclOfRoles(principal.roles, view, principal.accessAttributes)
}

/** Everybody has what is their own: sessions, tokens, the password. */
const ONESELF: readonly Ace[] = [{ attribute: null, path: ['me'], permission: '*' }]

/** What a principal may do at most. */
export function aclOfPrincipal(principal: Principal, view: ConfigurationView): Acl {
  return aclOfRoles(principal.roles, view, principal.accessAttributes, ONESELF)
}

/**
 * An address as it is compared: the case of ASCII letters doesn't count. Kept ones are ASCII
 * throughout (`iam/`), so that no two look alike; what is typed with other letters is nobody's.
 */
export function foldedEmail(email: string): string {
  return email.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

const emailShape = compileShape(
  Type.String({ format: 'email', maxLength: LIMITS.access.emailCharsMax }),
)
const nameShape = compileShape(
  Type.String({ format: 'key', minLength: 1, maxLength: LIMITS.access.identityNameCharsMax }),
)

/** An address that a principal can have. */
export function isEmail(email: string): boolean {
  return emailShape(email) === null
}

/** What a principal can be called. */
export function isName(name: string): boolean {
  return nameShape(name) === null
}

/** The name by which the maps find whose login it is: never an e-mail address. */
export function loginName({ issuer, subject }: Login): string {
  return JSON.stringify([issuer, subject])
}

/** By which the maps find a principal beside its id. */
export function namesOf({ properties, logins = [] }: Principal): readonly string[] {
  return [foldedEmail(properties.email), ...logins.map(loginName)]
}

/**
 * Who has an e-mail address, however its letters' case; null: nobody. A login names nobody here, or
 * wrong passwords of one account would be counted under each.
 */
export function principalByEmail<T extends { readonly key: string; readonly value: Principal }>(
  view: { find(type: string, name: string): T | null },
  email: string,
): T | null {
  const address = foldedEmail(email)
  const found = view.find('principal', address)
  return found !== null && foldedEmail(found.value.properties.email) === address ? found : null
}
