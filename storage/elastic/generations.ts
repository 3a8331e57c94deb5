// Generations of the graph index: each is a set of indexes, one a node type, filled from the log
// from its beginning. A new one is filled beside the live one; then the aliases move to it, and the
// old one goes. node/indexing decides which generation is live; this has the names, mappings and
// aliases in the search engine. Source: PROTOCOL 3.13.5.

import { LIMITS } from '../../config/limits.ts'
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
    const made = Array.from(layout.nodes.values(), ({ name, properties }) => {
      const meta = {
        prefix,
        generation: number,
        node: name,
        of: names.join(' '),
        store,
        fingerprint: layout.fingerprint,
        properties: JSON.stringify(properties),
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
  layoutFor({ fingerprint, properties }: Generation): Layout {
    const { layout } = this.#options
    if (fingerprint === layout.fingerprint) return layout
    const nodes = new Map<string, NodeLayout>()
    for (const [type, own] of layout.nodes) {
      const theirs = properties.get(own.name)
      if (theirs !== undefined) nodes.set(type, { ...own, ...sharedOf(own, theirs) })
    }
    return { nodes, fingerprint }
  }
}

function generationOf(number: number, infos: readonly IndexInfo[]): Generation {
  const { meta } = infos[0]!
  const properties = new Map<string, NodeLayout['properties']>()
  for (const { meta: own } of infos) {
    const text = String(own['properties'])
    properties.set(String(own['node']), JSON.parse(text) as NodeLayout['properties'])
  }
  return {
    number,
    store: String(meta['store']),
    fingerprint: String(meta['fingerprint']),
    isWhole: String(meta['of'])
      .split(' ')
      .every((name) => properties.has(name)),
    properties,
  }
}

function sharedOf(
  own: Pick<NodeLayout, 'type' | 'members' | 'properties'>,
  theirs: NodeLayout['properties'],
): Pick<NodeLayout, 'type' | 'members' | 'properties'> {
  const isShared = (name: string): boolean =>
    JSON.stringify(own.properties[name]) === JSON.stringify(theirs[name])
  const properties = Object.entries(own.properties).filter(([name]) => isShared(name))
  const { type, members } = own
  return {
    type: { ...type, fields: type.fields.filter(({ custom, name }) => !custom || isShared(name)) },
    members: members.filter(({ name }): boolean => isShared(name)),
    properties: Object.fromEntries(properties) as Record<string, FieldMapping>,
  }
}
