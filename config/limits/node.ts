// Bounds of one process and of its stations that have no table of their own. Part of LIMITS.
// Source: CONTRACT 0, PROTOCOL 3.12, 3.13.

const KiB = 1024
const MiB = 1024 * KiB

export const NODE_LIMITS = {
  node: {
    /** One text in a line of the log; longer ones are cut. */
    logTextCharsMax: 8 * KiB,
    /** Causes of a cause, and errors of one that stands for several. */
    logCausesMax: 4,
    /** A full pipe is waited for so long before lines are dropped. */
    logWaitMs: 100,
    /** A thread that was idle for so long gives memory back. */
    idleMemoryMs: 3_000,
    /** A stop takes no longer. */
    shutdownMs: 30_000,
    /**
     * A balancer that asks each second, or a bit less often, may miss it: then it is set higher.
     */
    shutdownNoticeMs: 500,
  },
  actors: {
    /** Messages of one request. */
    messagesMax: 1_000,
    /** The type of a message. */
    messageTypeCharsMax: 100,
    /** An `Idempotency-Key`. */
    idempotencyKeyCharsMax: 255,
    /** Refusals by permission that are remembered for one identity at once; one more after this. */
    forbiddenKeysMax: 100,
    forbiddenKeyMs: 2 * 60_000,
    /** Identities whose account of these is known. */
    forbiddenCallersMax: 10_000,
    /** Such requests of all identities whose repeats are known. */
    forbiddenRepeatsMax: 10_000,
    // Bulk
    /** Bulk lines of one request under way at once; beyond it the socket is paused. */
    bulkLinesInFlightMax: 512,
    /** Bytes of bulk lines of one request under way at once. */
    bulkBytesInFlightMax: 16 * MiB,
    /** A line that finds its shard busy waits this long at first, doubling up to the other. */
    bulkRetryMs: 10,
    bulkRetryMsMax: 500,
    /** However busy it is, so many lines of one request stay under way. */
    bulkLinesInFlightMin: 8,
  },
  indexing: {
    /** A read waits so long for what its token names to be in the index. */
    consistencyWaitMs: 5_000,
    /** Requests that wait for the index at once. */
    consistencyWaitersMax: 10_000,
    /** Groups that were committed here, kept for the projector. */
    recentRowsBytesMax: 16 * MiB,
    /** How often it is looked which generation of the index is live, and whether it is whole. */
    lookMs: 1_000,
    /** Removed nodes are looked through for old ones this often. */
    purgeEveryMs: 60_000,
    /** In a cluster so long at a time, with every look at the index while some are left. */
    purgeMs: 500,
    /** What is no longer live stays for those who still read it. */
    graceMs: 20_000,
    /** What was being filled for former definitions, until all members have given that up. */
    unreadGraceMs: 5_000,
    /** Successors of the live one are made at least so far apart: each has an index a node type. */
    successorEveryMs: 2_000,
    /** Forced refreshes are at least so far apart. */
    refreshGapMs: 200,
    /** Made anew for who updates a search, it is again after this; looks how far are so apart. */
    askedAgainMs: 60_000,
    progressGapMs: 250,
    /** How often the offset of another member's shard is read while somebody waits for it. */
    pollMs: 50,
    // An embedded index that is filled beside the one that is read
    /** Of its thread's time it works so much, so that the other keeps its pace. */
    besideShare: 0.5,
    /** How often it is looked how far it is. */
    besideLookMs: 250,
    /** With so few entries less than the other it is let catch up, which follows nothing then. */
    besideNearEntries: 2_000,
    /** It has so long for that, else the other goes on first. */
    takeOverMs: 5_000,
    takeOverLookMs: 5,
    // In a cluster, on the thread that answers requests
    /** A batch of the projector, and a slice of it. */
    clusterBatchEntries: 256,
    clusterBatchMs: 50,
    clusterSliceMs: 5,
  },
  iam: {
    /** Entries of one page of a list. */
    pageDefault: 50,
    pageMax: 100,
    searchCharsMax: 200,
    cursorCharsMax: 1_024,
    /** ETags in a body. */
    tagCharsMax: 200,
    /** What lists were asked for, and what was found, until an identity changes. */
    listsKeptMax: 50,
    /** Reads of an identity's past for one page of its changes, and bytes of each. */
    changeReadsMax: 20,
    changeReadBytes: 1 * MiB,
    /** A principal, a client or a role as JSON. */
    valueBytesMax: 256 * KiB,
  },
  registry: {
    /** A key, and its value as JSON. */
    keyCharsMax: 512,
    valueBytesMax: 1 * MiB,
  },
  health: {
    /** Connections to the port of the metrics at once. */
    metricsConnectionsMax: 32,
    /** What is committed and doesn't get on for so long makes a member unready. */
    stuckShardMs: 30_000,
  },
  front: {
    /** The front page shows a number of orders that is up to this old. */
    countMs: 2_000,
  },
  sample: {
    /** Orders that are sent at once, and attempts of each. */
    inFlightMax: 32,
    attemptsMax: 20,
  },
} as const
