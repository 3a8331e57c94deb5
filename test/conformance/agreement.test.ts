// One plan, three executions: some thousand generated queries over some thousand generated nodes
// are answered alike by SQL, by Elasticsearch, in memory and by the plain reference, order, counts
// and pages included. SEARCH_SEED chooses other nodes and queries, SEARCH_QUERIES how many. Source:
// ARCHITECTURE 5.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { OPTIONS } from '../../storage/conformance/search-index.ts'
import {
  actorIds,
  bookIds,
  INSTANTS,
  NUMBERS,
  SCHEMA,
  shelfIds,
  TEXTS,
} from '../../storage/conformance/search-nodes.ts'
import { agrees, applyAll, remaining } from '../../storage/conformance/search-property.ts'
import {
  aimed,
  randomAim,
  type RandomNavigation,
  randomQuery,
} from '../../storage/conformance/search-queries.ts'
import { Reference } from '../../storage/conformance/search-reference.ts'
import { randomWrite, type World } from '../../storage/conformance/search-writes.ts'
import { ElasticClient } from '../../storage/elastic/client.ts'
import { FINDER_BOUNDS } from '../../storage/elastic/finder.ts'
import { MemoryGraphIndex } from '../../storage/memory/search.ts'
import type { GraphReader, GraphWriter } from '../../storage/search.ts'
import { SqliteGraphReader } from '../../storage/sqlite/reader.ts'
import { SqliteGraphWriter } from '../../storage/sqlite/writer.ts'
import { engine } from '../harness/engines.ts'
import { wholeIndex } from './elastic/whole-index.ts'

const SEED = Number(process.env['SEARCH_SEED'] ?? 20)
const WRITES = 12_000
const NODES_MIN = 5_000
const QUERIES = Number(process.env['SEARCH_QUERIES'] ?? 2_000)
/**
 * A machine that has others to serve is let off some of them: each execution has so long, and
 * answers so many whatever it takes. By number on request it answers all.
 */
const TIME_MS = process.env['SEARCH_QUERIES'] === undefined ? 150_000 : Number.POSITIVE_INFINITY
const QUERIES_MIN = 200
/** Pages of candidates as small as what is shown asks for. */
const BOUNDS = { ...FINDER_BOUNDS, page: 150, wholes: 24 }
/** Queries that are asked side by side: a search engine's time is mostly waiting. */
const BATCH = 20

const many = <T>(count: number, of: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => of(i))
/** Neither rising nor falling with i. */
const actor = (kind: string) => (i: number) =>
  `0190b${kind}00-0000-7000-8000-${((i * 7_919) % 65_536).toString(16).padStart(12, '0')}`

/** Of most things many: an edge leads to a few nodes, not to a part of all. */
const WORLD: World = {
  // Those of the small world have a history.
  libraries: [...actorIds.slice(0, 9), ...many(400, actor('a'))],
  cities: many(60, actor('c')),
  shelfIds: [...shelfIds, ...many(7, actor('b'))],
  bookIds: [...bookIds, ...many(8, (i) => `book ${i}`)],
  twins: many(420, actor('a')),
  codes: many(80, (i) => (i % 5 === 0 ? `😀${i}` : `C${i}`)),
  keys: [...TEXTS, ...many(400, (i) => `key ${i}`)],
  sizes: [...NUMBERS, ...many(150, (i) => i / 4)],
  instants: [...INSTANTS, ...many(200, (i) => new Date(1.76e12 + i * 7e6).toISOString())],
}

/** Levels of navigation, and nodes that one shows, base sets first. */
const LIMITS = [8, 3]

/**
 * All nodes and all that they lead to would be too much of one answer; and whether each of many has
 * a note somewhere is asked of them one by one.
 */
const bounded = (query: readonly RandomNavigation[], depth = 0): RandomNavigation[] =>
  query.map((one) => {
    const { node, require, edge } = one
    const own = { ...one, require: edge === 'lentNotes' ? 'any' : require } as const
    if (node === null) return own
    const navigate = depth + 1 < LIMITS.length ? bounded(node.navigate, depth + 1) : []
    return { ...own, limit: one.limit ?? LIMITS[depth]!, node: { ...node, navigate } }
  })

interface Execution {
  readonly name: string
  readonly writer: GraphWriter
  /** Once all is written. */
  readonly reader: () => GraphReader | Promise<GraphReader>
}

function memory(): Execution {
  const index = new MemoryGraphIndex(OPTIONS)
  return { name: 'memory', writer: index, reader: () => index }
}

function sqlite(t: Test): Execution {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-graph-'))
  const writer = new SqliteGraphWriter({ dir, schema: SCHEMA, nowMs: () => 0 })
  const reader = new SqliteGraphReader({ dir, ...OPTIONS })
  t.teardown(() => {
    writer.close()
    reader.close()
    rmSync(dir, { recursive: true })
  })
  return { name: 'SQL', writer, reader: () => reader }
}

async function elastic(t: Test): Promise<Execution | null> {
  const address = await engine('elasticsearch')
  if ('skipped' in address) {
    t.comment(address.skipped)
    return null
  }
  const client = new ElasticClient({ urls: [`http://${address.host}:${address.port}`] })
  t.teardown(() => client.close())
  const index = wholeIndex(t, client, OPTIONS, BOUNDS)(SCHEMA)
  const reader = async (): Promise<GraphReader> => {
    await index.refresh()
    return index.reader()
  }
  return { name: 'Elasticsearch', writer: index, reader }
}

t.setTimeout(620_000)

t.test('all executions agree', async (t) => {
  t.setTimeout(600_000)
  const writes = fc.sample(randomWrite(WORLD), { seed: SEED, numRuns: WRITES })
  const nodes = remaining(writes)
  t.ok(nodes.length >= NODES_MIN, `${nodes.length} nodes (SEARCH_SEED=${SEED})`)
  const executions = [memory(), sqlite(t), await elastic(t)].filter((one) => one !== null)
  const batching = { size: 1_000, repeatEvery: 50, hasPlaces: false, isWhole: true }
  const readers = new Map<string, GraphReader>()
  for (const { name, writer, reader } of executions) {
    await writer.reset('one')
    await applyAll(writer, writes, batching)
    readers.set(name, await reader())
  }
  const reference = new Reference(nodes)
  const query = fc
    .record({ random: randomQuery, aim: randomAim })
    .map(({ random, aim }) => (aim === null ? random : aimed(random, nodes, aim)))
    .map(([first]) => bounded([first!]))
  const queries = fc.sample(query, { seed: SEED, numRuns: QUERIES })
  for (const [name, reader] of readers) {
    const startedMs = performance.now()
    let found = 0
    let asked = 0
    while (asked < QUERIES) {
      if (asked >= QUERIES_MIN && performance.now() - startedMs > TIME_MS) break
      const batch = queries.slice(asked, asked + BATCH)
      const agreed = batch.map((one, i) => {
        return agrees(reader, reference, one, { pages: i % 4 === 0 ? 2 : 1 })
      })
      for (const isSome of await Promise.all(agreed)) if (isSome) found++
      asked += batch.length
    }
    const s = Math.round((performance.now() - startedMs) / 100) / 10
    t.ok(found * 4 > asked, `${name}: ${found} of ${asked} queries found something, ${s} s`)
  }
})
