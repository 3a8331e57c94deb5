// Principals as actors: who may change one, and how. Source: CONTRACT 1.8, PROTOCOL 3.0 "Who may
// change configuration".

import { LIMITS } from '../../../config/limits.ts'
import { passedBound } from '../../../protocol/attributes.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { ShapeError } from '../../../protocol/json/validation.ts'
import { systemActor } from '../../system-actor.ts'
import type { Change } from '../../system-actor.ts'
import { endOfActivity } from '../activity/activity.ts'
import { foldedEmail, grantedTo, loginName, namesOf, principalShape } from '../principal.ts'
import type { Principal } from '../principal.ts'
import { callerFor, unknownSystemRole } from './giving.ts'
import { identityChange, refusalOfChange, refusalOfValue } from './identity-changes.ts'
import type { IdentityChange, IdentityRules, Refusal } from './identity-changes.ts'
import { refusalOfLastPrincipal } from './owners.ts'
import { isExternalSignIn, refusalOfExternalSignIn } from './sign-in-changes.ts'
import { principalNode } from './nodes.ts'

/** What is wrong with a principal's value, or null. */
export function checkPrincipal(value: unknown): ShapeError | null {
  const wrong = principalShape(value)
  if (wrong !== null) return wrong
  const { roles, accessAttributes } = value as Principal
  const passed = passedBound(accessAttributes)
  if (passed !== null) return { member: 'accessAttributes', message: `has ${passed}` }
  return unknownSystemRole(roles)
}

export const principalBehaviour = systemActor<Principal>('principal', checkPrincipal, permit, {
  names: namesOf,
  node: principalNode,
  onDeletion: (key) => [endOfActivity({ kind: 'principal', identity: key })],
})

const RULES: IdentityRules<Principal> = {
  ...{ type: 'principal', other: 'client', aclOf: grantedTo },
  countMax: () => LIMITS.access.principalsMax,
  isNewlyShut: (before, after) =>
    before?.password?.hash !== after.password?.hash || isLoginGone(before, after),
  refusalOfOwn,
  refusalOfLast: refusalOfLastPrincipal,
}

function permit(change: Change<Principal>): Refusal {
  const asked = identityChange(change)
  const { after } = asked
  if (after !== null && isExternalSignIn(asked, after)) {
    const refused = refusalOfExternalSignIn(asked, after) ?? refusalOfOwn(asked)
    return refused ?? refusalOfValue(RULES, asked, after)
  }
  const own = refusalOfOwnPassword(asked)
  return own === undefined ? refusalOfChange(RULES, asked) : own
}

function refusalOfOwn({ view, key, after }: IdentityChange<Principal>): Refusal {
  if (after === null) return null
  const taken = (name: string): boolean => {
    const holder = view.find<Principal>('principal', name)
    return holder !== null && holder.key !== key
  }
  if (taken(foldedEmail(after.properties.email))) {
    return errorItem('ALREADY_EXISTS', 'another principal has this e-mail address')
  }
  if (!(after.logins ?? []).some((login) => taken(loginName(login)))) return null
  return errorItem('ALREADY_EXISTS', 'another principal has this login')
}

/** Whoever has signed in by it does so no more: sessions end, as with another password. */
function isLoginGone(before: Principal | null, after: Principal): boolean {
  const left = new Set(after.logins?.map(loginName))
  return before?.logins?.some((login) => !left.has(loginName(login))) === true
}

/**
 * Whoever has shown the present password may replace it, and nothing else: with a session of their
 * own, or as they sign in (then without one; its edge has seen the password). undefined: this is no
 * such change.
 */
function refusalOfOwnPassword(change: IdentityChange<Principal>): string | null | undefined {
  const { turn, before, after } = change
  const isSignIn = turn.session === undefined
  const isOwn = turn.by === turn.key && before !== null && after !== null
  const isPassword = isOwn && isOnlyPassword(before, after)
  if (!isPassword) return isSignIn ? 'principals are changed by callers with a session' : undefined
  if (before.suspendedAt !== null) return 'this principal is suspended'
  if (after.sessionEpoch <= before.sessionEpoch) return 'a new password ends all sessions'
  if (isSignIn) return null
  const caller = callerFor(change, 'me', 'write')
  return typeof caller === 'string' ? caller : null
}

function isOnlyPassword(before: Principal, after: Principal): boolean {
  if (before.password === null || after.password === null) return false
  if (after.password.expiresAt !== null || before.password.hash === after.password.hash) {
    return false
  }
  const { password: _was, sessionEpoch: _from, ...others } = before
  const { password: _is, sessionEpoch: _to, ...kept } = after
  return same(others, kept)
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
