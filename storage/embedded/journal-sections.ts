// Groups and derived rows as the writes of one transaction, by shard and epoch, encoded before it
// is begun. It stands between the committer and the bytes of rows. Source: PROTOCOL 3.16.

import type { FillRandom } from '../../protocol/ids.ts'
import type { DerivedRow, Group } from '../journal.ts'
import { lifeOf } from '../row-life.ts'
import { Arena } from './journal-arena.ts'
import type { JournalEnvironment } from './journal-environment.ts'
import { Notes } from './journal-expiry.ts'
import type { Row } from './journal-layout.ts'
import { encodeGroup, encodeHeadOf, encodeRow, type DerivedTableRow } from './journal-rows.ts'
import type { TakenRows } from './journal-waiting.ts'

/** What goes into one transaction for one shard under one epoch. */
export interface Section {
  readonly shard: number
  readonly epoch: number
  readonly groups: Group[]
  readonly taken: TakenRows[]
  readonly encodedGroups: { readonly row: Row; readonly head: Row }[]
  /** By rising offset, so that of two rows of one register the newer is put last. */
  readonly encodedRows: DerivedTableRow[]
  hasEpoch: Promise<boolean> | null
  readonly hasHead: Promise<boolean>[]
}

/** What it made stands in memory that the next call uses again. */
export class Sections {
  readonly #env: JournalEnvironment
  readonly #arena = new Arena()
  readonly notes: Notes

  constructor(env: JournalEnvironment, random: FillRandom) {
    this.#env = env
    const firstN = Buffer.alloc(6)
    random(firstN)
    this.notes = new Notes(this.#arena, env.lives!, firstN.readUIntBE(0, 6))
  }

  /** Of the rows that the last call has made. */
  get bytes(): number {
    return this.#arena.used
  }

  /** Encodes everything: what can throw does so before a transaction is begun. */
  of(groups: readonly Group[], taken: readonly TakenRows[]): Section[] {
    const byPlace = new Map<number, Section>()
    const arena = this.#arena
    arena.reset()
    for (const group of groups) {
      const section = sectionOf(byPlace, group.shard, group.epoch)
      const row = encodeGroup(arena, group)
      section.groups.push(group)
      section.encodedGroups.push({ row, head: encodeHeadOf(arena, group, row) })
    }
    for (const rows of taken) {
      const { taken: all, encodedRows } = sectionOf(byPlace, rows.shard, rows.epoch)
      all.push(rows)
      for (const row of rows.rows) this.#encodeRow(rows.shard, row, encodedRows)
    }
    const sections = [...byPlace.values()]
    for (const { encodedRows } of sections) sortByOffset(encodedRows)
    return sections
  }

  #encodeRow(shard: number, row: DerivedRow, into: DerivedTableRow[]): void {
    const encoded = encodeRow(this.#arena, this.#env, shard, row)
    into.push(encoded)
    const life = lifeOf(row)
    if (life === null) return
    const note = this.notes.encode({ kind: row.kind, shard, life, row: encoded })
    if (note !== null) into.push(note)
  }
}

/** Above every number of a shard. */
const SHARDS_MAX = 2 ** 13

function sectionOf(byPlace: Map<number, Section>, shard: number, epoch: number): Section {
  const place = epoch * SHARDS_MAX + shard + 1
  let section = byPlace.get(place)
  if (section === undefined) {
    section = {
      shard,
      epoch,
      groups: [],
      taken: [],
      encodedGroups: [],
      encodedRows: [],
      hasEpoch: null,
      hasHead: [],
    }
    byPlace.set(place, section)
  }
  return section
}

function sortByOffset(rows: DerivedTableRow[]): void {
  for (let i = 1; i < rows.length; i++) {
    if (rows[i]!.offset >= rows[i - 1]!.offset) continue
    rows.sort((a, b) => a.offset - b.offset)
    return
  }
}
