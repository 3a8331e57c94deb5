// The first generation of an index on a search engine in memory, and a writer that fills it: what
// tests of readers and of upkeep begin with.

import { SCHEMA } from '../../conformance/search-nodes.ts'
import { MemorySearchEngine } from '../../memory/search-engine.ts'
import { Generations } from '../generations.ts'
import { layoutOf } from '../layout.ts'
import { ElasticWriter } from '../writer.ts'

/** `nowMs`: the clock of the engine and of its writer. */
export async function firstGeneration(nowMs: () => number = () => 0) {
  const engine = new MemorySearchEngine({ nowMs })
  const layout = layoutOf(SCHEMA)
  const generations = new Generations({ engine, prefix: 'p-', layout, store: 's' })
  await generations.make(1)
  const indexOf = (name: string): string => generations.indexOf(1, name)
  const writeAliasOf = (name: string): string => generations.writeAliasOf(1, name)
  const writer = new ElasticWriter({
    engine,
    layout,
    rows: new Set(layout.nodes.keys()),
    writeAliasOf,
    saveOffsets: () => Promise.resolve(),
    saveFills: () => Promise.resolve(),
    nowMs,
    pause: () => Promise.resolve(),
    beforeBulk: () => undefined,
  })
  /** Makes what was written visible to searches, in these indexes or all. */
  const refresh = (...names: readonly string[]): Promise<void> =>
    engine.refresh((names.length > 0 ? names : [...layout.nodes.keys()]).map(indexOf))
  return { engine, writer, indexOf, writeAliasOf, refresh }
}
