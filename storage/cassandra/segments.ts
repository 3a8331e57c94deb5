// The segments port in Cassandra: a partition a segment, its statics change by conditional
// statements alone, a group is one conditional batch with its row. Source: PROTOCOL 3.0 `log`, 3.1,
// 3.5.

import { LIMITS } from '../../config/limits.ts'
import { assert } from '../../protocol/errors.ts'
import type { Outcome } from '../control.ts'
import type { Group, LogRow } from '../journal.ts'
import type { SegmentId, SegmentStatics, SegmentStore } from '../segments.ts'
import { readBytes } from './session/pages.ts'
import { decodeBlob, encodeBlob } from './derived/rows.ts'
import type { Row, Session } from './session/session.ts'

export class CassandraSegments implements SegmentStore {
  readonly appendsMax = LIMITS.cassandra.appendsInFlightMax
  readonly #session: Session
  readonly #table: string

  constructor(session: Session, keyspace: string) {
    this.#session = session
    this.#table = `${keyspace}.log`
  }

  async statics({ shard, segment }: SegmentId): Promise<SegmentStatics | null> {
    // DISTINCT reads the statics alone, never the markers of rows that were trimmed.
    const [row] = await this.#session.readSerial(
      `SELECT DISTINCT shard, segment, epoch, base, head, last_commit, sealed FROM ${this.#table}
       WHERE shard = ? AND segment = ?`,
      [shard, segment],
    )
    return row === undefined || row['epoch'] === null ? null : staticsOf(row)
  }

  open(
    { shard, segment }: SegmentId,
    first: { readonly epoch: number; readonly head: number },
  ): Promise<Outcome> {
    return this.#session.conditional(
      `INSERT INTO ${this.#table} (shard, segment, epoch, base, head, sealed)
       VALUES (?, ?, ?, ?, ?, false) IF NOT EXISTS`,
      [shard, segment, first.epoch, first.head, first.head],
    )
  }

  fence({ shard, segment }: SegmentId, epoch: number): Promise<Outcome> {
    return this.#session.conditional(
      `UPDATE ${this.#table} SET epoch = ? WHERE shard = ? AND segment = ? IF epoch < ?`,
      [epoch, shard, segment, epoch],
    )
  }

  seal(
    { shard, segment }: SegmentId,
    where: { readonly epoch: number; readonly head: number },
  ): Promise<Outcome> {
    return this.#session.conditional(
      `UPDATE ${this.#table} SET sealed = true WHERE shard = ? AND segment = ?
       IF epoch = ? AND head = ? AND sealed = false`,
      [shard, segment, where.epoch, where.head],
    )
  }

  append(segment: number, group: Group): Promise<Outcome> {
    const { shard, epoch, head, count, commitId, body } = group
    assert(count > 0, 'a group has entries')
    const offset = head + count
    return this.#session.conditionalBatch([
      {
        query: `UPDATE ${this.#table} SET head = ?, last_commit = ?
                WHERE shard = ? AND segment = ? IF epoch = ? AND head = ? AND sealed = false`,
        params: [offset, commitId, shard, segment, epoch, head],
      },
      {
        query: `INSERT INTO ${this.#table} (shard, segment, off, commit_id, n, body)
                VALUES (?, ?, ?, ?, ?, ?)`,
        params: [shard, segment, offset, commitId, count, encodeBlob(epoch, body)],
      },
    ])
  }

  async rows(
    of: SegmentId,
    range: { readonly after: number; readonly bytesMax: number; readonly serial?: boolean },
  ): Promise<readonly LogRow[]> {
    // A serial read of the partition brings an append that hangs half way to its end.
    if (range.serial === true) await this.statics(of)
    const { shard, segment } = of
    const { rows } = await readBytes(this.#session, {
      query: `SELECT off, commit_id, n, body FROM ${this.#table}
              WHERE shard = ? AND segment = ? AND off > ?`,
      params: [shard, segment, range.after],
      bytesMax: range.bytesMax,
    })
    return rows.map((row) => logRowOf(shard, row))
  }

  async dropRows({ shard, segment }: SegmentId, upTo: number): Promise<void> {
    // The coordinator's clock stamps it: these offsets are never written again.
    await this.#session.put([
      {
        query: `DELETE FROM ${this.#table} WHERE shard = ? AND segment = ? AND off <= ?`,
        params: [shard, segment, upTo],
      },
    ])
  }
}

function staticsOf(row: Row): SegmentStatics {
  const lastCommit = row['last_commit'] as { toString(): string } | null
  return {
    epoch: Number(row['epoch']),
    base: Number(row['base']),
    head: Number(row['head']),
    lastCommit: lastCommit?.toString() ?? null,
    sealed: row['sealed'] as boolean,
  }
}

function logRowOf(shard: number, row: Row): LogRow {
  const offset = Number(row['off'])
  const where = (): string => `shard ${shard}, offset ${offset}`
  const { number, content } = decodeBlob(row['body'] as Buffer, where)
  return {
    shard,
    epoch: number,
    offset,
    count: row['n'] as number,
    commitId: String(row['commit_id']),
    body: content,
  }
}
