// The natural keys of one shard: which actor a key leads to, and how entries change that. Newest
// rows are in memory until they are flushed; below that one point read answers. Source:
// ARCHITECTURE 4.

import { LIMITS } from '../../../config/limits.ts'
import { ReleasingMap } from '../../../protocol/releasing-map.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { EntryHead, KeyChange } from '../../../protocol/entry/entry.ts'
import { CREATE_KEY_SUFFIX } from '../../../storage/journal.ts'
import type { AliasClaim, AliasRow, DerivedStore, Maybe } from '../../../storage/journal.ts'

interface Unflushed {
  readonly row: AliasRow
  readonly offset: number
  /** What it goes on from, while that is not flushed either: entries above may be dropped. */
  before: Unflushed | null
}

export class KeyTable {
  readonly #derived: DerivedStore
  readonly #unflushed = new ReleasingMap<string, Unflushed>()
  /** Flushed rows that a point read asked for earlier may not have seen yet. */
  #lingering: { id: string; offset: number; freeFrom: number }[] = []
  readonly #reads = new Set<number>()
  #nextRead = 0

  constructor(derived: DerivedStore) {
    this.#derived = derived
  }

  /**
   * Hands the row of a key as the newest decided entry leaves it (null: it was never taken) to
   * `use`, which must do there and then what rests on it: what is flushed is remembered only until
   * every read that was sent before has come back (PROTOCOL 3.6 "Reads ahead of a turn").
   */
  lookup<T>(keyType: string, key: string, use: (row: AliasRow | null) => Maybe<T>): Maybe<T> {
    const id = idOf(keyType, key)
    const known = this.#unflushed.get(id)
    if (known) return use(known.row)
    const stored = this.#derived.alias(keyType, key)
    if (!(stored instanceof Promise)) return use(stored)
    const read = this.#nextRead++
    this.#reads.add(read)
    return stored.then(
      (row) => {
        try {
          return use(this.#unflushed.get(id)?.row ?? row)
        } finally {
          this.#readEnded(read)
        }
      },
      () => {
        this.#readEnded(read)
        throw new RequestError('UNAVAILABLE', 'the key could not be read; nothing was done')
      },
    )
  }

  /** Applies an entry's changes of keys of this shard, given the rows that they go on from. */
  apply(entry: EntryHead, offset: number, bases: ReadonlyMap<string, AliasRow | null>): AliasRow[] {
    const rows: AliasRow[] = []
    for (const change of entry.k ?? []) {
      const id = idOf(change.keyType, change.key)
      const before = this.#unflushed.get(id) ?? null
      const base = before ? before.row : bases.get(id)
      if (base === undefined) continue // of another shard: only the actor remembers it
      const row = {
        keyType: change.keyType,
        key: change.key,
        claims: claimsAfter(base?.claims ?? [], change, entry),
      }
      this.#unflushed.set(id, { row, offset, before })
      rows.push(row)
    }
    return rows
  }

  /** Entries above `head` never happened: their rows are forgotten. */
  dropAbove(head: number): void {
    for (const [id, newest] of this.#unflushed) {
      let known: Unflushed | null = newest
      while (known && known.offset > head) known = known.before
      if (known) this.#unflushed.set(id, known)
      else this.#unflushed.delete(id)
    }
  }

  /** Rows of entries up to `offset` are durable: memory may forget them. */
  flushed(rows: readonly AliasRow[], offset: number): void {
    for (const row of rows) {
      const id = idOf(row.keyType, row.key)
      const known = this.#unflushed.get(id)
      if (!known) continue
      if (known.offset > offset) {
        forgetBelow(known, offset)
        continue
      }
      if (this.#reads.size === 0) this.#unflushed.delete(id)
      else this.#lingering.push({ id, offset: known.offset, freeFrom: this.#nextRead })
    }
  }

  #readEnded(read: number): void {
    this.#reads.delete(read)
    if (this.#lingering.length === 0) return
    // A set keeps the order in which reads were sent.
    const oldest = this.#reads.values().next().value ?? Infinity
    this.#lingering = this.#lingering.filter(({ id, offset, freeFrom }) => {
      if (freeFrom > oldest) return true
      const known = this.#unflushed.get(id)
      if (known?.offset === offset) this.#unflushed.delete(id)
      else if (known) forgetBelow(known, offset)
      return false
    })
  }
}

/**
 * What is durable stands in the store: nobody goes back to it here, and a key that changes all the
 * time would keep ever more of it. A read that was sent before it was durable is void if what is
 * above is dropped (`Shard.speculation`).
 */
function forgetBelow(newest: Unflushed, offset: number): void {
  let oldest = newest
  while (oldest.before && oldest.before.offset > offset) oldest = oldest.before
  oldest.before = null
}

export function idOf(keyType: string, key: string): string {
  return `${keyType}\0${key}`
}

/** The claim that counts: of the actor that has the key, or null when the key is free. */
export function holderOf(row: AliasRow | null, clock: number): AliasClaim | null {
  const claim = row?.claims[0]
  if (!claim) return null
  const forgotten =
    row.keyType.endsWith(CREATE_KEY_SUFFIX) && clock - claim.clock >= LIMITS.storage.callerMarkMs
  return forgotten ? null : claim
}

function claimsAfter(
  claims: readonly AliasClaim[],
  change: KeyChange,
  entry: EntryHead,
): readonly AliasClaim[] {
  const { actorId } = change
  switch (change.change) {
    case 'take':
      return [{ actorId, messageId: entry.m, confirmed: true, clock: entry.c }]
    case 'claim': {
      const others = claims.filter((c) => c.actorId === actorId && c.messageId !== entry.m)
      return [...others, { actorId, messageId: entry.m, confirmed: false, clock: entry.c }]
    }
    case 'confirm':
      return claims.map((c) =>
        c.actorId === actorId && c.messageId === change.by ? { ...c, confirmed: true } : c,
      )
    case 'free':
      return claims.filter((c) => !(c.actorId === actorId && c.messageId === change.by))
  }
}
