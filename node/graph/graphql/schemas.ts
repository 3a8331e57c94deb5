// The schemas of all callers: one for each set of permissions that shows the same, made when it is
// first asked for, and given up with the version of the graph that it was made of. Source: CONTRACT
// 1.4.1.

import type { DocumentNode, GraphQLSchema } from 'graphql'
import { LIMITS } from '../../../config/limits.ts'
import type { Acl } from '../../../protocol/ace.ts'
import type { GraphMeta } from '../../../protocol/graph/meta.ts'
import { KeptPlans } from '../plans/kept-plans.ts'
import { schemaOf } from './schema.ts'

/** What of the graph a schema is made of. */
export interface GraphView {
  /** Of the graph's schema; another number: another schema. */
  readonly version: number
  meta(acl: Acl): GraphMeta
  openDynamics(acl: Acl, node: string): readonly string[]
  /** Whether lists of such nodes can be subscribed to. */
  follows(node: string): boolean
}

/** A schema, with the documents that fit it. */
export interface KeptSchema {
  readonly schema: GraphQLSchema
  /** By their text. */
  readonly documents: KeptPlans<DocumentNode>
}

export class Schemas {
  readonly #view: GraphView
  #version = 0
  /** By what they show, in order of last use. */
  readonly #kept = new Map<string, KeptSchema>()
  /** What a set of permissions shows; a changed permission makes a new Acl. */
  #shown = new WeakMap<Acl, string>()
  #made = 0

  constructor(view: GraphView) {
    this.#view = view
  }

  get size(): number {
    return this.#kept.size
  }

  /** How many have been made so far. */
  get made(): number {
    return this.#made
  }

  /** Null: these permissions show nothing. */
  of(acl: Acl): KeptSchema | null {
    if (this.#view.version !== this.#version) {
      this.#version = this.#view.version
      this.#kept.clear()
      this.#shown = new WeakMap()
    }
    const known = this.#shown.get(acl)
    const found = known === undefined ? undefined : this.#kept.get(known)
    if (known !== undefined && found !== undefined) {
      this.#kept.delete(known)
      this.#kept.set(known, found)
      return found
    }
    return this.#make(acl)
  }

  #make(acl: Acl): KeptSchema | null {
    const meta = this.#view.meta(acl)
    const dynamics = new Map(
      meta.nodes.map(({ name }) => [name, this.#view.openDynamics(acl, name)]),
    )
    const shown = JSON.stringify([meta, ...dynamics])
    this.#shown.set(acl, shown)
    const same = this.#kept.get(shown)
    if (same !== undefined) return same
    const schema = schemaOf({
      meta,
      dynamicFields: (node) => dynamics.get(node)!,
      follows: (node) => this.#view.follows(node),
    })
    if (schema === null) return null
    this.#made++
    const { graphqlSchemasMax, graphqlDocumentsMax, graphqlDocumentsCharsMax } = LIMITS.graph
    const bounds = { max: graphqlDocumentsMax, charsMax: graphqlDocumentsCharsMax }
    const kept: KeptSchema = { schema, documents: new KeptPlans(bounds) }
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size < graphqlSchemasMax) break
      this.#kept.delete(oldest)
    }
    this.#kept.set(shown, kept)
    return kept
  }
}
