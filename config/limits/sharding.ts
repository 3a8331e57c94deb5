// Bounds of a shard: its turns, commits and keys, its recovery and its handoff. Part of LIMITS.
// Source: PROTOCOL 3.1, 3.2, 3.6, 3.8, 3.10, 3.12.

const KiB = 1024
const MiB = 1024 * KiB

export const SHARDING_LIMITS = {
  // Turns
  /** Messages that wait for one actor, or are being decided by it. */
  actorInFlightMax: 100,
  /** A request is answered within this. */
  requestBudgetMs: 30_000,
  /**
   * So long the turns of one request wait on one actor in all, whatever for; then the actor goes
   * on. As long waits what comes for an actor that is loaded, or for a key that is looked up.
   */
  turnMs: 10_000,
  /** A turn that takes longer counts as slow. */
  turnSlowMs: 50,
  /** Lives of owners that ended while a message was outstanding: then it runs alone; not at all. */
  crashesAlone: 2,
  crashesMax: 3,
  /** Poisoned messages that are kept for replay, per actor: the newest. */
  poisonedMax: 16,
  poisonedBytesMax: 2 * MiB,
  /** The state of one actor. */
  stateBytesMax: 3 * MiB,
  /**
   * The state behind an entry is kept until its commit while it would not take more if all that is
   * uncommitted in its shard had one like it; else who follows the feed here folds it anew.
   */
  openStatesBytesMax: 16 * MiB,
  /**
   * A byte of an entry makes a state larger by so many at most, as long as nobody has measured it:
   * records leave out what is null (of an order, a delivery without anything: 4.7).
   */
  stateGrowthMax: 8,
  // Marks
  /** Marks that an actor has at hand, and their bytes; older ones are rows. */
  marksMax: 1_000,
  marksBytesMax: 512 * KiB,
  /** A mark keeps an answer up to this, and the keys that its message took. */
  markAnswerBytesMax: 1 * KiB,
  markKeysBytesMax: 1 * KiB,
  // Commits
  /** Entries of a shard whose messages to others have not been taken. */
  outboxEntriesMax: 20_000,
  /** Longest pause between two attempts to relay, or to read in a recovery. */
  relayRetryMsMax: 5_000,
  /** An append without an outcome is told to callers (504) after this. */
  unknownOutcomeMs: 5_000,
  /** Failed writes of the same bytes after which a shard is claimed again (PROTOCOL 3.2.5). */
  appendFailuresMax: 3,
  /** Committed entries whose derived rows are not durable, per shard: past either groups wait. */
  unflushedBytesMax: 32 * MiB,
  unflushedMsMax: 5_000,
  /**
   * Derived rows of committed groups are gathered up to this while a write of them is under way.
   */
  flushBatchBytesMax: 512 * KiB,
  /** The flush offset is stored after so many entries or so long: what lies above is replayed. */
  flushStoredEntries: 1_000,
  flushStoredMs: 2_000,
  /** After a flush that failed. */
  flushRetryMs: 250,
  /** A state with its marks; below what every engine takes (`cassandra.mutationBytesMin`). */
  snapshotBytesMax: 3.6 * MiB,
  /** Writes of a snapshot that failed before it is given up: nothing needs it. */
  snapshotAttemptsMax: 3,
  /** A snapshot is due when entries since the last one outweigh it, and these. */
  snapshotEntriesMin: 16,
  snapshotEntryBytesMin: 8 * KiB,
  /** So many of an actor that was never made: a load is spared its refusals, but the row stays. */
  unmadeSnapshotEntriesMin: 1_024,
  // Trims
  /** Logs are trimmed this often. */
  trimEveryMs: 60_000,
  /** Log rows stay so long; past so many bytes of all shards only for the graph index. */
  feedRetentionMs: 24 * 3_600_000,
  feedRetentionBytes: 1024 * MiB,
  /** Past these an index no longer holds the log: it is made anew. */
  feedHeldBytes: 20 * 1024 * MiB,
  // Activations
  /**
   * Activations of a member, and their bytes, over all its shards. Both are as many times larger
   * as this share of the heap is larger than these bytes.
   */
  activationsMax: 5_000,
  activationsBytesMax: 32 * MiB,
  activationsHeapShare: 1 / 16,
  /** A state is measured anew after so many bytes of entries, and as many as it has itself. */
  weighedAnewBytes: 8 * KiB,
  /** Activations are looked through this often for those that may leave memory. */
  sweepEveryMs: 30_000,
  /** Activations looked at in one sweep. */
  sweepMax: 256,
  /** An actor that was not asked for so long goes to rest. */
  passivateMs: 10 * 60_000,
  /** Of the checkpoints in one answer, as JSON. */
  checkpointsBytesMax: 4 * MiB,
  // Keys and generated numbers (ARCHITECTURE 4)
  /** A claim that nobody has confirmed for so long is looked up at its actor. */
  claimAgeMs: 60_000,
  /** Counters that a shard keeps at hand: a prefix beyond them costs a read. */
  countersKnownMax: 1_000,
  /** Counters that the row of a shard holds, for owners of an older version. */
  countersToldMax: 16,
  /** Numbers that are looked up in one go where a stretch of them is taken. */
  numberProbesTogether: 8,
  /** Such stretches that one turn passes over. */
  numberSearchesMax: 8,
  // Recovery
  /** Reads of derived rows that one recovery has under way. */
  recoveryReadsMax: 32,
  /** A tail of more entries, as of a restored store, is replayed in steps of so many bytes. */
  replayedAtOnceMax: 4_000,
  replayStepBytes: 1 * MiB,
  // Handoff
  /** Flushing ahead of a handoff takes no longer; then the shard is sealed as it is. */
  handoffPrepareMs: 5_000,
  /** A sealed shard keeps arriving envelopes this long, so many and so large; then `moved`. */
  sealedHeldMs: 1_000,
  sealedHeldMax: 2_000,
  sealedHeldBytesMax: 8 * MiB,
} as const
