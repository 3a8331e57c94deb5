// The control port in Cassandra: rows of members and shards, changed by conditional statements
// alone, all at one serial level. The tables `member` and `shard`. Source: PROTOCOL 3.0, 3.3, 3.5.

import { assert } from '../../protocol/errors.ts'
import type {
  ControlStore,
  MemberChange,
  MemberCondition,
  MemberRow,
  MemberState,
  Outcome,
  ShardRow,
  WireState,
} from '../control.ts'
import type { Row, Session } from './session/session.ts'

/** Column of each field of a member's row. */
const COLUMNS = {
  incarnation: 'inc',
  state: 'state',
  beat: 'beat',
  address: 'address',
  version: 'version',
  wire: 'wire',
} as const

type MemberField = keyof typeof COLUMNS

export class CassandraControl implements ControlStore {
  readonly #session: Session
  readonly #members: string
  readonly #shards: string

  constructor(session: Session, keyspace: string) {
    this.#session = session
    this.#members = `${keyspace}.member`
    this.#shards = `${keyspace}.shard`
  }

  async members(): Promise<readonly MemberRow[]> {
    const rows = await this.#session.read(`SELECT * FROM ${this.#members}`, [])
    return rows.map(memberOf).sort((a, b) => (a.member < b.member ? -1 : 1))
  }

  async shards(): Promise<readonly ShardRow[]> {
    const rows = await this.#session.read(`SELECT * FROM ${this.#shards}`, [])
    return rows.map(shardOf).sort((a, b) => a.shard - b.shard)
  }

  async member(member: string): Promise<MemberRow | null> {
    const query = `SELECT * FROM ${this.#members} WHERE member = ?`
    const [row] = await this.#session.readSerial(query, [member])
    return row === undefined ? null : memberOf(row)
  }

  async shard(shard: number): Promise<ShardRow> {
    const query = `SELECT * FROM ${this.#shards} WHERE shard = ?`
    const [row] = await this.#session.readSerial(query, [shard])
    assert(row !== undefined, `shard ${shard} is not one of this store`)
    return shardOf(row)
  }

  insertMember(row: MemberRow): Promise<Outcome> {
    const { member, incarnation, state, beat, address, version, wire = null } = row
    return this.#session.conditional(
      `INSERT INTO ${this.#members} (member, inc, state, beat, address, version, wire)
       VALUES (?, ?, ?, ?, ?, ?, ?) IF NOT EXISTS`,
      [member, incarnation, state, beat, address, version, wire],
    )
  }

  async updateMember(member: string, to: MemberChange, where: MemberCondition): Promise<Outcome> {
    const set = fieldsOf(to)
    const conditions = fieldsOf(where)
    assert(set.length > 0, 'a change of a member changes something')
    return this.#session.conditional(
      `UPDATE ${this.#members} SET ${set.map(equals).join(', ')} WHERE member = ?
       IF ${conditions.map(equals).join(' AND ')}`,
      [...set.map(([, value]) => value), member, ...conditions.map(([, value]) => value)],
    )
  }

  updateShard(
    shard: number,
    to: { readonly epoch: number; readonly owner: string; readonly incarnation: string },
    where: { readonly epoch: number; readonly incarnation: string },
  ): Promise<Outcome> {
    return this.#session.conditional(
      `UPDATE ${this.#shards} SET epoch = ?, owner = ?, inc = ? WHERE shard = ?
       IF epoch = ? AND inc = ?`,
      [to.epoch, to.owner, to.incarnation, shard, where.epoch, where.incarnation],
    )
  }

  hintSegment(shard: number, segment: number, where: { readonly epoch: number }): Promise<Outcome> {
    return this.#session.conditional(
      `UPDATE ${this.#shards} SET segment = ? WHERE shard = ? IF epoch = ?`,
      [segment, shard, where.epoch],
    )
  }

  /** A shard that has no row yet gets one: unowned (PROTOCOL 3.0, first start). */
  insertShard(row: ShardRow): Promise<Outcome> {
    const { shard, epoch, owner, incarnation, segment } = row
    return this.#session.conditional(
      `INSERT INTO ${this.#shards} (shard, epoch, owner, inc, segment)
       VALUES (?, ?, ?, ?, ?) IF NOT EXISTS`,
      [shard, epoch, owner, incarnation, segment],
    )
  }
}

/** The fields that are given, with their values, in a fixed order: one statement a combination. */
function fieldsOf(given: MemberChange | MemberCondition): [MemberField, unknown][] {
  const fields = Object.keys(COLUMNS) as MemberField[]
  const values = given as Partial<Record<MemberField, unknown>>
  return fields.flatMap((field): [MemberField, unknown][] =>
    values[field] === undefined ? [] : [[field, values[field]]],
  )
}

function equals([field]: [MemberField, unknown]): string {
  return `${COLUMNS[field]} = ?`
}

function memberOf(row: Row): MemberRow {
  const wire = row['wire'] as WireState | null | undefined
  return {
    member: row['member'] as string,
    incarnation: String(row['inc']),
    state: row['state'] as MemberState,
    beat: Number(row['beat']),
    address: row['address'] as string,
    version: row['version'] as string,
    ...(wire && { wire }),
  }
}

function shardOf(row: Row): ShardRow {
  return {
    shard: row['shard'] as number,
    epoch: Number(row['epoch']),
    owner: row['owner'] as string,
    incarnation: String(row['inc']),
    segment: Number(row['segment']),
  }
}
