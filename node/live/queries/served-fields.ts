// Live queries as the graph's fields become others: documents of changed nodes get the custom
// fields of the schema that is served (owners send them as actors have them), and plans of the
// version before are made again, some at a time, each before it is asked of anything. Source:
// PROTOCOL 3.13.8, 3.15.

import type { Clock } from '../../../cluster/clock.ts'
import { LIMITS } from '../../../config/limits.ts'
import { completing } from '../../../protocol/graph/custom-fields.ts'
import type { SchemaVersion } from '../../graph/live-schema.ts'
import type { NodeRow } from './node-changes.ts'
import type { StandingQuery } from './standing-query.ts'

export interface ServedFieldsOptions {
  /** The version of the schema that the index that is read was filled for. */
  readonly served: () => SchemaVersion
  readonly all: ReadonlySet<StandingQuery>
  readonly clock: Pick<Clock, 'defer'>
}

/** Names of the node types that are others, or were not there. */
function changedTypes(from: SchemaVersion, to: SchemaVersion): ReadonlySet<string> {
  const former = new Set(from.types.map((type) => JSON.stringify(type)))
  const others = to.types.filter((type) => !former.has(JSON.stringify(type)))
  const names = new Set(to.types.map(({ name }) => name))
  const gone = from.types.filter(({ name }) => !names.has(name))
  return new Set([...others, ...gone].map(({ name }) => name))
}

/** What a query means goes by the types of its nodes: changes of others are nothing to it. */
function isOf({ plan }: StandingQuery, changed: ReadonlySet<string>): boolean {
  for (const type of plan.types) if (changed.has(type)) return true
  return false
}

export class ServedFields {
  readonly #options: ServedFieldsOptions
  readonly #outdated = new Set<StandingQuery>()
  #version: SchemaVersion
  #complete: ReturnType<typeof completing>

  constructor(options: ServedFieldsOptions) {
    this.#options = options
    this.#version = options.served()
    this.#complete = completing(this.#version.types)
  }

  /** Looks whether another version is served by now. */
  follow(): void {
    const { served, all, clock } = this.#options
    const version = served()
    if (version === this.#version) return
    const changed = changedTypes(this.#version, version)
    this.#version = version
    this.#complete = completing(version.types)
    for (const query of all) if (isOf(query, changed)) this.#outdated.add(query)
    if (this.#outdated.size > 0) clock.defer(this.#updateSome)
  }

  /** Whether a plan of theirs is of a version that is served no more. */
  areOutdated(queries: ReadonlySet<StandingQuery>): boolean {
    this.follow()
    if (this.#outdated.size > 0) for (const one of queries) if (this.#outdated.has(one)) return true
    return false
  }

  /** Has their plans made again where that is due; they can end by it, or go to another list. */
  update(queries: ReadonlySet<StandingQuery>): void {
    if (this.#outdated.size > 0) for (const query of [...queries]) this.#update(query)
  }

  #update(query: StandingQuery): void {
    if (this.#outdated.delete(query)) query.taker.schemaChanged()
  }

  forget(query: StandingQuery): void {
    this.#outdated.delete(query)
  }

  /** With custom fields; rows that have none are the same. */
  completed(nodes: readonly NodeRow[]): readonly NodeRow[] {
    return nodes.map((row): NodeRow => {
      const [node, id, doc] = row
      const whole = this.#complete({ node, doc })
      return whole.doc === doc ? row : [node, id, whole.doc]
    })
  }

  readonly #updateSome = (): void => {
    let left: number = LIMITS.live.replanTogether
    for (const query of this.#outdated) {
      this.#update(query)
      if (--left === 0) break
    }
    if (this.#outdated.size > 0) this.#options.clock.defer(this.#updateSome)
  }
}
