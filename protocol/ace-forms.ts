// Entries of the graph and of actors, which have forms of their own: what a path and a permission
// may be there. Source: specification "Scopes and ACEs", CONTRACT 1.14.

import { toUuid } from './ids.ts'

/** One parsed entry. */
export interface Ace {
  /** Node field by whose value the entry grants (`customerNumber@graph/order:query`), or null. */
  readonly attribute: string | null
  /** Resource and path, by segment; empty = every resource. */
  readonly path: readonly string[]
  /** `*` (all), or a permission with its sub-names: `create`, `field:dynamic:myField`. */
  readonly permission: string
}

export type AceResult =
  | { readonly ok: true; readonly ace: Ace }
  | { readonly ok: false; readonly reason: string }

/** Actor types whose second segment may be a type key instead of a UUID. */
const TYPED_ACTORS: ReadonlySet<string> = new Set(['asset', 'ticket'])

/** A message or actor type. */
export const NAME = /^[A-Za-z_][A-Za-z0-9_-]*$/
/** Node types may be typed ones (`ticket.claim`); attributes may be members (`dynamic.region`). */
const DOTTED = /^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*$/
/** What a path segment may hold: anything but what the grammar itself uses. */
// eslint-disable-next-line no-control-regex -- control characters are what it keeps out
export const SEGMENT = /^[^\s:*/\u0000-\u001f\u007f]+$/
/** Names of `field[:<field>[:<sub-field>]]`. */
export const FIELD_NAMES_MAX = 2

/** A reason says what is wrong and what would be right. */
export const wrong = (reason: string): AceResult => ({ ok: false, reason })

/** An entry on the graph: by node type, for queries by one node, or by an attribute. */
export function graphAce(text: string, ace: Ace): AceResult {
  const [, node, id] = ace.path
  if (ace.path.length > 3 || (node !== undefined && !DOTTED.test(node))) {
    return wrong(
      `"${text}" should be graph[/<node type>[/<node id>]]:query or ` +
        'graph[/<node type>]:field[:<field>]',
    )
  }
  if (node !== undefined && ace.permission === 'explain') {
    return wrong(`"${text}" is on a node type; explaining goes for the whole graph: graph:explain`)
  }
  if (id !== undefined && ace.permission !== 'query') {
    return wrong(
      `"${text}" is on a node id, which takes query only; ` +
        `fields go by node type: graph/${node}:field`,
    )
  }
  if (ace.attribute !== null) {
    if (!DOTTED.test(ace.attribute)) {
      return wrong(`"${text}" should name a node field before the @`)
    }
    if (ace.permission !== 'query' || id !== undefined) {
      return wrong(`"${text}" has an attribute; only graph[/<node type>]:query may have one`)
    }
  }
  return { ok: true, ace }
}

/** An entry on actors: by type, and by UUID or the key of a typed one. */
export function actorAce(text: string, ace: Ace): AceResult {
  const [, type, id] = ace.path
  if (type !== undefined && !NAME.test(type)) {
    return wrong(`"${text}" should name an actor type: actors/order:create`)
  }
  if (ace.path.length > 3) {
    return wrong(`"${text}" should be actors[/<type>[/<uuid>]]:<message type>`)
  }
  if (id === undefined) return { ok: true, ace }
  const uuid = toUuid(id)
  if (uuid !== null) return { ok: true, ace: { ...ace, path: ['actors', type!, uuid] } }
  if (TYPED_ACTORS.has(type!) && NAME.test(id)) return { ok: true, ace }
  return wrong(`"${text}" should name the actor by its UUID: authorization always uses it`)
}

/**
 * The permission of a field by its path, `field:dynamic:myField`: as narrow as an entry can be. No
 * entry names a member that holds what the grammar itself uses, nor what is further down: that is
 * covered only by an entry on what is above it.
 */
export function fieldPermission(path: readonly string[]): string {
  let permission = 'field'
  for (const name of path.slice(0, FIELD_NAMES_MAX)) {
    if (!SEGMENT.test(name)) break
    permission += `:${name}`
  }
  return permission
}
