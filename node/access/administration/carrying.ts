// A client carries what its people have, cut to its `scopes`: who gets codes and tokens of a client
// may do, in the name of whoever signs in there, all that the scopes name; without scopes all that
// anybody may. So only who holds that decides who gets them. Source: CONTRACT 1.8 "Nobody gives
// more than they hold", PROTOCOL 3.0 "Who may change configuration".

import { parseAce } from '../../../protocol/ace.ts'
import type { Acl } from '../../../protocol/ace.ts'
import { authMethodOf } from '../client.ts'
import type { Client } from '../client.ts'

const OF_PEOPLE: readonly string[] = ['authorization_code', 'implicit', 'refresh_token']

function isForPeople({ properties: { grantTypes } }: Client): boolean {
  return grantTypes.some((grant) => OF_PEOPLE.includes(grant))
}

/** All that decides who gets its codes and tokens, and how far they go, as one text. */
function receivingOf(client: Client): string {
  const { redirectUris, grantTypes, jwks = null, scopes = null } = client.properties
  const secrets = client.secrets.map(({ secretId, hash, expiresAt }) => [secretId, hash, expiresAt])
  return JSON.stringify([redirectUris, grantTypes, authMethodOf(client), jwks, scopes, secrets])
}

/** Whoever had its secret before it was suspended gets tokens again. */
function resumes(before: Client, after: Client): boolean {
  return before.suspendedAt !== null && after.suspendedAt === null
}

export interface Carrying {
  readonly before: Client | null
  readonly after: Client | null
}

/**
 * Why this caller may not decide who gets what the client carries, before and after; null: they
 * hold it, or nothing of that changes. What has no people carries nothing; what `scopes` it gets is
 * asked all the same.
 */
export function refusalToCarry(caller: Acl, { before, after }: Carrying): string | null {
  if (caller.everything || after === null) return null
  if (before !== null && !resumes(before, after) && receivingOf(before) === receivingOf(after)) {
    return null
  }
  const was = before !== null && isForPeople(before) ? before : null
  const more = was === null ? null : wider(caller, was)
  if (more !== null) {
    const rule = 'who decides who gets its tokens must hold that'
    return `people sign in with this client, and it carries ${more}, which you do not hold: ${rule}`
  }
  const { scopes } = after.properties
  const most = scopes !== undefined || isForPeople(after) ? wider(caller, after) : null
  if (most === null) return null
  const rule = 'nobody gives more: name scopes that you hold'
  return scopes === undefined
    ? `people would sign in with this client, and it would carry ${most}; ${rule}`
    : `you do not hold the scope ${most}: ${rule}`
}

/** The first that its scopes name and the caller does not hold, whatever anybody is said to be. */
function wider(caller: Acl, { properties: { scopes } }: Client): string | null {
  if (scopes === undefined) return 'all that they have'
  const more = scopes.find((scope) => {
    const parsed = parseAce(scope)
    return !parsed.ok || !caller.coversForAnybody(parsed.ace)
  })
  return more ?? null
}
