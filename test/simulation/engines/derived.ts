// The derived rows as a simulated process has them: the Cassandra driver's own store over a session
// that travels. Rows of one partition are one mutation, each at a time of its own; a mutation that
// is too large is refused for good; pages are read one after the other. Source: PROTOCOL 3.0, 3.1,
// 3.12.

import type { DerivedStore } from '../../../storage/journal.ts'
import { CassandraDerived } from '../../../storage/cassandra/derived/derived.ts'
import type { Page, Row, Session, Statement } from '../../../storage/cassandra/session/session.ts'
import type { Engine } from './engine.ts'
import type { Process } from '../scheduler/scheduler.ts'
import { mutationBytes, nameOf, placeOf } from './tables.ts'
import type { TableRow } from './tables.ts'

const KEYSPACE = 'simulated'

/** The store of derived rows of one process. */
export function derivedOf(engine: Engine, process: Process, shards: number): DerivedStore {
  const session = new TravellingSession(engine, process) as unknown as Session
  const identity = { format: 1, shards, generation: 'simulation', secret: 's' }
  return new CassandraDerived(session, KEYSPACE, {
    identity,
    now: () => process.clock.monotonicMs(),
  })
}

/** What the driver's store needs of its session. */
class TravellingSession implements Pick<Session, 'bounds' | 'put' | 'read' | 'readPage'> {
  readonly bounds = { bytes: 4_096, partitions: 10 }
  readonly #engine: Engine
  readonly #process: Process

  constructor(engine: Engine, process: Process) {
    this.#engine = engine
    this.#process = process
  }

  /** Rejects when one of its mutations may not be there. */
  async put(statements: readonly Statement[]): Promise<void> {
    const mutations = Map.groupBy(statements.map(asSent), (statement) => {
      const { table, partition } = placeOf(statement)
      return `${table} ${partition}`
    })
    const outcomes = await Promise.all([...mutations.values()].map((one) => this.#mutate(one)))
    if (outcomes.includes('unknown')) throw new Error('the engine does not answer: rows')
    if (outcomes.includes('refused')) throw new Error('the engine refuses: mutation too large')
  }

  #mutate(statements: readonly Statement[]): Promise<'applied' | 'refused' | 'unknown'> {
    const { tables, mutationBytesMax } = this.#engine
    const names = statements.map(nameOf)
    const isRefused = mutationBytes(statements) > mutationBytesMax
    return this.#engine.call<'applied' | 'refused' | 'unknown'>({
      process: this.#process,
      text: `put ${names.join(', ')}`,
      unheard: 'unknown',
      evaluate: async () => {
        if (isRefused) return 'refused'
        for (const statement of statements) tables.write(statement)
        return 'applied'
      },
    })
  }

  async read(query: string, params: readonly unknown[], pageRows = 5_000): Promise<readonly Row[]> {
    const all: Row[] = []
    for (let from: string | null = null; ;) {
      const page: Page = await this.readPage(query, params, { rows: pageRows, from })
      all.push(...page.rows)
      if (page.next === null) return all
      from = page.next
    }
  }

  readPage(
    query: string,
    params: readonly unknown[],
    page: { readonly rows: number; readonly from: string | null },
  ): Promise<Page> {
    const statement = { query, params }
    const later = page.from === null ? '' : ` from ${page.from}`
    return this.#engine.call<Page>({
      process: this.#process,
      text: `${nameOf(statement)}${later}`,
      evaluate: async () => pageOf(this.#engine.tables.select(query, params), page),
    })
  }
}

/** Rows behind the last one of the page before; rows may have come and gone meanwhile. */
function pageOf(
  all: readonly TableRow[],
  { rows, from }: { readonly rows: number; readonly from: string | null },
): Page {
  let start = 0
  if (from !== null) {
    const isRising = Number(all[0]?.['n']) <= Number(all.at(-1)?.['n'])
    const isBehind = (n: number): boolean => (isRising ? n > Number(from) : n < Number(from))
    start = all.findIndex((row) => isBehind(Number(row['n'])))
    if (start < 0) start = all.length
  }
  const some = all.slice(start, start + rows) as unknown as readonly Row[]
  const isLast = start + rows >= all.length
  return { rows: some, next: isLast ? null : String(some.at(-1)!['n']) }
}

/** What lands late lands as it was sent. */
function asSent({ query, params }: Statement): Statement {
  return {
    query,
    params: params.map((param) => (param instanceof Uint8Array ? Buffer.from(param) : param)),
  }
}
