// What a shard remembers of itself over restarts, kept in its own derived row. The flusher writes
// it, a claim reads it. Source: PROTOCOL 3.0 `shard_snap`.

/** What a shard remembers of itself: its clock, and how far its relay and its log are. */
export interface ShardSnapshot {
  /**
   * Counters of generated numbers that were moved last, for owners of an older version, which know
   * no rows of them.
   */
  readonly counters: Readonly<Record<string, number>>
  /**
   * Of those what rows of their own had. An older version keeps it as it finds it, so what differs
   * was moved by one since.
   */
  readonly countersTold?: Readonly<Record<string, number>>
  readonly clockMs: number
  /** Behind the oldest effect that is not taken yet. */
  readonly relayed: number
  /** Bytes ever appended to the log up to `counted`; absent: an older version has counted them. */
  readonly logBytes: number
  readonly counted?: number
  /** Up to here the log is trimmed. */
  readonly trimmed: number
  /** Of `logBytes`, those up to `trimmed`: what lies above is the difference. */
  readonly trimmedBytes: number
}

/** What an owner that has closed its log remembers at the head of it. It goes over the wire. */
export interface LastSnapshot {
  readonly memory: ShardSnapshot
  /** It has dead letters: their rows are to be read. */
  readonly poisoned: boolean
}

export const NEW_SNAPSHOT: ShardSnapshot = {
  counters: {},
  clockMs: 0,
  relayed: 0,
  logBytes: 0,
  counted: 0,
  trimmed: 0,
  trimmedBytes: 0,
}

/** The content of a shard's own row. */
export function decodeShardSnapshot(body: Uint8Array): ShardSnapshot {
  return JSON.parse(Buffer.from(body).toString()) as ShardSnapshot
}
