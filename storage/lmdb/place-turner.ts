// The places of the data file turned from files of the log to the one that stands for them. First
// the groups' table, by which what is written meanwhile finds its places, then the entries', a
// bounded part a transaction. All of it can be done again. Source: PROTOCOL 3.16.

import { crc32 } from 'node:zlib'
import { LIMITS } from '../../config/limits.ts'
import { decodeEntry, splitEntries } from '../../protocol/entry/entry.ts'
import type { Disk } from '../segment-log/disk.ts'
import { LogFollower, type FrameParts } from '../segment-log/follower.ts'
import type { GroupPart, Place } from '../segment-log/frame.ts'
import { numberOf, roundOf, segmentDamage, type Header } from '../segment-log/header.ts'
import type { PlaceReader } from '../segment-log/place-reader.ts'
import type { PlaceKeeper } from '../segment-log/replace.ts'
import type { LogPosition } from '../segment-log/scan.ts'
import { Arena } from './arena.ts'
import { getUpkeep, upkeepRow } from './covered.ts'
import type { JournalEnvironment } from './environment.ts'
import { getEnded } from './ended.ts'
import type { Changes } from './expiry.ts'
import { contentOf, ENTRY_KEY_BYTES, ENTRY_PLACE, PLACE_BYTES, putPlace } from './layout.ts'
import { derivedOffset, derivedShard, entryKey, isWhole, logKey } from './layout.ts'
import { readGroup, uuidKey } from './layout.ts'
import { encodeDerived, encodeGroup } from './rows.ts'
import type { JournalWriter } from './writer.ts'

export interface TurnerOptions {
  readonly env: JournalEnvironment
  readonly disk: Disk
  /** Of the log. */
  readonly generation: string
  readonly places: PlaceReader
  readonly writer: Pick<JournalWriter, 'change'>
  /** Asked before so many bytes of the log are read. */
  readonly throttle: (bytes: number) => Promise<void>
}

/** The disk has no room for it now, or the journal is being closed. */
export class NoRoomToTurn extends Error {}

export class PlaceTurner implements PlaceKeeper {
  readonly #options: TurnerOptions

  constructor(options: TurnerOptions) {
    this.#options = options
  }

  isTurned({ key }: Header): boolean {
    const { env } = this.#options
    env.root.resetReadTxn()
    return getUpkeep(env, numberOf(key.file)).turned >= roundOf(key.file)
  }

  async turn(header: Header): Promise<void> {
    const { places } = this.#options
    const { sources, end } = header.rewritten!
    const all = { file: header.key.file, position: end }
    await this.#eachFrame(all, (groups) => this.#turnGroups(groups))
    for (const source of sources) {
      await this.#eachFrame(source, (groups, body) => this.#turnEntries(groups, body))
    }
    const { turned: _, ...upkeep } = getUpkeep(this.#options.env, numberOf(header.key.file))
    const turned = roundOf(header.key.file)
    const row = upkeepRow(numberOf(header.key.file), { ...upkeep, turned })
    await this.#change(() => ({ notes: [], rows: [{ table: this.#options.env.meta, ...row }] }))
    for (const { file } of sources) places.forget(file)
  }

  async #eachFrame(
    until: LogPosition,
    use: (groups: readonly GroupPart[], body: FrameParts['body']) => Promise<void>,
  ): Promise<void> {
    const { disk, generation, throttle } = this.#options
    const from = { file: until.file, position: 0 }
    const follower = new LogFollower(disk, { generation, from })
    try {
      for (const { parts, body } of follower.to(until)) {
        const groups = parts.filter((part) => part.kind === 'group')
        await throttle(groups.reduce((sum, { place }) => sum + place.length, 0))
        await use(groups, body)
      }
    } finally {
      follower.close()
    }
  }

  async #turnGroups(groups: readonly GroupPart[]): Promise<void> {
    for (let at = 0; at < groups.length; at += LIMITS.lmdb.turnRowsMax) {
      const some = groups.slice(at, at + LIMITS.lmdb.turnRowsMax)
      await this.#change(() => ({ notes: [], rows: some.flatMap((one) => this.#groupRows(one)) }))
    }
  }

  /** Its own row, and away with those of groups that it covers. */
  #groupRows(group: GroupPart): Changes['rows'][number][] {
    const { env } = this.#options
    const { shard, head, count } = group
    const offset = head + count
    const rows: Changes['rows'][number][] = []
    const covered = { start: logKey(shard, head + 1), end: logKey(shard, offset) }
    for (const key of env.log.getKeys(covered)) rows.push({ table: env.log, key })
    const row = encodeGroup(new Arena(256), { ...group, offset, begins: null })
    return [...rows, { table: env.log, ...row }]
  }

  async #turnEntries(groups: readonly GroupPart[], body: FrameParts['body']): Promise<void> {
    let rows: Changes['rows'][number][] = []
    const found = groups.flatMap((group) => {
      return entriesIn(group, body(group.place)).map((entry) => ({ ...entry, group }))
    })
    for (let at = 0; at < found.length; at += LIMITS.lmdb.turnRowsMax) {
      const some = found.slice(at, at + LIMITS.lmdb.turnRowsMax)
      await this.#change(() => {
        rows = some.flatMap(({ group, ...entry }) => this.#entryRow(group, entry))
        return rows.length === 0 ? null : { notes: [], rows }
      })
    }
  }

  /** Nothing where there is no row of it that has its place in the source. */
  #entryRow(group: GroupPart, { offset, bytes }: Logged): Changes['rows'][number][] {
    const { env } = this.#options
    const { shard, place: old } = group
    const { p: actorId, n } = decodeEntry(bytes)
    if (n === 0) return []
    const key = entryKey(actorId, n)
    const value = env.entries.get(key)
    if (value === undefined || !isWhole(key, value)) return []
    if (derivedOffset(value) !== offset || derivedShard(value) !== shard) return []
    const content = contentOf(value)
    if (!('file' in content) || content.file !== old.file) return []
    const place = this.#placeOf(group, { offset, bytes })
    if (place === null) {
      return [{ table: env.entries, key }, ...this.#endRows({ actorId, shard, offset })]
    }
    const body = Buffer.alloc(1 + PLACE_BYTES)
    body[0] = ENTRY_PLACE
    putPlace(body, 1, place)
    const row = encodeDerived(new Arena(ENTRY_ROW_BYTES), key, { shard, offset }, body)
    return [{ table: env.entries, ...row }]
  }

  /** With the entry by which an actor has ended goes what else there was of it. */
  #endRows(of: { actorId: string; shard: number; offset: number }): Changes['rows'][number][] {
    const { env } = this.#options
    const key = uuidKey(of.actorId)
    const ended = getEnded(env, key)
    if (ended?.shard !== of.shard || ended.offset !== of.offset) return []
    const snapshot = env.snapshots.get(key)
    const hasOlder = snapshot !== undefined && derivedOffset(snapshot) <= of.offset
    return [{ table: env.ended!, key }, ...(hasOlder ? [{ table: env.snapshots, key }] : [])]
  }

  /** Where an entry lies now; null: it is gone. Throws JournalDamage where it isn't the same. */
  #placeOf({ shard }: GroupPart, { offset, bytes }: Logged): Place | null {
    const { env, disk } = this.#options
    for (const { key, value } of env.log.getRange({ start: logKey(shard, offset), limit: 1 })) {
      const { place, count, offset: last } = readGroup(value)
      if (!isWhole(key, value) || last - count >= offset) break
      if (place.length === 0) return null
      const own = this.#bodiesAt(place, count)[offset - (last - count) - 1]!
      if (own.length === 0) return null
      if (!own.equals(bytes)) break
      const position = place.position + own.byteOffset - this.#body!.bytes.byteOffset
      return { file: place.file, position, length: own.length, crc: crc32(own) }
    }
    const what = `shard ${shard}, offset ${offset}: what a file was rewritten to is another entry`
    throw segmentDamage(disk, { file: 0, position: 0, what, shard, offset })
  }

  #body: { readonly place: Place; readonly bytes: Buffer; readonly entries: Buffer[] } | null = null

  /** Entries of one group are asked for one after the other. */
  #bodiesAt(place: Place, count: number): Buffer[] {
    const known = this.#body
    const isKnown = known?.place.file === place.file && known.place.position === place.position
    if (isKnown) return known.entries
    const bytes = this.#options.places.read(place)
    const entries = splitEntries(bytes)
    if (entries.length !== count) entries.length = 0
    this.#body = { place, bytes, entries }
    return entries
  }

  async #change(find: () => Changes | null): Promise<void> {
    const { env, writer } = this.#options
    const changed = await writer.change(() => {
      env.root.resetReadTxn()
      const found = find()
      return found === null || found.rows.length === 0 ? NO_CHANGES : found
    })
    if (changed !== 'changed') throw new NoRoomToTurn()
  }
}

const NO_CHANGES: Changes = { notes: [], rows: [] }
const ENTRY_ROW_BYTES = ENTRY_KEY_BYTES + 64

interface Logged {
  readonly offset: number
  readonly bytes: Buffer
}

/** Those that are there; a body that isn't made of entries has none. */
function entriesIn({ head, count }: GroupPart, body: Buffer): Logged[] {
  if (body.length === 0) return []
  let entries: Buffer[] = []
  try {
    entries = splitEntries(body)
  } catch {
    return []
  }
  if (entries.length !== count) return []
  const logged = entries.map((bytes, i) => ({ offset: head + 1 + i, bytes }))
  return logged.filter(({ bytes }) => bytes.length > 0)
}
