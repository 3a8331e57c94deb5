// Who may change an identity, and how, as far as people and clients are alike. Decided by the owner
// of the system shard, over what its turns have decided. Source: CONTRACT 1.8, PROTOCOL 3.0 "Who
// may change configuration".

import type { Acl } from '../../../protocol/ace.ts'
import type { ConfigurationView } from '../../../protocol/behaviour.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { ErrorItem } from '../../../protocol/errors.ts'
import type { Change, PutBody } from '../../system-actor.ts'
import type { Client } from '../client.ts'
import type { Principal } from '../principal.ts'
import { refusalOfManyEntries } from './entries.ts'
import {
  callerFor,
  refusalOfTakenId,
  refusalOfTimes,
  refusalOfUnmadeRole,
  refusalToGive,
} from './giving.ts'

/** Why not: a text is 403; null: it may be. */
export type Refusal = ErrorItem | string | null

/** A change of an identity with what it makes of it. */
export interface IdentityChange<T> extends Change<T> {
  readonly key: string
  /** null: it is deleted. */
  readonly after: T | null
}

/** What one kind of identities has of its own. */
export interface IdentityRules<T> {
  readonly type: 'principal' | 'client'
  /** The other kind: nobody has the id of one of these. */
  readonly other: 'principal' | 'client'
  readonly countMax: () => number
  readonly aclOf: (value: T, view: ConfigurationView) => Acl
  /** What the change ends all sessions by, besides suspension. */
  readonly isNewlyShut: (before: T | null, after: T) => boolean
  /** What else it may not do. */
  readonly refusalOfOwn: (change: IdentityChange<T>, caller: Acl) => Refusal
  /** That one owner stays. */
  readonly refusalOfLast: (view: ConfigurationView, change: IdentityChange<T>) => Refusal
}

/** With what it makes of the identity. */
export function identityChange<T>(change: Change<T>): IdentityChange<T> {
  const { turn, message } = change
  const after = message.type === 'put' ? (message.body as PutBody<T>).value : null
  return { ...change, key: turn.key!, after }
}

/** Asked of every change that a caller with a session makes. */
export function refusalOfChange<T extends Client | Principal>(
  rules: IdentityRules<T>,
  change: IdentityChange<T>,
): Refusal {
  const { view, key, before, after } = change
  const place = `iam/${rules.type}s/${key}`
  const caller = callerFor(change, place, after === null ? 'delete' : 'write')
  if (typeof caller === 'string') return caller
  return (
    refusalOfManyEntries(view, { before, after }) ??
    rules.refusalOfOwn(change, caller) ??
    refusalToGive(caller, view, { of: [before, after], acl: rules.aclOf }) ??
    refusalOfUnmadeRole(caller, view, { before, after }) ??
    (after === null ? null : refusalOfValue(rules, change, after)) ??
    rules.refusalOfLast(view, change)
  )
}

/** What the others of its type, and its own past, have against a value. */
export function refusalOfValue<T extends Client | Principal>(
  { type, other, countMax, isNewlyShut }: IdentityRules<T>,
  change: IdentityChange<T>,
  after: T,
): Refusal {
  const { view, before } = change
  const times = { before, after, isNewlyShut: isNewlyShut(before, after) }
  const refused = refusalOfTimes(change, times) ?? refusalOfTakenId(change, other)
  if (refused !== null) return refused
  const max = countMax()
  if (before !== null || view.size(type) < max) return null
  return errorItem('INVALID_STATE', `there are ${max} ${type}s, which is the most`)
}
