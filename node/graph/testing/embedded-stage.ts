// The embedded graph whole, for tests: the journal and the index in a temporary folder, the index's
// threads and the reader threads as they run in a node. Its actors are notebooks.

import { randomFillSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { OWNER_ACL } from '../../../protocol/ace.ts'
import type { NodeType } from '../../../protocol/graph/node-type.ts'
import { systemClock } from '../../../cluster/clock.ts'
import type { FeedStore } from '../../../cluster/feed/testing/feed-store.ts'
import {
  openEmbeddedJournal,
  type EmbeddedJournal,
} from '../../../storage/embedded/journal/journal.ts'
import { type ConsistencyTokens, consistencyTokens } from '../consistency.ts'
import { cursorSeal } from '../cursors.ts'
import { Graph } from '../graph.ts'
import { LiveSchema } from '../live-schema.ts'
import { EmbeddedIndex } from '../../indexing/embedded/embedded-index.ts'
import { ReaderPool } from '../plans/reader-pool.ts'
import { ReaderThread } from '../plans/reader-thread.ts'
import { behaviours } from './notebook-table.ts'

const notebooks = new URL('./notebook-table.ts', import.meta.url).href
const silent = { info: () => undefined, warn: () => undefined, error: () => undefined }

export interface Embedded {
  readonly store: FeedStore
  readonly graph: Graph
  readonly tokens: ConsistencyTokens
  readonly index: EmbeddedIndex
  readonly schema: LiveSchema
  readonly dir: string
  close(): Promise<void>
}

/** Gone when the journal in it is closed: a folder of the test's own may be gone before. */
export function folder(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-graph-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

export async function openJournal(dir: string) {
  return openEmbeddedJournal({
    dir,
    shards: 2,
    log: silent,
    random: (bytes) => void randomFillSync(bytes),
    clock: Date.now,
    onFatal: (error) => {
      throw error
    },
  })
}

export interface StageOptions {
  readonly types?: readonly NodeType[]
  /** Module of the actor types; notebooks by default. */
  readonly table?: string
  /** Stores of other actor types on the same journal, in other shards. */
  readonly others?: readonly FeedStore[]
}

export async function open(
  t: Test,
  dir: string,
  store: FeedStore,
  options: StageOptions = {},
): Promise<Embedded> {
  const { journal } = store
  const {
    types = behaviours().flatMap(({ nodeTypes }) => nodeTypes),
    table = notebooks,
    others = [],
  } = options
  const { access } = journal as EmbeddedJournal
  const clock = systemClock()
  const schema = new LiveSchema(types)
  const index = new EmbeddedIndex({
    journal: access,
    table,
    shards: 2,
    schema,
    generation: journal.identity.generation,
    clock,
    log: { ...silent, error: (fields, text) => t.comment(text, fields) },
    heads: [store, ...others].flatMap(({ heads }) =>
      Array.from(heads, ([shard, offset]) => ({ shard, offset })),
    ),
    writeRows: async (shard, rows) => {
      const owner = [store, ...others].find(({ heads }) => heads.has(shard))!
      await journal.derived.write(shard, await owner.epoch(shard), rows)
    },
    flushed: async (shard) => (await journal.derived.consumer(shard, 'flush')) ?? 0,
  })
  const reader = new ReaderPool({
    clock,
    threads: 2,
    startThread: (stats, onChange) =>
      new ReaderThread(
        { journal: access, table, clock, log: silent, read: () => index.read },
        stats,
        onChange,
      ),
  })
  index.onMoved(() => reader.follow())
  const tokens = consistencyTokens(journal.identity)
  const graph = new Graph({
    filterFields: 'any',
    schema,
    served: () => index.read.version,
    runner: reader,
    index: index.watch,
    tokens,
    cursors: cursorSeal(journal.identity.secret),
    nowMs: () => clock.nowMs(),
    monotonicMs: () => clock.monotonicMs(),
  })
  const close = async (): Promise<void> => {
    await reader.close()
    await index.close()
  }
  t.teardown(close)
  await index.opened()
  return { store, graph, tokens, index, schema, dir, close }
}

export async function ask(e: Embedded, body: unknown, token = ''): Promise<unknown> {
  const caller = { group: 'client/a', name: 's' }
  const request = { body, text: null, acl: OWNER_ACL, caller, consistency: token, budgetMs: 30_000 }
  return JSON.parse((await e.graph.run(request)).json)
}

export async function until(isSo: () => boolean): Promise<void> {
  const endsAtMs = performance.now() + 30_000
  while (!isSo()) {
    if (performance.now() > endsAtMs) throw new Error('it never came')
    await new Promise((resolve) => setImmediate(resolve))
  }
}

export async function ready(e: Embedded): Promise<void> {
  await until(() => e.index.watch.unready() === null)
}
