// Versions of the schema that generations were laid out for before this member came, or that it was
// never told of: what the registry defined then. So a member that starts while a successor is
// filled reads and writes the live one as those do that were there. Source: PROTOCOL 3.13.8.

import type { NodeType } from '../../../protocol/graph/node-type.ts'
import { graphSchema } from '../../../protocol/graph/schema.ts'
import type { Generation } from '../../../storage/elastic/generations.ts'
import { type Layout, layoutOf } from '../../../storage/elastic/layout.ts'
import type { LiveSchema, SchemaVersion } from '../../graph/live-schema.ts'
import type { ServedSchema } from '../served-schema.ts'

export class FoundVersions {
  readonly #served: ServedSchema
  readonly #schema: LiveSchema
  #found = 0

  constructor(served: ServedSchema, schema: LiveSchema) {
    this.#served = served
    this.#schema = schema
  }

  /**
   * The layout by which a generation is written, or null: it was made by a program with other node
   * types, and nothing is known but its mappings.
   */
  learn({ fingerprint, types }: Pick<Generation, 'fingerprint' | 'types'>): Layout | null {
    const known = this.#served.find(fingerprint)
    if (known !== null) return layoutOf(known.schema)
    const version = this.#versionOf(types)
    if (version === null) return null
    const layout = layoutOf(version.schema)
    if (layout.fingerprint !== fingerprint) return null
    this.#served.keep(version, fingerprint)
    return layout
  }

  /** Numbers of those that are found are no others'. */
  #versionOf(types: readonly NodeType[]): SchemaVersion | null {
    const own = Array.from(this.#schema.current.schema.nodes.values(), ({ type }) => type)
    if (plain(types) !== plain(own)) return null
    try {
      return { number: -this.#found++, types, schema: graphSchema(types) }
    } catch {
      return null
    }
  }
}

/** Node types without what the registry defines. */
function plain(types: readonly NodeType[]): string {
  const own = types.map((type) => ({
    ...type,
    search: undefined,
    root: undefined,
    fields: type.fields
      .filter(({ custom }) => !custom)
      .map((field) => ({ ...field, offered: undefined })),
    edges: type.edges.filter(({ custom }) => !custom),
  }))
  return JSON.stringify(own)
}
