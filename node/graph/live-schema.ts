// The graph schema as it is now: one value with a version, which all who plan, keep or describe
// graph nodes follow: routes, plans, the index and its threads. Source: PROTOCOL 3.13.8.

import { LIMITS } from '../../config/limits.ts'
import { assert } from '../../protocol/errors.ts'
import type { NodeType } from '../../protocol/graph/node-type.ts'
import { type GraphSchema, graphSchema } from '../../protocol/graph/schema.ts'

/** Never changes: a change makes the next one. Two are the same only if they are one object. */
export interface SchemaVersion {
  /** From 1 in each process, rising by one with each change. */
  readonly number: number
  /** As they were declared; plain data, so that they can be sent to a thread. */
  readonly types: readonly NodeType[]
  readonly schema: GraphSchema
}

export class LiveSchema {
  #current: SchemaVersion
  /** The same types again are no change. */
  #text: string
  readonly #followers = new Set<(version: SchemaVersion) => void>()
  #isTelling = false

  /** Throws AssertionError when the types don't fit together. */
  constructor(types: readonly NodeType[]) {
    this.#text = JSON.stringify(types)
    this.#current = { number: 1, types, schema: graphSchema(types) }
  }

  get current(): SchemaVersion {
    return this.#current
  }

  /**
   * Makes these the node types, and tells all followers before it returns. Types that don't fit
   * together throw AssertionError and change nothing; the same types again are the same version.
   */
  change(types: readonly NodeType[]): SchemaVersion {
    assert(!this.#isTelling, 'a follower of the schema does not change it')
    const text = JSON.stringify(types)
    if (text === this.#text) return this.#current
    const version = { number: this.#current.number + 1, types, schema: graphSchema(types) }
    this.#text = text
    this.#current = version
    this.#isTelling = true
    try {
      for (const follower of this.#followers) follower(version)
    } finally {
      this.#isTelling = false
    }
    return version
  }

  /** Called with each version from now on, in order; returns what ends it. It must not throw. */
  follow(follower: (version: SchemaVersion) => void): () => void {
    assert(
      this.#followers.size < LIMITS.graph.schemaFollowersMax,
      'followers of the schema are given up',
    )
    this.#followers.add(follower)
    return () => void this.#followers.delete(follower)
  }
}
