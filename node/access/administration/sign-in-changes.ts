// What a sign-in by an external provider may write, without a session: a principal gets one more
// login, or one is made that has one. Its edge has seen the provider's word; that the change is no
// other, the owner of the system shard sees. Source: CONTRACT 1.11 "External sign-in".

import type { Change } from '../../system-actor.ts'
import type { Principal } from '../principal.ts'
import { OWNER_ROLE } from '../role.ts'

/** Whether it is such a change: without a session, by whom it is of, with more logins. */
export function isExternalSignIn({ turn, before }: Change<Principal>, after: Principal): boolean {
  if (turn.session !== undefined || turn.by !== turn.key) return false
  return (after.logins?.length ?? 0) > (before?.logins?.length ?? 0)
}

/** null: it is nothing but that. */
export function refusalOfExternalSignIn(
  { before }: Change<Principal>,
  after: Principal,
): string | null {
  return before === null ? refusalOfMade(after) : refusalOfLink(before, after)
}

/** Of what operators settle the roles alone are not known here: never the one for everything. */
function refusalOfMade(after: Principal): string | null {
  const { roles, accessAttributes, password, logins = [], sessionEpoch, suspendedAt } = after
  const isPlain = password === null && sessionEpoch === 0 && suspendedAt === null
  if (!isPlain || logins.length !== 1 || Object.keys(accessAttributes).length > 0) {
    return 'who is made by signing in has one login, and nothing else but an address and roles'
  }
  return roles.includes(OWNER_ROLE) ? 'nobody becomes an owner by signing in' : null
}

function refusalOfLink(before: Principal, after: Principal): string | null {
  const { logins: had = [], ...others } = before
  const { logins: has = [], ...kept } = after
  const isOneMore = has.length === had.length + 1 && same(has.slice(0, -1), had)
  if (!isOneMore || !same(others, kept)) return 'a sign-in adds one login, and changes nothing else'
  if (before.suspendedAt !== null) return 'this principal is suspended'
  const { issuer } = has.at(-1)!
  // An e-mail address goes from one person to another: by it nobody gets in beside the first.
  if (had.some((one) => one.issuer === issuer)) return 'it has a login of this issuer already'
  return null
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
