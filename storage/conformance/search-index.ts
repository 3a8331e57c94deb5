// What the suites of graph indexes share: the index under test, its schema and history, and how a
// body is asked.

import { LIMITS } from '../../config/limits.ts'
import type { CursorSeal } from '../../protocol/graph/cursor.ts'
import { FULL_ACCESS } from '../../protocol/graph/planning.ts'
import { planNavigations } from '../../protocol/graph/navigation.ts'
import type { HistorySource } from '../../protocol/graph/history.ts'
import type { GraphPlan } from '../../protocol/graph/plan.ts'
import type { GraphSchema } from '../../protocol/graph/schema.ts'
import type { Test } from 'tap'
import type { Maybe } from '../journal.ts'
import type { GraphReader, GraphWriter, IndexWrite } from '../search.ts'
import { NOW } from './search-terms.ts'
import { SCHEMA, visitsOf, type Doc } from './search-nodes.ts'

export interface IndexUnderTest {
  readonly writer: GraphWriter
  readonly reader: GraphReader
  /** Closes both and opens them again; null when the driver keeps nothing. */
  readonly reopen: ((schema: GraphSchema) => Maybe<IndexUnderTest>) | null
  /** Random runs of the property, where a server makes each dear; many by default. */
  readonly runs?: number
}

export interface IndexOptions {
  readonly schema: GraphSchema
  readonly history: HistorySource
  /** Monotonic milliseconds of the reader. */
  readonly now: () => number
  readonly cursors: CursorSeal
}

/** Makes an empty index; ends it with `t.teardown`. */
export type MakeIndex = (t: Test, options: IndexOptions) => Maybe<IndexUnderTest>

export const HISTORY: HistorySource = {
  *read(actorId, node) {
    for (const doc of visitsOf(actorId).toReversed()) {
      yield { node, id: String(doc['visitId']), doc }
    }
  },
}

/** Cursors that can be read. */
export const CURSORS: CursorSeal = {
  seal: (text, of) => Buffer.from(`${of}\n${text}`).toString('base64url'),
  open(cursor, of) {
    const lines = Buffer.from(cursor, 'base64url').toString().split('\n')
    return lines.length === 2 && lines[0] === of ? lines[1]! : null
  },
}

export const OPTIONS: IndexOptions = {
  schema: SCHEMA,
  history: HISTORY,
  now: () => 0,
  cursors: CURSORS,
}
const BUDGET_MS = 1_000_000
/** Real engines may be slow, and the machine busy. */
export const TIMEOUT_MS = 240_000
export function planOf(body: unknown, schema = SCHEMA, access = FULL_ACCESS): GraphPlan {
  const options = { nowMs: NOW, limits: LIMITS.graph, cursors: CURSORS }
  return planNavigations(body, schema, access, options)
}

export async function ask(
  reader: GraphReader,
  body: unknown,
  access = FULL_ACCESS,
): Promise<Record<string, unknown>> {
  return { ...(await reader.query(planOf(body, SCHEMA, access), BUDGET_MS)) }
}

export function library(actorId: string, version: number, doc: Doc | null = {}): IndexWrite {
  const full = doc && { libraryId: actorId, ...doc }
  return { node: 'library', actorId, id: actorId, version, doc: full }
}

export function shelf(
  actorId: string,
  id: string,
  version: number,
  doc: Doc | null = {},
): IndexWrite {
  const full = doc && { libraryId: actorId, shelfId: id, ...doc }
  return { node: 'shelf', actorId, id, version, doc: full }
}
