// Principals as actors: who may change one, and how. Source: CONTRACT 1.8, PROTOCOL 3.0 "Who may
// change configuration".

import { LIMITS } from '../../../config/limits.ts'
import { passedBound } from '../../../protocol/attributes.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { ErrorItem } from '../../../protocol/errors.ts'
import type { ShapeError } from '../../../protocol/json/validation.ts'
import { systemActor } from '../../system-actor.ts'
import type { Change, PutBody } from '../../system-actor.ts'
import { foldedEmail, grantedTo, principalShape } from '../principal.ts'
import type { Principal } from '../principal.ts'
import {
  callerFor,
  refusalOfTakenId,
  refusalOfTimes,
  refusalOfUnmadeRole,
  refusalToGive,
  unknownSystemRole,
} from './giving.ts'
import { refusalOfLastPrincipal } from './owners.ts'
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
  names: ({ properties }) => [foldedEmail(properties.email)],
  node: principalNode,
})

function permit(change: Change<Principal>): ErrorItem | string | null {
  const { view, turn, message, before } = change
  const key = turn.key!
  const after = message.type === 'put' ? (message.body as PutBody<Principal>).value : null
  const own = refusalOfOwnPassword(change, after)
  if (own !== undefined) return own
  const caller = callerFor(change, `iam/principals/${key}`, after === null ? 'delete' : 'write')
  if (typeof caller === 'string') return caller
  const given =
    refusalToGive(caller, view, { of: [before, after], acl: grantedTo }) ??
    refusalOfUnmadeRole(caller, view, { before, after })
  if (given !== null) return given
  const isSameLogins = same(before?.logins ?? [], after?.logins ?? [])
  if (after !== null && !isSameLogins) return 'external logins are made by signing in'
  return (
    (after === null ? null : refusalOfValue(change, after)) ??
    refusalOfLastPrincipal(view, { key, before, after })
  )
}

/** What the value itself and the others of its type have against it. */
function refusalOfValue(change: Change<Principal>, after: Principal): ErrorItem | string | null {
  const { view, turn, before } = change
  const isNewlyShut = before?.password?.hash !== after.password?.hash
  const times = refusalOfTimes(change, { before, after, isNewlyShut })
  if (times !== null) return times
  const taken = refusalOfTakenId(change, 'client')
  if (taken !== null) return taken
  const other = view.find<Principal>('principal', foldedEmail(after.properties.email))
  if (other !== null && other.key !== turn.key) {
    return errorItem('ALREADY_EXISTS', 'another principal has this e-mail address')
  }
  const { principalsMax } = LIMITS.access
  if (before !== null || view.size('principal') < principalsMax) return null
  return errorItem('INVALID_STATE', `there are ${principalsMax} principals, which is the most`)
}

/**
 * Whoever has shown the present password may replace it, and nothing else: with a session of their
 * own, or as they sign in (then without one; its edge has seen the password). undefined: this is no
 * such change.
 */
function refusalOfOwnPassword(
  change: Change<Principal>,
  after: Principal | null,
): string | null | undefined {
  const { turn, before } = change
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
