// A graph index on a search engine as suites see it: written and read as one. It stands beside the
// suites, which choose the engine.

import type { Test } from 'tap'
import type { RemoteHistory } from '../../../protocol/graph/history.ts'
import type { GraphSchema } from '../../../protocol/graph/schema.ts'
import type { Position } from '../../../protocol/ids.ts'
import type { IndexOptions } from '../../../storage/conformance/search-index.ts'
import type { Fill, GraphReader, GraphWriter, IndexWrite } from '../../../storage/search.ts'
import type { SearchEngine } from '../../../storage/elastic/engine.ts'
import type { FinderBounds } from '../../../storage/elastic/finder.ts'
import { Generations } from '../../../storage/elastic/generations.ts'
import { layoutOf } from '../../../storage/elastic/layout.ts'
import { ElasticReader } from '../../../storage/elastic/reader.ts'
import { ElasticWriter } from '../../../storage/elastic/writer.ts'

/** What outlives a writer: which generation is the live one, and how far it is. */
interface Kept {
  number: number
  generation: string | null
  readonly offsets: Map<number, number>
  readonly fills: Map<number, Fill>
}

interface Whole {
  readonly options: IndexOptions
  readonly kept: Kept
  readonly bounds?: FinderBounds | undefined
}

/** One index over the generations that a suite empties; its searches see all that was written. */
export class WholeIndex implements GraphWriter, GraphReader {
  readonly placed = true
  readonly #engine: SearchEngine
  readonly #options: IndexOptions
  readonly #kept: Kept
  readonly #generations: Generations
  readonly #bounds: FinderBounds | undefined

  constructor(engine: SearchEngine, prefix: string, { options, kept, bounds }: Whole) {
    this.#engine = engine
    this.#options = options
    this.#kept = kept
    this.#bounds = bounds
    const layout = layoutOf(options.schema)
    this.#generations = new Generations({ engine, prefix, layout, store: 'test' })
  }

  async apply(
    writes: readonly IndexWrite[],
    offsets: readonly Position[],
    fills: readonly Fill[] = [],
  ): Promise<void> {
    const layout = layoutOf(this.#options.schema)
    const writer = new ElasticWriter({
      engine: this.#engine,
      layout,
      rows: new Set(layout.nodes.keys()),
      writeAliasOf: (name) => this.#generations.writeAliasOf(this.#kept.number, name),
      saveOffsets: async (saved) => {
        for (const { shard, offset } of saved) this.#kept.offsets.set(shard, offset)
        for (const { shard } of saved) this.#kept.fills.delete(shard)
      },
      saveFills: async (saved) => {
        for (const fill of saved) this.#kept.fills.set(fill.shard, fill)
      },
      nowMs: () => 0,
      pause: (ms) => new Promise((resolve) => void setTimeout(resolve, ms)),
      beforeBulk: () => undefined,
    })
    await writer.apply(writes, offsets, fills)
  }

  offsets(): ReadonlyMap<number, number> {
    return this.#kept.offsets
  }

  fills(): ReadonlyMap<number, Fill> {
    return this.#kept.fills
  }

  generation(): string | null {
    return this.#kept.generation
  }

  async reset(generation: string): Promise<void> {
    await this.#generations.make(this.#kept.number + 1)
    await this.#generations.activate(this.#kept.number + 1)
    await this.#generations.drop(this.#kept.number)
    this.#kept.number++
    this.#kept.generation = generation
    this.#kept.offsets.clear()
    this.#kept.fills.clear()
  }

  async query(...[plan, budgetMs]: Parameters<GraphReader['query']>) {
    await this.refresh()
    return this.reader().query(plan, budgetMs)
  }

  async explain(...[plan, budgetMs]: Parameters<GraphReader['explain']>) {
    await this.refresh()
    return this.reader().explain(plan, budgetMs)
  }

  /** What was written comes into sight. */
  async refresh(): Promise<void> {
    const layout = layoutOf(this.#options.schema)
    const names = Array.from(layout.nodes.values(), ({ name }) => this.indexOf(name))
    await this.#engine.refresh(names, { timeoutMs: 60_000 })
  }

  /** Reads what has come into sight. */
  reader(): ElasticReader {
    return new ElasticReader({
      engine: this.#engine,
      schema: this.#options.schema,
      indexOf: (name) => this.indexOf(name),
      history: remote(this.#options),
      now: this.#options.now,
      cursors: this.#options.cursors,
      ...(this.#bounds && { bounds: this.#bounds }),
    })
  }

  indexOf(name: string): string {
    return this.#generations.indexOf(this.#kept.number, name)
  }

  async clear(): Promise<void> {
    for (const number of (await this.#generations.find()).keys()) {
      await this.#generations.drop(number)
    }
  }

  close(): void {}
}

/** History piece by piece, two nodes at a time. */
function remote({ history }: IndexOptions): RemoteHistory {
  return {
    read: async (actorId, node, rest) => {
      const all = [...history.read(actorId, node)]
      const from = (rest as number | null) ?? 0
      const nodes = all.slice(from, from + 2)
      return { nodes, rest: from + 2 < all.length ? from + 2 : null }
    },
  }
}

let made = 0

/** An index of the test's own, empty; the same again for another schema. */
export function wholeIndex(
  t: Test,
  search: SearchEngine,
  options: IndexOptions,
  bounds?: FinderBounds,
): (schema: GraphSchema) => WholeIndex {
  const prefix = `conformance-${process.pid}-${++made}-`
  const kept: Kept = { number: 0, generation: null, offsets: new Map(), fills: new Map() }
  t.teardown(() => new WholeIndex(search, prefix, { options, kept }).clear())
  return (schema) =>
    new WholeIndex(search, prefix, { options: { ...options, schema }, kept, bounds })
}
