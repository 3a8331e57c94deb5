// The twin of the search engine: documents in memory under Elasticsearch's own rules, the nasty
// ones too. Searches see what was there at the last refresh; a document that is deleted for good is
// forgotten with its version after a minute, so that an older write brings it back; a bulk may be
// refused item by item, be late, or be answered by silence and done all the same. It stands in for
// elastic/client.ts in tests and simulations; its state may outlive it. Source: PROTOCOL 3.13, 4.

import {
  EngineAway,
  NoSuchIndex,
  type AliasChange,
  type BulkItem,
  type BulkResult,
  type IndexDefinition,
  type IndexInfo,
  type SearchAnswer,
  type SearchEngine,
  type SearchRequest,
} from '../elastic/engine.ts'
import type { Maybe } from '../journal.ts'
import {
  compareSorted,
  compileQuery,
  refusalOf,
  scoreOf,
  sortValues,
  type Source,
} from './search-query.ts'

/** The bulk is answered by silence now and done when `when` resolves (F20). */
export interface LateBulk {
  readonly when: Promise<void>
}

/** Failures to inject. Every hook may wait; null lets the call go on as it is. May be changed. */
export interface EngineHooks {
  /** Before a bulk is looked at. An array: items of which are told so, and not done. */
  beforeBulk?:
    | ((
        items: readonly BulkItem[],
      ) => Maybe<'away' | LateBulk | readonly (BulkResult | null)[] | null>)
    | undefined
  /** After it was done: silence instead of its answer. */
  afterBulk?: ((items: readonly BulkItem[]) => Maybe<'away' | null>) | undefined
  beforeSearch?: ((requests: readonly SearchRequest[]) => Maybe<'away' | null>) | undefined
  /** Refreshes, and what concerns whole indexes. */
  beforeOther?: (() => Maybe<'away' | null>) | undefined
}

/** Ways to break the driver's rules, for the mutants of a simulation. */
export interface EngineMutants {
  /** A soft delete is made a hard one. */
  readonly hardDeletes?: boolean
  /** Versions are ignored: the later write wins. */
  readonly internalVersions?: boolean
}

interface Document {
  readonly version: number
  readonly seqNo: number
  readonly source: Source
}

interface Index {
  readonly definition: IndexDefinition
  readonly aliases: Set<string>
  readonly documents: Map<string, Document>
  /** Versions of documents deleted for good, as long as they are remembered. */
  readonly graves: Map<string, { readonly version: number; readonly atMs: number }>
  visible: ReadonlyMap<string, Document>
  isDirty: boolean
  seqNo: number
}

/** What an engine keeps beyond a process. */
export type EngineState = Map<string, Index>

export interface MemoryEngineOptions {
  /** Monotonic milliseconds. */
  readonly nowMs: () => number
  readonly state?: EngineState
  readonly hooks?: EngineHooks
  readonly mutants?: EngineMutants
  /** `index.refresh_interval`. */
  readonly refreshMs?: number
  /** `index.gc_deletes`. */
  readonly gcDeletesMs?: number
}

export class MemorySearchEngine implements SearchEngine {
  readonly state: EngineState
  readonly hooks: EngineHooks
  readonly #options: MemoryEngineOptions
  #ticks = 0

  constructor(options: MemoryEngineOptions) {
    this.#options = options
    this.state = options.state ?? new Map()
    this.hooks = options.hooks ?? {}
  }

  async bulk(items: readonly BulkItem[]): Promise<readonly BulkResult[]> {
    const before = (await this.hooks.beforeBulk?.(items)) ?? null
    if (before === 'away') throw away()
    if (before !== null && 'when' in before) {
      void before.when.then(() => items.map((item) => this.#write(item)))
      throw away()
    }
    const results = items.map((item, i) => before?.[i] ?? this.#write(item))
    if ((await this.hooks.afterBulk?.(items)) === 'away') throw away()
    return results
  }

  #write({ index: alias, id, write }: BulkItem): BulkResult {
    this.#tick()
    const index = [...this.state.values()].find(({ aliases }) => aliases.has(alias))
    if (index === undefined) return 'gone'
    const there = index.documents.get(id)
    if (write.kind === 'purge') {
      if (there?.seqNo !== write.seqNo) return 'newer'
      this.#bury(index, id, there.version + 1)
      return 'done'
    }
    const source = JSON.parse(write.source) as Source
    const refused = refusalOf(source, index.definition.properties)
    if (refused !== null) return { refused }
    const { hardDeletes, internalVersions } = this.#options.mutants ?? {}
    const known = there?.version ?? this.#graveOf(index, id)
    if (!internalVersions && known !== null && known > write.version) return 'newer'
    const version = internalVersions ? (known ?? 0) + 1 : write.version
    const own = source['kontor'] as Source | undefined
    if (hardDeletes && own?.['deleted'] === true) this.#bury(index, id, version)
    else index.documents.set(id, { version, seqNo: index.seqNo++, source })
    index.isDirty = true
    return 'done'
  }

  #bury(index: Index, id: string, version: number): void {
    index.documents.delete(id)
    index.graves.set(id, { version, atMs: this.#options.nowMs() })
    index.isDirty = true
  }

  #graveOf(index: Index, id: string): number | null {
    const grave = index.graves.get(id)
    if (grave === undefined) return null
    if (this.#options.nowMs() - grave.atMs < (this.#options.gcDeletesMs ?? 60_000)) {
      return grave.version
    }
    index.graves.delete(id)
    return null
  }

  /** Refreshes by themselves, as late as they may be: at whole intervals of the clock. */
  #tick(): void {
    const ticks = Math.floor(this.#options.nowMs() / (this.#options.refreshMs ?? 1_000))
    if (ticks === this.#ticks) return
    this.#ticks = ticks
    for (const index of this.state.values()) show(index)
  }

  async refresh(indexes: readonly string[]): Promise<void> {
    await this.#other()
    for (const name of indexes) show(this.#index(name))
  }

  async search(requests: readonly SearchRequest[]): Promise<readonly SearchAnswer[]> {
    if ((await this.hooks.beforeSearch?.(requests)) === 'away') throw away()
    this.#tick()
    return requests.map((request) => this.#search(request))
  }

  #search(request: SearchRequest): SearchAnswer {
    const { index: name, query, size, sort, searchAfter, source, counts, sequence } = request
    const index = this.#index(name)
    const { properties } = index.definition
    const matches = compileQuery(query, properties)
    const found = Array.from(index.visible, ([id, document]) => ({ id, document }))
      .filter(({ document }) => matches(document.source))
      .map((one) => {
        const { source: own } = one.document
        const score = scoreOf(query, own, properties)
        return { ...one, sort: sortValues(own, sort, { properties, score }) }
      })
    const behind = found
      .filter((one) => !searchAfter || compareSorted(one.sort, searchAfter, sort) > 0)
      .sort((a, b) => compareSorted(a.sort, b.sort, sort))
    const hits = behind.slice(0, size).map(({ id, document, sort: values }) => ({
      id,
      source: picked(document.source, source),
      sort: values,
      ...(sequence && { seqNo: document.seqNo, primaryTerm: 1 }),
    }))
    return { hits, total: counts ? found.length : null }
  }

  #index(name: string): Index {
    const index =
      this.state.get(name) ?? [...this.state.values()].find(({ aliases }) => aliases.has(name))
    if (index === undefined) throw new NoSuchIndex(`no such index [${name}]`)
    return index
  }

  async #other(): Promise<void> {
    if ((await this.hooks.beforeOther?.()) === 'away') throw away()
    this.#tick()
  }

  async indexes(prefix: string): Promise<readonly IndexInfo[]> {
    await this.#other()
    return Array.from(this.state, ([name, { aliases, definition }]) => ({
      name,
      aliases: [...aliases],
      meta: definition.meta,
    })).filter(({ name }) => name.startsWith(prefix))
  }

  async createIndex(name: string, definition: IndexDefinition): Promise<void> {
    await this.#other()
    if (this.state.has(name)) return
    this.state.set(name, {
      definition: structuredClone(definition),
      aliases: new Set([definition.writeAlias]),
      documents: new Map(),
      graves: new Map(),
      visible: new Map(),
      isDirty: false,
      seqNo: 0,
    })
  }

  async deleteIndex(name: string): Promise<void> {
    await this.#other()
    this.state.delete(name)
  }

  async moveAliases(changes: readonly AliasChange[]): Promise<void> {
    await this.#other()
    for (const change of changes) if ('add' in change) this.#index(change.add.index)
    for (const change of changes) {
      if ('add' in change) this.#index(change.add.index).aliases.add(change.add.alias)
      else this.state.get(change.remove.index)?.aliases.delete(change.remove.alias)
    }
  }

  async close(): Promise<void> {}
}

function show(index: Index): void {
  if (index.isDirty) index.visible = new Map(index.documents)
  index.isDirty = false
}

function away(): EngineAway {
  return new EngineAway('the engine does not answer')
}

/** A copy of the members that were asked for, each whole; dots lead into them. */
function picked(source: Source, members: readonly string[]): Record<string, unknown> {
  const copy: Record<string, unknown> = {}
  const within = new Map<string, string[]>()
  for (const member of members) {
    const dot = member.indexOf('.')
    const first = dot < 0 ? member : member.slice(0, dot)
    const value = source[first]
    if (value === undefined) continue
    if (dot < 0) copy[first] = structuredClone(value)
    else within.set(first, [...(within.get(first) ?? []), member.slice(dot + 1)])
  }
  for (const [first, inner] of within) copy[first] ??= picked(source[first] as Source, inner)
  return copy
}
