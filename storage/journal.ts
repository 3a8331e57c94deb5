// The journal port: a log per shard, each append fenced by epoch and head, and the rows that are
// derived from it. Drivers: memory/, embedded/, cassandra/. It speaks shards, entries and keys,
// never the database. Every driver passes conformance/journal.ts. Source: PROTOCOL 3.0, 3.1, 3.12,
// 3.16.

/** A value, or the promise of one: embedded reads are answered at once, a server's are not. */
export type Maybe<T> = T | Promise<T>

/** What a claim finds. `flush`: up to here the derived rows are written. */
export interface ClaimedShard {
  readonly epoch: number
  readonly head: number
  readonly flush: number
}

/** A shard's tenure as the control rows give it (PROTOCOL 3.5). */
export interface Tenure {
  readonly epoch: number
  /** The log's open segment is this one or a later one. */
  readonly segment: number
  /** The owner before has closed its log for this epoch: nothing is left to be fenced. */
  readonly end?: LogEnd
}

/** Where a log ends that its owner has closed for the next one (PROTOCOL 3.8.3). */
export interface LogEnd {
  readonly segment: number
  /** Of that segment. */
  readonly base: number
  readonly head: number
  /** Up to here, at least, the derived rows are written. */
  readonly flush: number
}

/** Somebody newer has the shard: the claim ends here. */
export class LostTenure extends Error {
  constructor(shard: number, epoch: number) {
    super(`shard ${shard} has an owner newer than epoch ${epoch}`)
    this.name = 'LostTenure'
  }
}

/** One group: entries of one shard, committed together as one row. */
export interface Group {
  readonly shard: number
  readonly epoch: number
  /** Head that this group goes on from. */
  readonly head: number
  /** Number of entries; the row's offset is head + count. */
  readonly count: number
  /** UUID. Sending the same bytes again with the same id is safe (PROTOCOL 3.2). */
  readonly commitId: string
  /** `joinEntries` of protocol/entry/entry.ts. */
  readonly body: Uint8Array
}

export type AppendOutcome =
  | 'committed'
  /** Another epoch or head is in the store: this owner must step down. Nothing of it is in. */
  | 'fenced'
  /** The disk is full; nothing of it is in. */
  | 'full'
  /** May be in or not, now or later: hold the answers and resolve (PROTOCOL 3.2). */
  | 'unknown'

export interface LogRow {
  readonly shard: number
  readonly epoch: number
  /** Offset of the last entry in it. */
  readonly offset: number
  readonly count: number
  readonly commitId: string
  readonly body: Uint8Array
}

export interface ShardStatus {
  readonly epoch: number
  readonly head: number
  readonly lastCommit: string | null
}

/** The log as any thread may read it. */
export interface LogReader {
  /** What the store says now, for unknown outcomes and for the check before a read is released. */
  status(shard: number): Maybe<ShardStatus>
  /** Epoch of the shard as a fresh read: before an answer that commits nothing is released. */
  epochNow(shard: number): Maybe<number>
  /**
   * Rows with offset > after, in order, at most about `bytesMax` (at least one row). Where older
   * ones were trimmed the first begins higher than behind `after`, or there is none although the
   * head (`status`) is higher: no row doesn't mean no news. Rows are dense from there on. Of
   * entries that have had their time (row-expiry.ts) a driver may give the bytes back: each reads
   * as `ERASED_ENTRY` then, in a row that may cover several of those that were appended.
   */
  read(shard: number, after: number, bytesMax: number): Maybe<readonly LogRow[]>
}

export interface LogStore extends LogReader {
  /** Appends that may be in flight at once: 1 embedded, 8 on a server. */
  readonly appendsMax: number
  /** Groups (of different shards) that one append merges: all embedded, 1 on a server. */
  readonly groupsMax: number
  /**
   * Takes the shard, so that every older owner's append is false for ever: raises its epoch, or,
   * where the control rows issue epochs, to that of the tenure. Rejects with LostTenure when the
   * log has a higher one already.
   */
  claim(shard: number, tenure?: Tenure): Promise<ClaimedShard>
  /**
   * Raises the log's epoch by one for the next owner, where the control rows issue epochs: for an
   * owner that has nothing in flight and never appends again in this epoch. Null when it is not
   * known to be raised with the log ending at `head`; then the next owner fences it.
   */
  close?(
    shard: number,
    at: { readonly epoch: number; readonly head: number },
  ): Promise<Omit<LogEnd, 'flush'> | null>
  /** Appends the groups in one go; each has its own outcome, one failing fails that one only. */
  append(groups: readonly Group[]): Promise<readonly AppendOutcome[]>
  /**
   * Deletes rows at or below `upTo`. Never the head's own memory of epoch and offset. Not there
   * where the log is what the derived rows lead to: it is never trimmed.
   */
  trim?(shard: number, epoch: number, upTo: number): Promise<void>
}

/** Keys of creates are forgotten with the callers' keys; every other key is kept (PROTOCOL 3.6). */
export const CREATE_KEY_SUFFIX = '!key'

/**
 * Rows of this key type are counters of generated numbers: key `shard/prefix`, one claim whose
 * message is the highest number handed out. Nothing is lost when one is missing: numbers that are
 * taken are passed over.
 */
export const COUNTER_SUFFIX = '!counter'

/**
 * Consumers whose number is a generation of the graph index, not an offset of a log (PROTOCOL
 * 3.13.5): the one that is read, the newest, and the newest that can't go on.
 */
export const GENERATION_CONSUMERS = {
  live: 'index-live',
  next: 'index-next',
  gone: 'index-gone',
} as const

/** A natural key's row (ARCHITECTURE 4). Free when `claims` is empty. */
export interface AliasRow {
  readonly keyType: string
  readonly key: string
  readonly claims: readonly AliasClaim[]
}

export interface AliasClaim {
  readonly actorId: string
  /** Message that made the claim. */
  readonly messageId: string
  /** False while the actor's own commit has not been heard of ("Apart"). */
  readonly confirmed: boolean
  /** Shard clock of the claim, milliseconds. */
  readonly clock: number
}

/** Rows derived from the committed log: registers that only move forward by `offset`. */
export type DerivedRow =
  | {
      readonly kind: 'entry'
      readonly actorId: string
      /** Number of the entry in its actor, from 1; those of rows that went may be missing. */
      readonly n: number
      readonly offset: number
      readonly body: Uint8Array
      /** Of one behind which its actor is forgotten: from when it has its time to go. */
      readonly passesFrom?: number
    }
  | { readonly kind: 'alias'; readonly offset: number; readonly row: AliasRow }
  | {
      readonly kind: 'snapshot'
      readonly actorId: string
      readonly offset: number
      readonly body: Uint8Array
      /** The same of a snapshot of an actor that has ended. */
      readonly passesFrom?: number
    }
  | {
      readonly kind: 'mark'
      readonly actorId: string
      /** Number of the day by the shard's clock. */
      readonly day: number
      readonly messageId: string
      readonly offset: number
      readonly body: Uint8Array
    }
  /** What the shard itself remembers (counters, clock). */
  | { readonly kind: 'shard'; readonly offset: number; readonly body: Uint8Array }
  /** A consumer of the feed: done up to and including `offset`. `flush` is one of them. */
  | { readonly kind: 'consumer'; readonly consumer: string; readonly offset: number }
  /** A projection that failed: kept until it is tried again (PROTOCOL 3.11). */
  | {
      readonly kind: 'parked'
      readonly consumer: string
      readonly actorId: string
      /** null: done with. */
      readonly body: Uint8Array | null
      readonly offset: number
    }
  /** One part of an image of the `system` maps. */
  | {
      readonly kind: 'image'
      readonly offset: number
      readonly part: number
      readonly body: Uint8Array
    }

/** A stored entry of an actor. */
export interface EntryRow {
  readonly n: number
  readonly offset: number
  readonly body: Uint8Array
}

/** The derived rows as any thread may read them. */
export interface DerivedReader {
  alias(keyType: string, key: string): Maybe<AliasRow | null>
  snapshot(actorId: string): Maybe<{ offset: number; body: Uint8Array } | null>
  /**
   * Entries with after < n, ascending (or descending: from the newest with n < before), as many as
   * the range asks for: only an empty answer says that there are no more. Numbers may be missing
   * anywhere; whether an entry with records is missing, its reader tells by the versions
   * (protocol/entry/succession.ts).
   */
  entries(actorId: string, range: EntryRange): Maybe<readonly EntryRow[]>
  mark(actorId: string, day: number, messageId: string): Maybe<Uint8Array | null>
  shard(shard: number): Maybe<{ offset: number; body: Uint8Array } | null>
  consumer(shard: number, consumer: string): Maybe<number | null>
  parked(shard: number, consumer: string): Maybe<readonly { actorId: string; body: Uint8Array }[]>
  /** The newest whole image of the `system` maps: not above the offset of consumer `image`. */
  image(): Maybe<{ offset: number; parts: readonly Uint8Array[] } | null>
  /**
   * Actors that have entries, in the store's own order, from the one behind `after` (the last of
   * the page before; null: from the first); fewer than `limit` means that there are no more. For
   * the rebuild of an index.
   */
  actors(after: string | null, limit: number): Maybe<readonly string[]>
}

export interface DerivedStore extends DerivedReader {
  /**
   * Writes rows of one shard, in order; resolves when they are durable, and so is every row that
   * was written for this shard and epoch before them. A row older by `offset` than what is there
   * changes nothing, one of the same offset replaces it (on a server: the greater bytes stay).
   * Under a newer epoch than the given one nothing is written and the outcome is `fenced`, where
   * the driver can tell; on a server late rows lose by their offsets. Embedded, the rows wait
   * a moment for others, and go in one transaction with them. Rows must stay as they are until
   * then; they aren't copied on the way. After `unknown` the same array is written again.
   */
  write(shard: number, epoch: number, rows: readonly DerivedRow[]): Promise<AppendOutcome>
  /** Deletes older images than the newest but one. */
  trimImages(): Promise<void>
  /**
   * Deletes passing rows (row-expiry.ts) whose time is over, where the store doesn't do so by
   * itself: what was written when its shard's clock (PROTOCOL 3.0) stood at c goes once that clock
   * is at c + LIMITS.storage.derivedTtlSeconds or later, never by a wall clock. `clockOf`: the
   * clock of a shard now; null: it isn't known here, and nothing of that shard goes.
   */
  expire?(clockOf: (shard: number) => number | null): Promise<void>
}

export type EntryRange =
  | { readonly order: 'ascending'; readonly after: number; readonly bytesMax: number }
  | {
      readonly order: 'descending'
      readonly before: number
      readonly countMax: number
      readonly bytesMax: number
    }

/** What a store is: written once when it is made; another number at start is refused. */
export interface StoreIdentity {
  readonly format: number
  readonly shards: number
  /** New for every store that was restored or moved: cursors and indexes name it. */
  readonly generation: string
  /**
   * Made once, base64url of 32 random bytes, known to all members and nobody else: what they hand
   * out or send each other is keyed by it. Never logged, never shown.
   */
  readonly secret: string
  /** Name of the key that its secrets are encrypted with; absent: of none (secrets-key.ts). */
  readonly secretsKey?: string
  /** Losses that were accepted (PROTOCOL 3.16), oldest first; absent when there were none. */
  readonly losses?: readonly AcceptedLoss[]
}

/**
 * What a shard held behind `offset` was given up; its log goes on behind `resumedAt`. An actor
 * whose last entry is at or below `offset` goes on with versions and entry numbers as much higher
 * as the offsets are, so that none is given out twice.
 */
export interface AcceptedLoss {
  readonly shard: number
  readonly offset: number
  readonly resumedAt: number
}

/** A journal as a member opens it. */
export interface Journal {
  readonly identity: StoreIdentity
  readonly log: LogStore
  readonly derived: DerivedStore
  close(): Promise<void>
}

/** The reading half of a journal, which another thread opens for itself (the index worker). */
export interface JournalReader {
  readonly identity: StoreIdentity
  readonly log: LogReader
  readonly derived: DerivedReader
  close(): Promise<void>
}
