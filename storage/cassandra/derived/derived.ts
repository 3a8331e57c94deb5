// The derived port in Cassandra: registers that move forward by offset, whoever writes late.
// Nothing here can fence an older owner; its rows lose by their timestamps. Source: PROTOCOL 3.0,
// 3.12.

import type { AppendOutcome, DerivedRow, DerivedStore, StoreIdentity } from '../../journal.ts'
import { CassandraDerivedReader } from './reader.ts'
import { stagesOf } from './statements.ts'
import type { Session, Statement } from '../session/session.ts'
import { WriteOrder } from './write-order.ts'

export class CassandraDerived extends CassandraDerivedReader implements DerivedStore {
  readonly #order: WriteOrder

  constructor(
    session: Session,
    keyspace: string,
    options: { readonly identity: StoreIdentity; readonly now: () => number },
  ) {
    super(session, keyspace, options.identity)
    const keepsRejections = (options.identity.losses ?? []).length > 0
    this.#order = new WriteOrder({
      now: options.now,
      begin: (shard, rows) => {
        const { bounds } = session
        const place = { keyspace, shard, bounds, keepsRejections }
        const { first, second, aside } = stagesOf(place, rows)
        return {
          first: () => this.#put(first),
          second: () => this.#put(second),
          aside: () => this.#put(aside),
        }
      },
    })
  }

  /**
   * `committed`: these rows are durable, and so is every row written before them for this shard
   * in this epoch but snapshots, which only their own writer hears of. Else `unknown`: the caller
   * writes them again, and what is written meanwhile takes them along.
   */
  async write(shard: number, epoch: number, rows: readonly DerivedRow[]): Promise<AppendOutcome> {
    return (await this.#order.write(shard, epoch, rows)) ? 'committed' : 'unknown'
  }

  async trimImages(): Promise<void> {
    const newest = await this.image()
    if (newest === null) return
    const whole = (await this.imageOffsets()).filter((offset) => offset <= newest.offset)
    const oldestKept = whole.at(-2)
    for (const offset of whole) {
      if (oldestKept === undefined || offset >= oldestKept) return
      // Stamped with the offset: what comes late to this image is gone, too.
      const query = `DELETE FROM ${this.keyspace}.system_image USING TIMESTAMP ? WHERE at = ?`
      await this.session.put([{ query, params: [offset, offset] }])
    }
  }

  /** Writes what waits. */
  settled(): Promise<void> {
    return this.#order.settled()
  }

  async #put(lists: readonly (readonly Statement[])[]): Promise<boolean> {
    const written = lists.map((statements) =>
      this.session.put(statements).then(
        () => true,
        (error: unknown) => {
          if (error instanceof TypeError) throw error
          return false
        },
      ),
    )
    return (await Promise.all(written)).every(Boolean)
  }
}
