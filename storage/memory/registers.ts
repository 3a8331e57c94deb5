// Derived rows in memory: registers that only move forward by offset. Source: PROTOCOL 3.0 (USING
// TIMESTAMP <offset>).

import { LIMITS } from '../../config/limits.ts'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import type { AliasRow, DerivedRow, EntryRange, EntryRow } from '../journal.ts'
import { expiryOf } from '../row-expiry.ts'

interface Register<T> {
  readonly offset: number
  readonly value: T
  /** Of a row that may go. */
  readonly expiry?: Expiry
  /** Of an entry: it goes with all before it. */
  readonly isEnd?: true
}

interface Expiry {
  readonly shard: number
  /** The shard's clock from which it counts; null: from the next time that the clock is told. */
  from: number | null
}

type Bytes = Uint8Array

/** One place for a value: an older one by offset changes nothing. */
function advance<K, T>(map: Map<K, Register<T>>, key: K, next: Register<T>): void {
  const there = map.get(key)
  if (there === undefined || there.offset <= next.offset) map.set(key, next)
}

/** The map of a key, made by the first write. */
function inner<K, T>(map: Map<K, T>, key: K, make: () => T): T {
  let found = map.get(key)
  if (found === undefined) map.set(key, (found = make()))
  return found
}

export class MemoryRegisters {
  readonly #entries = new Map<string, Map<number, Register<Bytes>>>()
  readonly #aliases = new Map<string, Register<string>>()
  readonly #snapshots = new Map<string, Register<Bytes>>()
  readonly #marks = new Map<string, Register<Bytes>>()
  readonly #shards = new Map<number, Register<Bytes>>()
  readonly #consumers = new Map<string, Register<null>>()
  readonly #parked = new Map<string, Map<string, Register<Bytes | null>>>()
  readonly #images = new Map<number, Map<number, Bytes>>()
  /** Actors with entries, sorted; null when it must be made again. */
  #sorted: string[] | null = null

  put(shard: number, row: DerivedRow): void {
    const { offset } = row
    const expiry = expiryOf(row)
    const of = expiry === null ? { offset } : { offset, expiry: { shard, ...expiry } }
    switch (row.kind) {
      case 'entry': {
        if (!this.#entries.has(row.actorId)) this.#sorted = null
        const entries = inner(this.#entries, row.actorId, () => new Map())
        const end = row.passesFrom === undefined ? null : ({ isEnd: true } as const)
        return advance(entries, row.n, { ...of, ...end, value: Buffer.from(row.body) })
      }
      case 'alias': {
        // As text: what is kept is what JSON keeps, as in every other driver.
        const key = `${row.row.keyType}\0${row.row.key}`
        return advance(this.#aliases, key, { ...of, value: JSON.stringify(row.row) })
      }
      case 'snapshot':
        return advance(this.#snapshots, row.actorId, { ...of, value: Buffer.from(row.body) })
      case 'mark': {
        const key = `${row.actorId}\0${row.day}\0${row.messageId}`
        return advance(this.#marks, key, { ...of, value: Buffer.from(row.body) })
      }
      case 'shard':
        return advance(this.#shards, shard, { ...of, value: Buffer.from(row.body) })
      case 'consumer':
        return advance(this.#consumers, `${shard}\0${row.consumer}`, { ...of, value: null })
      case 'parked': {
        const parked = inner(this.#parked, `${shard}\0${row.consumer}`, () => new Map())
        const value = row.body === null ? null : Buffer.from(row.body)
        return advance(parked, row.actorId, { ...of, value })
      }
      case 'image': {
        const parts = inner(this.#images, offset, () => new Map<number, Bytes>())
        parts.set(row.part, Buffer.from(row.body))
      }
    }
  }

  /** Forgets passing rows whose time is over by their shard's clock. */
  expire(clockOf: (shard: number) => number | null): void {
    dropOver(this.#aliases, clockOf)
    dropOver(this.#marks, clockOf)
    for (const parked of this.#parked.values()) dropOver(parked, clockOf)
    dropOver(this.#snapshots, clockOf)
    for (const [actorId, entries] of this.#entries) {
      this.#forget(actorId, clockOf)
      dropOver(entries, clockOf)
      if (entries.size > 0) continue
      this.#entries.delete(actorId)
      this.#sorted = null
    }
  }

  /** An actor's end goes with all that was before it. */
  #forget(actorId: string, clockOf: (shard: number) => number | null): void {
    const entries = this.#entries.get(actorId)!
    for (const [end, { isEnd, expiry, offset }] of entries) {
      if (!isEnd || !isOver(expiry!, clockOf)) continue
      for (const n of entries.keys()) if (n <= end) entries.delete(n)
      const snapshot = this.#snapshots.get(actorId)
      if (snapshot !== undefined && snapshot.offset <= offset) this.#snapshots.delete(actorId)
    }
  }

  alias(keyType: string, key: string): AliasRow | null {
    const found = this.#aliases.get(`${keyType}\0${key}`)
    return found === undefined ? null : (JSON.parse(found.value) as AliasRow)
  }

  snapshot(actorId: string): { offset: number; body: Bytes } | null {
    return valueOf(this.#snapshots.get(actorId))
  }

  shard(shard: number): { offset: number; body: Bytes } | null {
    return valueOf(this.#shards.get(shard))
  }

  mark(actorId: string, day: number, messageId: string): Bytes | null {
    return this.#marks.get(`${actorId}\0${day}\0${messageId}`)?.value ?? null
  }

  consumer(shard: number, consumer: string): number | null {
    return this.#consumers.get(`${shard}\0${consumer}`)?.offset ?? null
  }

  parked(shard: number, consumer: string): readonly { actorId: string; body: Bytes }[] {
    const found: { actorId: string; body: Bytes }[] = []
    for (const [actorId, { value }] of this.#parked.get(`${shard}\0${consumer}`) ?? []) {
      if (value !== null) found.push({ actorId, body: value })
    }
    return found.sort((a, b) => (a.actorId < b.actorId ? -1 : 1))
  }

  entries(actorId: string, range: EntryRange): readonly EntryRow[] {
    const all: EntryRow[] = []
    for (const [n, { offset, value }] of this.#entries.get(actorId) ?? []) {
      all.push({ n, offset, body: value })
    }
    const isDescending = range.order === 'descending'
    all.sort((a, b) => (isDescending ? b.n - a.n : a.n - b.n))
    const found: EntryRow[] = []
    let bytes = 0
    for (const row of all) {
      if (isDescending ? row.n >= range.before : row.n <= range.after) continue
      if (isDescending && found.length >= range.countMax) break
      bytes += row.body.length
      if (found.length > 0 && bytes > range.bytesMax) break
      found.push(row)
    }
    return found
  }

  actors(after: string | null, limit: number): readonly string[] {
    this.#sorted ??= [...this.#entries.keys()].sort()
    const from = after === null ? 0 : this.#sorted.findIndex((id) => id > after)
    return from < 0 ? [] : this.#sorted.slice(from, from + limit)
  }

  image(): { offset: number; parts: readonly Bytes[] } | null {
    const offset = this.#wholeImages()[0]
    if (offset === undefined) return null
    const parts = [...this.#images.get(offset)!].sort((a, b) => a[0] - b[0])
    return { offset, parts: parts.map(([, body]) => body) }
  }

  trimImages(): void {
    const oldestKept = this.#wholeImages()[1]
    if (oldestKept === undefined) return
    for (const offset of this.#images.keys()) if (offset < oldestKept) this.#images.delete(offset)
  }

  /** Offsets of which there are parts of images, rising. */
  imageOffsets(): number[] {
    return [...this.#images.keys()].sort((a, b) => a - b)
  }

  /** Offsets of the images that are whole, newest first. */
  #wholeImages(): number[] {
    const upTo = this.consumer(SYSTEM_SHARD, 'image') ?? 0
    return [...this.#images.keys()].filter((offset) => offset <= upTo).sort((a, b) => b - a)
  }
}

function dropOver<K, T>(map: Map<K, Register<T>>, clockOf: (shard: number) => number | null): void {
  for (const [key, { expiry, isEnd }] of map) {
    if (expiry !== undefined && !isEnd && isOver(expiry, clockOf)) map.delete(key)
  }
}

function isOver(expiry: Expiry, clockOf: (shard: number) => number | null): boolean {
  const clock = clockOf(expiry.shard)
  if (clock === null) return false
  expiry.from ??= clock
  return clock - expiry.from >= LIMITS.storage.derivedTtlSeconds * 1_000
}

function valueOf(register: Register<Bytes> | undefined): { offset: number; body: Bytes } | null {
  return register === undefined ? null : { offset: register.offset, body: register.value }
}
