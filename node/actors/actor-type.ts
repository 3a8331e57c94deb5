// Actor types as the HTTP surface knows them: which are served, and what to say of the others.
// Source: CONTRACT 1.3, 1.13.

import type { Behaviour } from '../../protocol/behaviour.ts'
import { RequestError } from '../../protocol/errors.ts'

/** An actor type that callers may send messages to. */
export interface ActorType {
  readonly behaviour: Behaviour
  /** Resource of its ACEs: `actors/order`. */
  readonly resource: string
  /** First part of the paths to its actors, the slash included. */
  readonly path: string
}

/** Types of the specification that have no behaviour here yet. */
const NOT_BUILT: ReadonlySet<string> = new Set(['payment', 'sku', 'asset', 'ticket'])
/** Types whose actors belong to a type key: `/resources/actors/ticket/claim/17`. */
const TYPED: ReadonlySet<string> = new Set(['asset', 'ticket'])

export class ActorTypes {
  readonly #types = new Map<string, ActorType>()

  /** Configuration and sessions have endpoints of their own; they are no actor types here. */
  constructor(behaviours: ReadonlyMap<string, Behaviour>) {
    for (const behaviour of behaviours.values()) {
      if (behaviour.home !== 'shards' || behaviour.isInternal) continue
      const resource = `actors/${behaviour.type}`
      this.#types.set(behaviour.type, { behaviour, resource, path: `/resources/${resource}/` })
    }
  }

  /** Throws RequestError: 422 NOT_AVAILABLE for a type to come, 404 for one that is unknown. */
  get(name: string): ActorType {
    const type = this.#types.get(name)
    if (type) return type
    if (NOT_BUILT.has(name)) {
      throw new RequestError('NOT_AVAILABLE', `actors of type "${name}" are not available yet`)
    }
    const known = [...this.#types.keys()].join(', ')
    throw new RequestError('NOT_FOUND', `there is no actor type "${name}"; there is ${known}`)
  }

  isTyped(name: string): boolean {
    return TYPED.has(name)
  }
}
