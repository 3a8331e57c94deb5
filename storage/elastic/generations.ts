// Generations of the graph index: each is a set of indexes, one a node type, filled from the log
// from its beginning. A new one is filled beside the live one; then the aliases move to it, and the
// old one goes. node/indexing decides which generation is live; this has the names, mappings and
// aliases in the search engine. Source: PROTOCOL 3.13.5.

import { LIMITS } from '../../config/limits.ts'
import type { NodeType } from '../../protocol/graph/node-type.ts'
import type { AliasChange, FieldMapping, IndexInfo, SearchEngine } from './engine.ts'
import type { Layout, NodeLayout } from './layout.ts'

/** A generation as it is in the engine. */
export interface Generation {
  readonly number: number
  /** Store that it was filled from. */
  readonly store: string
  readonly fingerprint: string
  /** False: an index of it is missing, made by half or lost. */
  readonly isWhole: boolean
  /** Mappings of its node types, by their layouts' names. */
  readonly properties: ReadonlyMap<string, NodeLayout['properties']>
  /** What their mappings don't tell of custom fields, by the same names. */
  readonly definitions: ReadonlyMap<string, NodeLayout['definitions']>
  /** The node types that it was made for, as far as it says so. */
  readonly types: readonly NodeType[]
}

export interface GenerationsOptions {
  readonly engine: SearchEngine
  /** Put before every index name. */
  readonly prefix: string
  readonly layout: Layout
  /** Generation of the store (StoreIdentity). */
  readonly store: string
}

const BOUND = { timeoutMs: LIMITS.elastic.adminMs }

export class Generations {
  readonly #options: GenerationsOptions

  constructor(options: GenerationsOptions) {
    this.#options = options
  }

  /** Index of a node type, by its layout's name. */
  indexOf(number: number, name: string): string {
    return `${this.#options.prefix}${name}-${number}`
  }

  /** Alias by which it is written: unlike an index, it is never made by being written to. */
  writeAliasOf(number: number, name: string): string {
    return `${this.indexOf(number, name)}-write`
  }

  /** All generations that are there, of whatever store, by number. */
  async find(): Promise<ReadonlyMap<number, Generation>> {
    const infos = await this.#infos()
    const byNumber = Map.groupBy(infos, ({ meta }) => Number(meta['generation']))
    const found = new Map<number, Generation>()
    for (const [number, own] of byNumber) found.set(number, generationOf(number, own))
    return found
  }

  /** Indexes that are ours by what they say of themselves, not just by name. */
  async #infos(): Promise<readonly IndexInfo[]> {
    const { engine, prefix } = this.#options
    const infos = await engine.indexes(prefix, BOUND)
    return infos.filter(({ meta }) => meta['prefix'] === prefix)
  }

  /** Makes the indexes of a new generation; those that are there already stay as they are. */
  async make(number: number): Promise<void> {
    const { engine, prefix, layout, store } = this.#options
    const names = Array.from(layout.nodes.values(), ({ name }) => name)
    const made = Array.from(layout.nodes.values(), (own) => {
      const { name, properties, definitions } = own
      const meta = {
        prefix,
        generation: number,
        node: name,
        of: names.join(' '),
        store,
        fingerprint: layout.fingerprint,
        properties: JSON.stringify(properties),
        definitions: JSON.stringify(definitions),
        types: JSON.stringify(typesWith(own, layout)),
      }
      const definition = { writeAlias: this.writeAliasOf(number, name), properties, meta }
      return engine.createIndex(this.indexOf(number, name), definition, BOUND)
    })
    await Promise.all(made)
  }

  /** Moves the aliases that people and tools read by, all in one step. */
  async activate(number: number): Promise<void> {
    const { engine, prefix } = this.#options
    const changes: AliasChange[] = []
    for (const { name, aliases, meta } of await this.#infos()) {
      const alias = `${prefix}${String(meta['node'])}`
      const isLive = meta['generation'] === number
      if (isLive === aliases.includes(alias)) continue
      changes.push(isLive ? { add: { index: name, alias } } : { remove: { index: name, alias } })
    }
    if (changes.length > 0) await engine.moveAliases(changes, BOUND)
  }

  async drop(number: number): Promise<void> {
    const infos = await this.#infos()
    const own = infos.filter(({ meta }) => meta['generation'] === number)
    await Promise.all(own.map(({ name }) => this.#options.engine.deleteIndex(name, BOUND)))
  }

  /**
   * The layout as far as a generation has it that another version has made: what its mappings don't
   * know, or know as something else, is left out until the own generation is filled.
   */
  layoutFor({ fingerprint, properties, definitions }: Generation): Layout {
    const { layout } = this.#options
    if (fingerprint === layout.fingerprint) return layout
    const nodes = new Map<string, NodeLayout>()
    for (const [type, own] of layout.nodes) {
      const theirs = properties.get(own.name)
      if (theirs === undefined) continue
      const told = { properties: theirs, definitions: definitions.get(own.name) ?? {} }
      // Which column is of which field only its own program knows.
      nodes.set(type, { ...own, ...sharedOf(own, told), search: null })
    }
    return { ...layout, nodes, fingerprint }
  }
}

/** A node type and its place among all. */
type Placed = readonly [place: number, type: NodeType]

/** Those that an index tells: its own, and those of nodes that are found through its own. */
function typesWith({ type }: NodeLayout, { types }: Layout): Placed[] {
  const isTold = ({ name, storage }: NodeType): boolean =>
    storage.kind === 'row'
      ? name === type.name
      : (storage.kind === 'embedded' ? storage.node : storage.parent) === type.name
  return [...types.entries()].filter(([, one]) => isTold(one))
}

function generationOf(number: number, infos: readonly IndexInfo[]): Generation {
  const { meta } = infos[0]!
  const properties = new Map<string, NodeLayout['properties']>()
  const definitions = new Map<string, NodeLayout['definitions']>()
  const types: Placed[] = []
  for (const { meta: own } of infos) {
    const name = String(own['node'])
    properties.set(name, JSON.parse(String(own['properties'])) as NodeLayout['properties'])
    const { definitions: untold, types: told } = own
    if (typeof untold !== 'string' || typeof told !== 'string') continue
    definitions.set(name, JSON.parse(untold) as NodeLayout['definitions'])
    types.push(...(JSON.parse(told) as Placed[]))
  }
  return {
    number,
    store: String(meta['store']),
    fingerprint: String(meta['fingerprint']),
    isWhole: String(meta['of'])
      .split(' ')
      .every((name) => properties.has(name)),
    properties,
    definitions,
    types: types.toSorted(([a], [b]) => a - b).map(([, type]) => type),
  }
}

type Shared = Pick<NodeLayout, 'type' | 'embedded' | 'members' | 'properties'>
type Told = Pick<NodeLayout, 'properties' | 'definitions'>

function sharedOf(own: Shared & Told, theirs: Told): Shared {
  const { type, members } = own
  const isShared = (name: string): boolean =>
    isSame(own.properties[name], theirs.properties[name]) &&
    own.definitions[name] === theirs.definitions[name]
  const properties = Object.entries(own.properties).filter(([name]) => isShared(name))
  const shared: Shared = {
    type: { ...type, fields: type.fields.filter(({ custom, name }) => !custom || isShared(name)) },
    embedded: [],
    members: members.filter(({ name }) => isShared(name)),
    properties: Object.fromEntries(properties) as Record<string, FieldMapping>,
  }
  return own.embedded.reduce((so, one) => withEmbedded(so, one, { own, theirs }), shared)
}

const isSame = (a: FieldMapping | undefined, b: FieldMapping | undefined): boolean =>
  JSON.stringify(a) === JSON.stringify(b)

/** Nodes in a document are kept there whatever is defined for them; so they are shared in part. */
function withEmbedded(
  shared: Shared,
  type: NodeType,
  { own, theirs }: { readonly own: Shared & Told; readonly theirs: Told },
): Shared {
  const { storage } = type
  if (storage.kind !== 'embedded') return shared
  const { member } = storage
  const [mine, known] = [own.properties[member], theirs.properties[member]]
  if (mine === undefined || known === undefined) return shared
  if (!('properties' in mine) || !('properties' in known)) return shared
  const has = (name: string): boolean =>
    isSame(mine.properties[name], known.properties[name]) &&
    own.definitions[`${member}.${name}`] === theirs.definitions[`${member}.${name}`]
  const properties = Object.entries(mine.properties).filter(([name]) => has(name))
  const elements = own.members.find(({ name }) => name === member)!
  const some = { ...elements, members: elements.members.filter(({ name }) => has(name)) }
  return {
    type: shared.type,
    embedded: [
      ...shared.embedded,
      { ...type, fields: type.fields.filter(({ custom, name }) => !custom || has(name)) },
    ],
    members: [...shared.members.filter(({ name }) => name !== member), some],
    properties: {
      ...shared.properties,
      [member]: { ...mine, properties: Object.fromEntries(properties) },
    },
  }
}
