// The witness: what was ever applied in the simulated engine, in its order, also what was deleted
// since. The audit of the store (K4) must see more than what is left at the end.

import type { Group, LogRow } from '../../storage/journal.ts'

export interface AppliedRow extends LogRow {
  readonly segment: number
  readonly atMs: number
  /** Name of the process whose statement it was. */
  readonly by: string
}

export class Witness {
  /** Appends that were applied, by shard. */
  readonly rows = new Map<number, AppliedRow[]>()

  appended(segment: number, group: Group, at: { atMs: number; by: string }): void {
    const { shard, epoch, head, count, commitId, body } = group
    let rows = this.rows.get(shard)
    if (!rows) this.rows.set(shard, (rows = []))
    rows.push({
      shard,
      epoch,
      offset: head + count,
      count,
      commitId,
      body: Buffer.from(body),
      segment,
      ...at,
    })
  }
}
