// Writing one generation of the graph index of a cluster: documents in bulks, a result for each,
// then the offsets, which are rows of the journal and never move before the results are there. Many
// members write side by side, late ones too: the actor's version decides, never who comes last.
// Source: PROTOCOL 3.13.1-3.

import { LIMITS } from '../../config/limits.ts'
import { assert } from '../../protocol/errors.ts'
import { completing } from '../../protocol/graph/custom-fields.ts'
import type { Position } from '../../protocol/ids.ts'
import {
  type Fill,
  type GraphWriter,
  IndexAway,
  IndexGone,
  type IndexWrite,
  RefusedWrites,
} from '../search.ts'
import { documentId, sourceOf } from './document.ts'
import { type BulkItem, type BulkResult, EngineAway, type SearchEngine } from './engine.ts'
import type { Layout } from './layout.ts'

export interface ElasticWriterOptions {
  readonly engine: SearchEngine
  /** As far as this generation's mappings go. */
  readonly layout: Layout
  /** Node types that are kept as rows, known to this generation or not. */
  readonly rows: ReadonlySet<string>
  /** Alias of exactly one index, by the layout's name of a node type. */
  readonly writeAliasOf: (name: string) => string
  /** Makes the offsets durable; called when all that they stand for is in the index. */
  readonly saveOffsets: (offsets: readonly Position[]) => Promise<void>
  /** The same of fills. */
  readonly saveFills: (fills: readonly Fill[]) => Promise<void>
  /** Wall clock, milliseconds since 1970: the age of removals. */
  readonly nowMs: () => number
  readonly pause: (ms: number) => Promise<void>
  /** Before each bulk. Throws an IndexAway when what it holds may no longer be the newest. */
  readonly beforeBulk: () => void
}

/** An item on its way, and whose it is. */
interface Sent {
  readonly actorId: string
  readonly item: BulkItem
}

export class ElasticWriter implements GraphWriter {
  readonly placed = true
  readonly #options: ElasticWriterOptions
  readonly #complete: (write: IndexWrite) => IndexWrite
  readonly #offsets = new Map<number, number>()
  readonly #fills = new Map<number, Fill>()

  constructor(options: ElasticWriterOptions) {
    this.#options = options
    this.#complete = completing(
      [...options.layout.nodes.values()].flatMap(({ type, embedded }) => [type, ...embedded]),
    )
  }

  async apply(
    writes: readonly IndexWrite[],
    offsets: readonly Position[],
    fills: readonly Fill[] = [],
  ): Promise<void> {
    const refused = new Map<string, string>()
    for (const some of this.#bulks(writes)) await this.#send(some, refused)
    if (refused.size > 0) throw new RefusedWrites(refused)
    if (fills.length > 0) await this.#options.saveFills(fills)
    for (const fill of fills) this.#fills.set(fill.shard, fill)
    if (offsets.length === 0) return
    await this.#options.saveOffsets(offsets)
    for (const { shard, offset } of offsets) {
      this.#offsets.set(shard, offset)
      this.#fills.delete(shard)
    }
  }

  /** Bulks of a bounded size, in the writes' order. */
  *#bulks(writes: readonly IndexWrite[]): Generator<Sent[]> {
    let some: Sent[] = []
    let bytes = 0
    for (const sent of this.#items(writes)) {
      const { item } = sent
      const size = item.write.kind === 'index' ? Buffer.byteLength(item.write.source) : 0
      if (some.length > 0 && bytes + size > LIMITS.elastic.bulkBytesMax) {
        yield some
        some = []
        bytes = 0
      }
      some.push(sent)
      bytes += size
    }
    if (some.length > 0) yield some
  }

  #items(writes: readonly IndexWrite[]): Sent[] {
    const { layout, rows, writeAliasOf, nowMs } = this.#options
    const now = nowMs()
    const items: Sent[] = []
    for (const given of writes) {
      const write = this.#complete(given)
      const { node, actorId, id, version } = write
      assert(rows.has(node), `node type ${node} has no rows in the index`)
      const own = layout.nodes.get(node)
      // A type that another version's index doesn't know comes with the next generation.
      if (own === undefined) continue
      const source = sourceOf(write, own, now)
      const item: BulkItem = {
        index: writeAliasOf(own.name),
        id: documentId(actorId, id),
        write: { kind: 'index', version, source },
      }
      items.push({ actorId, item })
    }
    return items
  }

  /** Sends until every item has a result for good; the engine's "not now" is waited out a while. */
  async #send(all: readonly Sent[], refused: Map<string, string>): Promise<void> {
    let left = all
    let waitMs: number = LIMITS.elastic.busyMs
    for (let attempt = 1; ; attempt++) {
      const results = await this.#bulk(left.map(({ item }) => item))
      const busy: Sent[] = []
      for (const [i, result] of results.entries()) {
        const sent = left[i]!
        if (result === 'busy') busy.push(sent)
        else if (result === 'gone') throw new IndexGone(`there is no ${sent.item.index}`)
        else if (typeof result === 'object') refused.set(sent.actorId, result.refused)
      }
      if (busy.length === 0) return
      if (attempt === LIMITS.elastic.busyAttemptsMax) {
        throw new IndexAway(`it had no room for ${busy.length} documents ${attempt} times`)
      }
      await this.#options.pause(waitMs)
      waitMs = Math.min(waitMs * 2, LIMITS.storage.retryMsMax)
      left = busy
    }
  }

  async #bulk(items: readonly BulkItem[]): Promise<readonly BulkResult[]> {
    this.#options.beforeBulk()
    try {
      return await this.#options.engine.bulk(items, { timeoutMs: LIMITS.elastic.bulkMs })
    } catch (error) {
      if (error instanceof EngineAway) throw new IndexAway(error.message, { cause: error })
      throw error
    }
  }

  /** As far as this writer has brought them. */
  offsets(): ReadonlyMap<number, number> {
    return this.#offsets
  }

  fills(): ReadonlyMap<number, Fill> {
    return this.#fills
  }

  generation(): string | null {
    return null
  }

  reset(): void {
    throw new IndexGone('a generation is never emptied: a new one is filled beside it')
  }

  close(): void {}
}
