// The simulated Elasticsearch: the search engine's twin, and the way of a request to it and back. A
// bulk's effect and its answer are two events; items of it may be told "not now" one by one.
// Source: PROTOCOL 3.13, F18-F20.

import { EngineAway } from '../../../storage/elastic/engine.ts'
import type {
  AliasChange,
  BulkItem,
  BulkResult,
  IndexDefinition,
  IndexInfo,
  RequestBound,
  SearchAnswer,
  SearchEngine,
  SearchRequest,
} from '../../../storage/elastic/engine.ts'
import { MemorySearchEngine } from '../../../storage/memory/search-engine.ts'
import type { Nastiness } from '../nastiness.ts'
import type { Process, Scheduler } from '../scheduler/scheduler.ts'

/** Elasticsearch's own minute, and its own second, so short that runs meet them. */
const GC_DELETES_MS = 300
const REFRESH_MS = 200
const TIMEOUT_MS = 900

export class SearchCluster {
  readonly scheduler: Scheduler
  readonly twin: MemorySearchEngine
  nastiness: Nastiness
  away = false
  /** Takes a bulk over by returning true. */
  onBulk: ((process: Process, land: () => Promise<unknown>) => boolean) | null = null
  /** Items that find the engine busy by all means. */
  isRefused: ((item: BulkItem) => boolean) | null = null

  constructor(scheduler: Scheduler, nastiness: Nastiness) {
    this.scheduler = scheduler
    this.nastiness = nastiness
    const nowMs = (): number => scheduler.nowMs
    this.twin = new MemorySearchEngine({ nowMs, gcDeletesMs: GC_DELETES_MS, refreshMs: REFRESH_MS })
  }

  /** Sends something, and settles when its sender hears of it, or gives it up. */
  call<T>(
    process: Process,
    { text, run, isBulk = false }: { text: string; run: () => Promise<T>; isBulk?: boolean },
  ): Promise<T> {
    const { scheduler, nastiness } = this
    return new Promise((resolve, reject) => {
      const giveUp = process.clock.after(TIMEOUT_MS, () =>
        reject(new EngineAway(`no answer: ${text}`)),
      )
      const is = (chance: number): boolean => scheduler.chance() < chance
      const isLate = isBulk && is(nastiness.indexBusy * 0.3)
      const isUnheard = is(nastiness.indexBusy * 0.2)
      const hear = (settle: () => void): void => {
        if (isLate || isUnheard) return
        const heard = (): void => {
          giveUp()
          settle()
        }
        scheduler.at(scheduler.between(0.3, 5), `answer ${text}`, heard, process)
      }
      const land = (): void => {
        if (this.away) return
        run().then(
          (value) => hear(() => resolve(value)),
          (error: unknown) => hear(() => reject(error)),
        )
      }
      if (isBulk && this.onBulk?.(process, run)) return
      const landsMs = isLate ? scheduler.between(TIMEOUT_MS, 8_000) : scheduler.between(0.3, 8)
      if (!this.away) scheduler.at(landsMs, `lands ${process.name} ${text}`, land)
      else if (is(0.5)) hear(() => reject(new EngineAway('connection refused')))
    })
  }

  /** Writes a bulk; some items of it find the engine busy. */
  async bulk(items: readonly BulkItem[]): Promise<readonly BulkResult[]> {
    const isBusy = items.map(
      (item) =>
        this.scheduler.chance() < this.nastiness.indexBusy * 0.3 || this.isRefused?.(item) === true,
    )
    const done = await this.twin.bulk(items.filter((_, i) => !isBusy[i]))
    let next = 0
    return isBusy.map((busy) => (busy ? 'busy' : done[next++]!))
  }
}

/** The engine of one process. */
export class SearchLink implements SearchEngine {
  readonly #cluster: SearchCluster
  readonly #process: Process

  constructor(cluster: SearchCluster, process: Process) {
    this.#cluster = cluster
    this.#process = process
  }

  bulk(items: readonly BulkItem[], _bound: RequestBound): Promise<readonly BulkResult[]> {
    const text = `bulk of ${items.length} ${items[0]?.id.slice(-12) ?? ''}`
    const run = (): Promise<readonly BulkResult[]> => this.#cluster.bulk(items)
    return this.#cluster.call(this.#process, { text, run, isBulk: true })
  }

  refresh(indexes: readonly string[], _bound: RequestBound): Promise<void> {
    return this.#call('refresh', (twin) => twin.refresh(indexes))
  }

  search(requests: readonly SearchRequest[]): Promise<readonly SearchAnswer[]> {
    return this.#call('search', (twin) => twin.search(requests))
  }

  indexes(prefix: string): Promise<readonly IndexInfo[]> {
    return this.#call('indexes', (twin) => twin.indexes(prefix))
  }

  createIndex(name: string, definition: IndexDefinition): Promise<void> {
    return this.#call(`create index ${name}`, (twin) => twin.createIndex(name, definition))
  }

  deleteIndex(name: string): Promise<void> {
    return this.#call(`delete index ${name}`, (twin) => twin.deleteIndex(name))
  }

  moveAliases(changes: readonly AliasChange[]): Promise<void> {
    return this.#call('move aliases', (twin) => twin.moveAliases(changes))
  }

  async close(): Promise<void> {}

  #call<T>(text: string, run: (twin: MemorySearchEngine) => Promise<T>): Promise<T> {
    return this.#cluster.call(this.#process, { text, run: () => run(this.#cluster.twin) })
  }
}
