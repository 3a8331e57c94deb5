// Bounds of the stores and of the index behind their ports: first what all engines share, then each
// engine's own. Part of LIMITS. Source: PROTOCOL 3.1, 3.5, 3.12, 3.13, 3.16.

import { LOSS_JUMP } from '../../protocol/entry/entry.ts'
import { SEARCH_LIMITS } from '../../protocol/graph/search/search-index.ts'

const KiB = 1024
const MiB = 1024 * KiB

export const STORAGE_LIMITS = {
  storage: {
    // Logs
    /** Entries that are committed together, and their bytes. */
    groupEntriesMax: 256,
    groupBytesMax: 256 * KiB,
    /** A log goes on in its next segment after so many rows, or bytes (PROTOCOL 3.5 Roll). */
    segmentRowsMax: 10_000,
    segmentBytesMax: 64 * MiB,
    /**
     * Entries of a segment over all its owners: each counts rows and bytes from its own claim on.
     */
    segmentEntriesMax: 100_000,
    /** Claims of one shard that lose against another process before it is given up. */
    claimAttemptsMax: 10,
    /**
     * After a failed write, or while derived rows are still under way: doubling up to the other.
     */
    retryMs: 20,
    retryMsMax: 5_000,
    // Marks and other derived rows (PROTOCOL 3.6)
    /** A message id is known for so long: one of the caller's key, one made at the edge. */
    callerMarkMs: 24 * 3_600_000,
    edgeMarkMs: 10 * 60_000,
    /** Embedded, where no copy outlives its edge's process: twice a request's budget. */
    soleEdgeMarkMs: 60_000,
    /** Derived rows that only tidy up live twice as long as what they follow (PROTOCOL 3.0). */
    derivedTtlSeconds: 2 * 24 * 3_600,
    /**
     * The end of an actor that is forgotten stays as long as that, and what was before it might
     * count; so long at most (a server refuses a longer time).
     */
    endedTtlSecondsMax: 400 * 24 * 3_600,
    /** Embedded: rows whose time is over are looked for; so many go in one transaction. */
    expireEveryMs: 60_000,
    expireRowsMax: 200,
    /** A part of an image of the `system` maps, and of a larger item in one of its rows. */
    imageChunkBytes: 1 * MiB,
    // Index
    /**
     * Nodes of an actor, and UTF-16 units of their JSON, that its own document holds: as many as
     * phrases find it by.
     */
    indexWholeNodesMax: SEARCH_LIMITS.searchNodesMax,
    indexWholeCharsMax: 128 * KiB,
    /** How long a removed node's version is remembered (PROTOCOL 3.13.3). */
    indexTombstoneMs: 24 * 3_600_000,
    /** Removed nodes forgotten in one request or transaction, at least. */
    indexPurgeMax: 1_000,
  },
  cassandra: {
    /** Appends of one shard that are under way at once. */
    appendsInFlightMax: 8,
    /** A mutation of the largest snapshot fits; the engine must take so much. */
    mutationBytesMin: 4 * MiB,
    /** Copies of each row in a keyspace that is made, or as many as there are nodes. */
    replicationDefault: 3,
    /** A statement is given up after the server's own time and the margin, at last after this. */
    timeoutMs: 12_000,
    timeoutMarginMs: 500,
    /** To open a connection. */
    connectMs: 2_000,
    /** Longest pause between two attempts to reach a node again. */
    reconnectMs: 1_000,
    /** An idle connection is tried this often. */
    heartBeatMs: 5_000,
    /** Statements without an answer after which a connection is given up. */
    silentMax: 3,
    /** Reads that are under way at once, and those that wait for it. */
    readsInFlightMax: 512,
    readsWaitingMax: 20_000,
    /** Rows of one page of an answer. */
    pageRows: 5_000,
    /** Requests with derived rows that are under way at once. */
    registersInFlightMax: 128,
    /** Derived rows of one partition in one mutation; of several partitions in one request. */
    registerMutationBytesMax: 256 * KiB,
    registerBatchBytesMax: 64 * KiB,
    registerBatchRowsMax: 50,
    /** Changes of the schema: one statement, the lock between two of them, whoever waits for it. */
    ddlMs: 30_000,
    schemaLockSeconds: 60,
    schemaWaitMs: 90_000,
    schemaRetryMs: 200,
  },
  elastic: {
    // Writes
    /** One request that writes, and how long it may take. */
    bulkBytesMax: 5 * MiB,
    bulkMs: 30_000,
    /** What the engine has no room for is sent again after this long, doubling, so many times. */
    busyMs: 50,
    busyAttemptsMax: 6,
    /** How long what is written may stay unseen, where nobody asks for a refresh. */
    refreshMs: 1_000,
    /** Requests about whole indexes. */
    adminMs: 30_000,
    // Searches
    /** Documents of one page, where candidates are looked at one by one. */
    pageNodes: 1_000,
    /** Documents of one search that hold an actor's other nodes (`storage.indexWholeNodesMax`). */
    pageWholes: 128,
    /** Parents whose edges one search follows. */
    linksTogether: 1_000,
    /** Searches of one request to the engine. */
    searchesTogether: 32,
    /** Children that a semi-join is turned around for: they say which parents can pass. */
    gateChildrenMax: 2_000,
  },
  sqlite: {
    /** The embedded index's log, which is copied into its file past it. */
    logBytes: 64 * MiB,
    /** Past so many, as readers overlap that keep it from being begun anew, they are waited for. */
    logBytesMax: 256 * MiB,
    /** Prepared statements a reader of the embedded index keeps. */
    statementsMax: 256,
    /** Statements that it prepares before its connection is opened anew; each takes some 10 KB. */
    statementsMadeMax: 2_000,
    /**
     * Rows of a part of a filter that are found and sorted; of more the order's index finds first.
     */
    partRowsMax: 2_000,
  },
  lmdb: {
    /** Address space of the data file to begin with; it grows by itself. */
    mapBytes: 16 * 1024 * MiB,
    /** Page of the data file, of one that is made. */
    pageBytes: 4 * KiB,
    /** The disk counts as full when less than this would be left on it. */
    roomBytes: 16 * MiB,
    /** A key text in the data file; of a longer one, its beginning and a hash. */
    keyBytesMax: 64,
    /**
     * Derived rows wait this long, or until there are so many bytes, to share pages and flushes.
     */
    derivedWaitMs: 100,
    derivedWaitBytes: 512 * KiB,
    /** Derived rows of one transaction at most. */
    derivedTransactionBytesMax: 1 * MiB,
    /** Transactions after which the places of groups are no longer kept in memory. */
    tailTransactions: 20,
    /** Rows that one transaction turns to a segment file that was written anew. */
    turnRowsMax: 250,
    /** Rows of one actor's entries that are looked at together when it is forgotten. */
    endedRowsMax: 10_000,
  },
  segmentLog: {
    /** Of the first, the second, ... file that a writer begins; the last is that of all others. */
    fileBytes: [4 * MiB, 16 * MiB, 64 * MiB],
    /** What is committed by one write and one sync. */
    frameBytesMax: 8 * MiB,
    /** Segment files that a reader keeps open. */
    filesOpenMax: 64,
  },
  embedded: {
    /** A start waits so long for a process that has the data directory and is about to end. */
    directoryLockWaitMs: 2_000,
    /** Offsets that are left out behind an accepted loss, so that none is given out twice. */
    lossOffsets: LOSS_JUMP,
    /** Bodies of the newest groups that another thread keeps while it reads the log. */
    logViewBytesMax: 16 * MiB,
    /** Places that a start writes in one step. */
    catchUpGroups: 10_000,
    /** What was given back meanwhile is looked up again so many times. */
    placeReadsMax: 3,
    // Room that the log gives back
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
    // Backups
    /** A backup that meets a frame half written, or a file being cut, looks again after this. */
    backupRetryMs: 100,
    backupAttemptsMax: 20,
  },
} as const
