// What a narrowed set grants, written out as one list: the entries that all of its lists have in
// common. For whoever is told what a token is good for (RFC 6749 5.1, RFC 7662 2.2, CONTRACT 1.8
// "Me"). What two lists open by different attributes, or by an attribute and an id, no single entry
// says: it is left out, so the list never tells more than the set grants.

import { formatAce, parseAce } from './ace.ts'
import type { Ace, Acl } from './ace.ts'

/** Each once; a set of one list has the entries that it was made of. */
export function grantedAces(acl: Acl): readonly Ace[] {
  const [own, ...others] = acl.lists
  return others.reduce(common, once(own ?? []))
}

/** The same as a scope. */
export function grantedScope(acl: Acl): string {
  return grantedAces(acl).map(formatAce).join(' ')
}

interface Place {
  readonly aces: Ace[]
  readonly children: Map<string, Place>
}

const emptyPlace = (): Place => ({ aces: [], children: new Map() })

function once(aces: readonly Ace[]): readonly Ace[] {
  return [...new Map(aces.map((ace) => [formatAce(ace), ace])).values()]
}

function common(aces: readonly Ace[], others: readonly Ace[]): readonly Ace[] {
  const root = emptyPlace()
  for (const ace of others) placeOf(root, ace.path).aces.push(ace)
  return once(aces.flatMap((ace) => sharedBy(ace, root)))
}

function placeOf(root: Place, path: readonly string[]): Place {
  let place = root
  for (const segment of path) {
    let child = place.children.get(segment)
    if (!child) place.children.set(segment, (child = emptyPlace()))
    place = child
  }
  return place
}

/** What an entry has in common with those of the other list: above it, beside it and below it. */
function sharedBy(ace: Ace, root: Place): readonly Ace[] {
  const shared: Ace[] = []
  let place: Place | undefined = root
  for (let depth = 0; place !== undefined; depth++) {
    for (const other of place.aces) {
      const both = meet(ace, other)
      if (both !== null && isSame(both, ace)) return [ace]
      if (both !== null) shared.push(both)
    }
    if (depth === ace.path.length) break
    place = place.children.get(ace.path[depth]!)
  }
  if (place !== undefined) for (const child of place.children.values()) below(ace, child, shared)
  return shared
}

function below(ace: Ace, place: Place, shared: Ace[]): void {
  for (const other of place.aces) {
    const both = meet(ace, other)
    if (both !== null) shared.push(both)
  }
  for (const child of place.children.values()) below(ace, child, shared)
}

/** What both grant, of which one's path is the other's beginning; null: nothing that one says. */
function meet(a: Ace, b: Ace): Ace | null {
  const permission = narrower(a.permission, b.permission)
  if (permission === null) return null
  if (a.attribute !== null && b.attribute !== null && a.attribute !== b.attribute) return null
  const path = a.path.length >= b.path.length ? a.path : b.path
  const both: Ace = { attribute: a.attribute ?? b.attribute, path, permission }
  if (isSame(both, a) || isSame(both, b)) return both
  return parseAce(formatAce(both)).ok ? both : null
}

function narrower(a: string, b: string): string | null {
  if (a === b || b === '*' || a.startsWith(`${b}:`)) return a
  return a === '*' || b.startsWith(`${a}:`) ? b : null
}

function isSame(a: Ace, b: Ace): boolean {
  return a.attribute === b.attribute && a.permission === b.permission && a.path === b.path
}
