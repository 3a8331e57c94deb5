// What members tell each other so that one hears of commits in the shards of others: what it wants,
// and what they have for it. Source: PROTOCOL 3.18.

/** What of one committed entry is for a watcher. */
export type FedItem = readonly [offset: number, value: unknown]

/** All of a shard in (from, to] that is for one watcher. */
export interface FedPart {
  readonly shard: number
  /** Not in it; the part before ended here, or what is between was lost. */
  readonly from: number
  readonly to: number
  readonly items: readonly FedItem[]
  /** Items that had no room. */
  readonly dropped?: number
}

/** Watcher to all: this is what I want of your shards, for so long; null: nothing any more. */
export interface WatchNotice {
  readonly kind: 'watch'
  readonly stream: string
  /** Rises with each other interest. */
  readonly number: number
  readonly interest: unknown
}

/** Owner to watcher: this is what there was for the interest of that number. */
export interface FedNotice {
  readonly kind: 'fed'
  readonly stream: string
  readonly number: number
  readonly parts: readonly FedPart[]
}
