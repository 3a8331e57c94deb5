// Every bound of the system, with its unit in its name. A queue, wait or buffer that is not here
// is a mistake. Source: PROTOCOL 3.1, 3.6, 3.10, 3.12; CONTRACT 0.

import { ACE_LIMITS } from '../protocol/ace.ts'
import { LOSS_JUMP } from '../protocol/entry.ts'
import { ACCESS_LIMITS } from './access-limits.ts'
import { GRAPH_LIMITS } from './graph-limits.ts'
import { HTTP_LIMITS } from './http-limits.ts'

const KiB = 1024
const MiB = 1024 * KiB

export const LIMITS = {
  ...HTTP_LIMITS,
  // The log
  logTextCharsMax: 8 * KiB,
  /** Causes of a cause, and errors of one that stands for several. */
  logCausesMax: 4,
  /** A full pipe is waited for so long before lines are dropped. */
  logWaitMs: 100,
  /** The front page shows a number of orders that is up to this old. */
  frontCountMs: 2_000,
  // Messages
  messagesMax: 1_000,
  messageTypeCharsMax: 100,
  commandsMax: 10_000,
  // Runtime (PROTOCOL 3.1, 3.10)
  shardInFlightMax: 1_000,
  actorInFlightMax: 100,
  /** Entries of a shard whose messages to others have not been taken. */
  outboxEntriesMax: 20_000,
  groupEntriesMax: 256,
  groupBytesMax: 256 * KiB,
  /** New actors that go one after another to the same shard, and for how long at most. */
  gatherActorsMax: 96,
  gatherMs: 50,
  entryBytesMax: 2 * MiB,
  stateBytesMax: 3 * MiB,
  /**
   * A byte of an entry makes a state larger by so many at most, as long as nobody has measured it:
   * records leave out what is null (of an order, a delivery without anything: 4.7).
   */
  stateGrowthMax: 8,
  /** A state with its marks; below what every engine takes (`mutationBytesMin`). */
  snapshotBytesMax: 3.6 * MiB,
  /** Writes of a snapshot that failed before it is given up: nothing needs it. */
  snapshotAttemptsMax: 3,
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
  flushRetryMs: 250,
  /** A tail of more entries, as of a restored store, is replayed in steps of so many bytes. */
  replayedAtOnceMax: 4_000,
  replayStepBytes: 1 * MiB,
  relayRetryMsMax: 5_000,
  /**
   * So long the turns of one request wait on one actor in all, whatever for; then the actor goes
   * on. As long waits what comes for an actor that is loaded, or for a key that is looked up.
   */
  turnMs: 10_000,
  turnSlowMs: 50,
  unknownOutcomeMs: 5_000,
  /** Failed writes of the same bytes after which a shard is claimed again (PROTOCOL 3.2.5). */
  appendFailuresMax: 3,
  /** Lives of owners that ended while a message was outstanding: then it runs alone; not at all. */
  crashesAlone: 2,
  crashesMax: 3,
  /** Poisoned messages that are kept for replay, per actor: the newest. */
  poisonedMax: 16,
  poisonedBytesMax: 2 * MiB,
  /** Reads of derived rows that one recovery has under way. */
  recoveryReadsMax: 32,
  /** Entries that the index lacks, and their age, past which acknowledgements slow down. */
  indexLagEntriesMax: 60_000,
  indexLagMs: 1_500,
  /** Of fewer entries the age counts in proportion. */
  indexLagEntriesMin: 1_000,
  // Marks (PROTOCOL 3.6)
  marksMax: 1_000,
  marksBytesMax: 512 * KiB,
  markAnswerBytesMax: 1 * KiB,
  markKeysBytesMax: 1 * KiB,
  callerMarkMs: 24 * 3_600_000,
  edgeMarkMs: 10 * 60_000,
  /** Refusals by permission that are remembered for one identity at once; one more after this. */
  forbiddenKeysMax: 100,
  forbiddenKeyMs: 2 * 60_000,
  /** Identities whose account of these is known. */
  forbiddenCallersMax: 10_000,
  /** Such requests of all identities whose repeats are known. */
  forbiddenRepeatsMax: 10_000,
  claimAgeMs: 60_000,
  // Generated numbers (ARCHITECTURE 4)
  /** Counters that a shard keeps at hand: a prefix beyond them costs a read. */
  countersKnownMax: 1_000,
  /** Counters that the row of a shard holds, for owners of an older version. */
  countersToldMax: 16,
  /** Numbers that are looked up in one go where a stretch of them is taken. */
  numberProbesTogether: 8,
  /** Such stretches that one turn passes over. */
  numberSearchesMax: 8,
  // Activations and snapshots (PROTOCOL 3.12)
  activationsMax: 5_000,
  activationsBytesMax: 32 * MiB,
  sweepEveryMs: 30_000,
  /** An actor that was not asked for so long goes to rest. */
  passivateMs: 10 * 60_000,
  /** A thread that was idle for so long gives memory back. */
  idleMemoryMs: 3_000,
  trimEveryMs: 60_000,
  /** Activations looked at in one sweep. */
  sweepMax: 256,
  /** A snapshot is due when entries since the last one outweigh it, and these. */
  snapshotEntriesMin: 16,
  snapshotEntryBytesMin: 32 * KiB,
  /** So many of an actor that was never made: a load is spared its refusals, but the row stays. */
  unmadeSnapshotEntriesMin: 1_024,
  systemImageEntries: 10_000,
  /** Log rows stay so long; past so many bytes of all shards only for the graph index. */
  feedRetentionMs: 24 * 3_600_000,
  feedRetentionBytes: 1024 * MiB,
  /** Past these an index no longer holds the log: it is made anew. */
  feedHeldBytes: 20 * 1024 * MiB,
  checkpointsMax: 1_000,
  /** Of one answer, as JSON; the newest. */
  checkpointsBytesMax: 4 * MiB,
  /** History that one `query` message looks through, as JSON. */
  actorHistoryBytesMax: 16 * MiB,
  ...GRAPH_LIMITS,
  // Registry
  registryKeyCharsMax: 512,
  registryValueBytesMax: 1 * MiB,
  // Order domain
  orderLinesMax: 10_000,
  textCharsMax: 10_000,
  keyCharsMax: 200,
  tagCharsMax: 100,
  addressCharsMax: 500,
  orderDeliveriesMax: 1_000,
  orderDiscountsMax: 10_000,
  /** Discounts on one line or shipping fee. */
  targetDiscountsMax: 100,
  orderReturnsMax: 10_000,
  orderInvoiceLinesMax: 20_000,
  /** `invoice` commands of one batch: each reckons the whole order. */
  batchInvoicesMax: 20,
  /** Shares of order discounts: discounts of the whole order times lines and deliveries. */
  orderSharesMax: 100_000,
  tagsMax: 100,
  skusMax: 100,
  /** One `dynamic` or `fields` of a command, as JSON text. */
  dynamicCharsMax: 64 * KiB,
  /** Prices, values and totals, in the currency's major unit. */
  amountMax: 1e12,
  /** The same in minor units: so many are exact as JSON numbers in every currency. */
  amountUnitsMax: 1e15,
  quantityMax: 1e9,
  /** Tax factors: 1 is 100 %. */
  factorMax: 1_000,
  // The sample of a first start
  sampleInFlightMax: 32,
  sampleAttemptsMax: 20,
  ...ACCESS_LIMITS,
  ...ACE_LIMITS,
  // Bulk
  /** A line that finds its shard busy waits this long at first, doubling up to the other. */
  bulkRetryMs: 10,
  bulkRetryMsMax: 500,
  /** However busy it is, so many lines of one request stay under way. */
  bulkLinesInFlightMin: 8,
  // Embedded journal (PROTOCOL 3.16)
  /** A start waits so long for a process that has the data directory and is about to end. */
  directoryLockWaitMs: 2_000,
  /** Address space of the data file to begin with; it grows by itself. */
  journalMapBytes: 16 * 1024 * MiB,
  /** Page of the data file, of one that is made. */
  journalPageBytes: 4 * KiB,
  /** The disk counts as full when less than this would be left on it. */
  journalRoomBytes: 16 * MiB,
  /** Derived rows wait this long, or until there are so many bytes, to share pages and flushes. */
  derivedWaitMs: 100,
  derivedWaitBytes: 512 * KiB,
  /** Transactions after which the places of groups are no longer kept in memory. */
  tailTransactions: 20,
  /** Derived rows of one transaction at most. */
  derivedTransactionBytesMax: 1 * MiB,
  /** A key text in the data file; of a longer one, its beginning and a hash. */
  journalKeyBytesMax: 64,
  /** Offsets that are left out behind an accepted loss, so that none is given out twice. */
  lossOffsets: LOSS_JUMP,
  // Members, leases, placement (PROTOCOL 3.3-3.5, 3.8)
  beatEveryMs: 500,
  /** The main loop shows so often that it runs: without it, no beat is sent for it. */
  beatTickMs: 100,
  leaseMs: 2_000,
  /** A beat that stands still for so long is a death: the lease and a quarter more. */
  deathMs: 2_500,
  membersReadEveryMs: 250,
  /**
   * Reads of the members' rows that paused for longer prove nothing about whose beat stood still.
   */
  membersPauseMs: 1_000,
  /** Before a beat, or a statement of one's own row, whose outcome is unknown is sent again. */
  beatRetryMs: 100,
  /** Without an answer for so long a beat, or a read, is sent again, so many times in all. */
  beatAnswerMs: 600,
  beatCopiesMax: 3,
  /**
   * How long a stopping member tries to write into its row that it leaves, and that it has left.
   */
  leaveMs: 3_000,
  /**
   * Wall and monotonic clock may differ by this much since the last beat; else the lease is over.
   */
  clockJumpMs: 500,
  /** The next member in rank claims a dead member's shard after this. */
  nextInRankMs: 500,
  claimsInFlightMax: 8,
  /** Shards that move at once: this share of them, at least one, at most so many. */
  movesShare: 0.05,
  movesMax: 20,
  /** A move that has not ended by then is asked for again; a shard that was announced is let go. */
  moveMs: 10_000,
  /** Shards that a member that leaves hands over side by side: each pauses for as long as all. */
  handoffsInFlightMax: 2,
  /** Shards are moved to a member once it has been up for so long. */
  moveSettleMs: 2_000,
  /** A member that leaves waits so long to hear that the shards it has signed over are served. */
  moveServedMs: 1_000,
  /** Flushing ahead of a handoff takes no longer; then the shard is sealed as it is. */
  handoffPrepareMs: 5_000,
  /** A shard is signed over: so long it is waited for that its log is closed, and for that word. */
  handedAwaitMs: 250,
  /** Who is to get a shard has so long to read ahead; then the shard is sealed all the same. */
  readAheadMs: 1_000,
  /** A sealed shard keeps arriving envelopes this long, so many and so large; then `moved`. */
  sealedHeldMs: 1_000,
  sealedHeldMax: 2_000,
  sealedHeldBytesMax: 8 * MiB,
  /**
   * Every member reads the `system` log from the store this often; past the other it answers 503.
   * With a small share of a CPU a read takes most of a second now and then.
   */
  systemReadEveryMs: 500,
  systemStaleMs: 2_000,
  /** Requests wait so long, and so many, for their member to have read it. */
  systemFollowMs: 1_000,
  systemAskingMax: 1_000,
  /** A member that starts waits so long for its engines. */
  engineWaitMs: 90_000,
  engineRetryMs: 1_000,
  /** What is committed and doesn't get on for so long makes a member unready. */
  stuckShardMs: 30_000,
  /** The state of the cluster is read anew after this, with so many reads at once. */
  clusterStatusMs: 1_000,
  clusterStatusReadsMax: 8,
  // Segments of a log in Cassandra (PROTOCOL 3.5 Roll)
  segmentRowsMax: 10_000,
  segmentBytesMax: 64 * MiB,
  /** Entries of a segment over all its owners: each counts rows and bytes from its own claim on. */
  segmentEntriesMax: 100_000,
  /** Segments of one shard of which a process remembers where they begin. */
  segmentsKnownMax: 1_000,
  /** The fence of a claim: given up after this; what is undecided is asked again meanwhile. */
  claimMs: 5_000,
  claimRetryMs: 50,
  claimRetryMsMax: 500,
  appendsInFlightMax: 8,
  // Cassandra (PROTOCOL 3.1)
  /** A mutation of the largest snapshot fits; the engine must take so much. */
  mutationBytesMin: 4 * MiB,
  /** Copies of each row in a keyspace that is made, or as many as there are nodes. */
  replicationDefault: 3,
  /** A statement is given up after the server's own time and the margin, at last after this. */
  cassandraTimeoutMs: 12_000,
  cassandraTimeoutMarginMs: 500,
  cassandraConnectMs: 2_000,
  /** Longest pause between two attempts to reach a node again. */
  cassandraReconnectMs: 1_000,
  cassandraHeartBeatMs: 5_000,
  /** Statements without an answer after which a connection is given up. */
  cassandraSilentMax: 3,
  cassandraReadsInFlightMax: 512,
  cassandraReadsWaitingMax: 20_000,
  cassandraPageRows: 5_000,
  /** Requests with derived rows that are under way at once. */
  cassandraRegistersInFlightMax: 128,
  /** Derived rows of one partition in one mutation; of several partitions in one request. */
  registerMutationBytesMax: 256 * KiB,
  registerBatchBytesMax: 64 * KiB,
  registerBatchRowsMax: 50,
  /** A part of an image of the `system` maps, and of a larger item in one of its rows. */
  imageChunkBytes: 1 * MiB,
  /** Derived rows that only tidy up live twice as long as what they follow (PROTOCOL 3.0). */
  derivedTtlSeconds: 2 * 24 * 3_600,
  /** Embedded: rows whose time is over are looked for; so many go in one transaction. */
  expireEveryMs: 60_000,
  expireRowsMax: 200,
  /** Changes of the schema: one statement, the lock between two of them, whoever waits for it. */
  cassandraDdlMs: 30_000,
  schemaLockSeconds: 60,
  schemaWaitMs: 90_000,
  schemaRetryMs: 200,
  // Wire (PROTOCOL 3.6)
  /** Unanswered bytes of an edge towards one member; a larger envelope goes alone. */
  wireBytesMax: 8 * MiB,
  /** An entry of a stream that is older is dropped by its reader. */
  wireEntryAgeMs: 5 * 60_000,
  /** One that was sealed longer ago by its sender's clock is none: longer than clocks differ. */
  wireSealAgeMs: 10 * 60_000,
  /** Senders of whom it is known what they sealed last: more than a cluster has members. */
  wireSendersMax: 4_096,
  wireRetryMs: 200,
  /** Without the wire, requests for other members' shards wait this long, then 503. */
  wireAwayMs: 800,
  /** Copies that one member has sent and that are neither answered nor forgotten. */
  wireCopiesMax: 100_000,
  /** Bytes handed to Redis that it hasn't taken yet; past it answers and hints are dropped. */
  wireBacklogBytesMax: 64 * MiB,
  /** Entries that a reader remembers by id and checksum, to skip what comes again. */
  wireEntriesKnownMax: 100_000,
  wireReadEntriesMax: 128,
  wireReadBlockMs: 1_000,
  wireStreamMs: 3_600_000,
  /** A Redis that says nothing for so long, or takes so long to connect, counts as away. */
  wireSilentMs: 3_000,
  /** A wire that is away for so long is told in its member's row; it is told back when it lasts. */
  wireDownMs: 2_000,
  wireUpMs: 5_000,
  /**
   * Another's wire that is down while one is up, for so long: longer than members may differ in
   * noticing that Redis is away (`wireSilentMs`) or back (`wireReconnectMsMax`, `wireUpMs` alike).
   */
  wireApartMs: 5_000,
  /** A member starts without its inbox after this, and goes on trying. */
  wireServeMs: 1_000,
  wireReconnectMsMax: 1_000,
  /** Claims of one shard that lose against another process before it is given up. */
  claimAttemptsMax: 10,
  // Log of segment files (storage/segment-log)
  /** Of the first, the second, ... file that a writer begins; the last is that of all others. */
  logFileBytes: [4 * MiB, 16 * MiB, 64 * MiB],
  /** What is committed by one write and one sync. */
  logFrameBytesMax: 8 * MiB,
  /** Bodies of the newest groups that another thread keeps while it reads the log. */
  logViewBytesMax: 16 * MiB,
  /** Places that a start writes in one step. */
  catchUpGroups: 10_000,
  /** Segment files that a reader keeps open. */
  logFilesOpenMax: 64,
  /** Room is given back (embedded/log/upkeep.ts) at this rate; commits come at a part of it. */
  upkeepBytesPerSecond: 16 * MiB,
  upkeepBusyFactor: 4,
  upkeepStepBytes: 128 * KiB,
  /** A file is written anew when so much of it is dead. */
  upkeepDeadShare: 0.25,
  /** So many small files behind one another become one. */
  upkeepMergeMin: 8,
  /** A frame of a file that was written anew; entries without bytes that one group covers. */
  rewriteFrameBytes: 256 * KiB,
  erasedEntriesMax: 8_192,
  /** Rows that one transaction turns to such a file. */
  turnRowsMax: 250,
  /** What was given back meanwhile is looked up again so many times. */
  placeReadsMax: 3,
  /** A backup that meets a frame half written, or a file being cut, looks again after this. */
  backupRetryMs: 100,
  backupAttemptsMax: 20,
} as const
