// Nodes behind a cursor's place, as a query. The engine has such a thing of its own (search_after),
// but by values of its own: a cursor knows those of the documents. Source: CONTRACT 1.4 "Cursors".

import type { CursorPlace, Scalar, SortKey } from '../../protocol/graph/plan.ts'
import type { Query, RangeQuery, Term } from './engine.ts'
import { ACTOR, ID } from './layout.ts'
import { valueOf } from './members.ts'
import { exists, fieldOf, memberField, NONE, range, term, type Place } from './query.ts'

/** A key that nodes are ordered by, and where the place stands by it. */
interface At {
  readonly field: string
  readonly direction: 'asc' | 'desc'
  /** null: missing, which comes last. */
  readonly value: Term | null
  readonly isOptional: boolean
  /** A member of `dynamic`: its ranges need two ends. */
  readonly isMember?: true
}

/** All values of members (members.ts) lie between. */
const FIRST_MEMBER = 'b'
const BEHIND_MEMBERS = 'u'

export function behindQuery(
  orderBy: readonly SortKey[],
  { id, actorId, values }: CursorPlace,
  place: Place,
): Query {
  const last = { direction: 'asc', isOptional: false } as const
  const keys: At[] = [
    ...orderBy.map((key, i) => atKey(key, values[i] ?? null, place)),
    { field: ID, value: id, ...last },
    { field: ACTOR, value: actorId, ...last },
  ]
  // Level with the first keys, behind by the next: side by side, for queries may not nest deeply.
  const should = keys.map((key, i): Query => {
    return { bool: { filter: [...keys.slice(0, i).map(level), behind(key)] } }
  })
  return { bool: { should, minimum_should_match: 1 } }
}

function atKey({ path, as, direction }: SortKey, value: Scalar | null, place: Place): At {
  const at = { direction, isOptional: true } as const
  if (as !== 'any') return { field: fieldOf(path, place).name, value, ...at }
  const own = value === null ? null : valueOf(value)
  return { field: memberField('S', path), value: own, isMember: true, ...at }
}

function level({ field, value }: At): Query {
  return value === null ? { bool: { must_not: [exists(field)] } } : term(field, value)
}

function behind({ field, direction, value, isOptional, isMember }: At): Query {
  if (value === null) return NONE
  const ends = isMember ? { gte: FIRST_MEMBER, lt: BEHIND_MEMBERS } : {}
  const further = furtherOf(field, direction, { value, ends })
  if (!isOptional) return further
  const none: Query = { bool: { must_not: [exists(field)] } }
  return { bool: { should: [further, none], minimum_should_match: 1 } }
}

function furtherOf(
  field: string,
  direction: 'asc' | 'desc',
  { value, ends }: { readonly value: Term; readonly ends: RangeQuery },
): Query {
  if (typeof value === 'boolean') {
    // Of truths there are two.
    const other = direction === 'asc'
    return value === other ? NONE : term(field, other)
  }
  const { gte, lt } = ends
  if (direction === 'asc') return range(field, { gt: value, ...(lt !== undefined && { lt }) })
  return range(field, { lt: value, ...(gte !== undefined && { gte }) })
}
