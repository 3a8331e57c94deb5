// What a long load leaves in the engines: Cassandra's files, and tombstones that its reads pass;
// Redis' memory; Elasticsearch's segments and deleted documents.

import { readdirSync } from 'node:fs'
import { createConnection } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { Client } from 'cassandra-driver'
import type { EnginePorts } from './engines.ts'

export interface EngineReading {
  readonly atSeconds: number
  /** Data files of the store, and their size as Cassandra says it. */
  readonly cassandraFiles: number
  readonly cassandraMiB: number
  /** Tombstones that a read of the worst table passed, in 99 of 100 reads and at most. */
  readonly tombstonesP99: number
  readonly tombstonesMax: number
  readonly redisMiB: number
  readonly elasticSegments: number
  readonly elasticDocs: number
  readonly elasticDeleted: number
  readonly elasticMiB: number
}

export interface WatchedStore {
  readonly ports: EnginePorts
  /** Folder of the engines' data. */
  readonly dir: string
  /** Keyspace, and prefix of the indexes. */
  readonly store: string
}

const MIB = 1024 ** 2
const TIMEOUT_MS = 10_000
const DATA_FILE = /-Data\.db$/

export class EngineWatch {
  readonly readings: EngineReading[] = []
  readonly #of: WatchedStore
  readonly #cassandra: Client
  readonly #end = new AbortController()
  #watching: Promise<void> = Promise.resolve()

  constructor(of: WatchedStore) {
    this.#of = of
    this.#cassandra = new Client({
      contactPoints: [`127.0.0.1:${of.ports.cassandra}`],
      localDataCenter: 'datacenter1',
    })
  }

  /** One reading now, and then one each so many seconds. */
  start(everySeconds: number): void {
    this.#watching = this.#watch(everySeconds * 1_000)
  }

  async #watch(everyMs: number): Promise<void> {
    const began = performance.now()
    const { signal } = this.#end
    while (!signal.aborted) {
      this.readings.push(await this.#read((performance.now() - began) / 1_000))
      await delay(everyMs, undefined, { signal }).catch(() => {})
    }
  }

  /** Rejects when an engine could not be read. */
  async stop(): Promise<void> {
    this.#end.abort()
    try {
      await this.#watching
    } finally {
      await this.#cassandra.shutdown()
    }
  }

  async #read(atSeconds: number): Promise<EngineReading> {
    const [disk, worst, redisMiB, elastic] = await Promise.all([
      this.#disk(),
      this.#tombstones(),
      redisMemory(this.#of.ports.redis),
      this.#elastic(),
    ])
    return { atSeconds, ...disk, ...worst, redisMiB, ...elastic }
  }

  async #disk(): Promise<Pick<EngineReading, 'cassandraFiles' | 'cassandraMiB'>> {
    const { dir, store } = this.#of
    const names = readdirSync(dir, { recursive: true, encoding: 'utf8' })
    const files = names.filter((name) => name.includes(`/${store}/`) && DATA_FILE.test(name))
    const rows = await this.#rows('SELECT * FROM system_views.disk_usage')
    const cassandraMiB = rows.reduce((sum, row) => sum + Number(row['mebibytes']), 0)
    return { cassandraFiles: files.length, cassandraMiB }
  }

  /** Cassandra forgets reads of a few minutes ago: the figures are of the newest. */
  async #tombstones(): Promise<Pick<EngineReading, 'tombstonesP99' | 'tombstonesMax'>> {
    const rows = await this.#rows('SELECT * FROM system_views.tombstones_per_read')
    const most = (column: string): number => Math.max(0, ...rows.map((row) => Number(row[column])))
    return { tombstonesP99: most('p99th'), tombstonesMax: most('max') }
  }

  async #rows(query: string): Promise<readonly { readonly [column: string]: unknown }[]> {
    const { rows } = await this.#cassandra.execute(query)
    return rows.filter((row) => row['keyspace_name'] === this.#of.store)
  }

  async #elastic(): Promise<
    Pick<EngineReading, 'elasticSegments' | 'elasticDocs' | 'elasticDeleted' | 'elasticMiB'>
  > {
    const { ports, store } = this.#of
    const url = `http://127.0.0.1:${ports.elasticsearch}/${store}-*/_stats/segments,docs,store`
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) })
    if (!response.ok) throw new Error(`Elasticsearch: ${response.status}`)
    const { _all: all } = (await response.json()) as {
      _all: {
        primaries: {
          segments?: { count: number }
          docs?: { count: number; deleted: number }
          store?: { size_in_bytes: number }
        }
      }
    }
    const { segments, docs, store: size } = all.primaries
    return {
      elasticSegments: segments?.count ?? 0,
      elasticDocs: docs?.count ?? 0,
      elasticDeleted: docs?.deleted ?? 0,
      elasticMiB: (size?.size_in_bytes ?? 0) / MIB,
    }
  }
}

/** MiB that Redis holds, by its INFO. */
function redisMemory(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: '127.0.0.1', timeout: TIMEOUT_MS })
    let text = ''
    socket.on('connect', () => socket.write('INFO memory\r\n'))
    socket.on('timeout', () => socket.destroy(new Error('Redis does not answer')))
    socket.on('error', reject)
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString()
      const found = /^used_memory:(\d+)\r\n/m.exec(text)
      if (found === null) return
      socket.destroy()
      resolve(Number(found[1]) / MIB)
    })
  })
}
