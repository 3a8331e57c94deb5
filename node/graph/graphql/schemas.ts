// The schemas of all callers: one for each set of permissions that shows the same, made when it is
// first asked for, and given up with the version of the graph that it was made of. Source: CONTRACT
// 1.4.1.

import { hash } from 'node:crypto'
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

export interface KeptSchema {
  readonly schema: GraphQLSchema
  /** Of all that were made: documents that fit it are kept under it. */
  readonly number: number
}

export class Schemas {
  readonly #view: GraphView
  #version = 0
  /** By the digest of what they show, in order of last use. */
  readonly #kept = new Map<string, KeptSchema>()
  /**
   * What a set of permissions shows; a changed permission makes a new Acl. Digests: there may be as
   * many sets as tokens at hand, and what one shows is a text of some 100 KB.
   */
  #shown = new WeakMap<Acl, string>()
  #made = 0
  /**
   * Those that fit a schema, by its number and their text. One room for all schemas: a document
   * weighs about 50 times its text, and permissions can be made at will.
   */
  readonly #documents = new KeptPlans<DocumentNode>({
    max: LIMITS.graph.graphqlDocumentsMax,
    charsMax: LIMITS.graph.graphqlDocumentsCharsMax,
  })

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

  /** A document that was found to fit; null: not known. */
  document({ number }: KeptSchema, text: string): DocumentNode | null {
    return this.#documents.find(`${number} ${text}`)
  }

  keep({ number }: KeptSchema, text: string, document: DocumentNode): void {
    this.#documents.keep(`${number} ${text}`, document, text.length)
  }

  #make(acl: Acl): KeptSchema | null {
    const meta = this.#view.meta(acl)
    const dynamics = new Map(
      meta.nodes.map(({ name }) => [name, this.#view.openDynamics(acl, name)]),
    )
    const shown = hash('sha256', JSON.stringify([meta, ...dynamics]), 'base64url')
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
    const kept: KeptSchema = { schema, number: this.#made }
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size < LIMITS.graph.graphqlSchemasMax) break
      this.#kept.delete(oldest)
    }
    this.#kept.set(shown, kept)
    return kept
  }
}
