// Bounds of the actor runtime around its shards: the edge, members, placement, logs, the feed and
// the wire. Part of LIMITS. Source: PROTOCOL 3.3-3.6, 3.8, 3.10, 3.13.

const KiB = 1024
const MiB = 1024 * KiB

export const CLUSTER_LIMITS = {
  cluster: {
    /**
     * Wall and monotonic clock may differ by this much since the last beat; else the lease is over.
     */
    clockJumpMs: 500,
    /** A member that starts waits so long for its engines. */
    engineWaitMs: 90_000,
    engineRetryMs: 1_000,
    // The `system` maps
    /** Entries after which the owner of the `system` shard writes an image of its maps. */
    systemImageEntries: 10_000,
    /**
     * Every member reads the `system` log from the store this often; past the other it answers 503.
     * With a small share of a CPU a read takes most of a second now and then.
     */
    systemReadEveryMs: 500,
    systemStaleMs: 2_000,
    /** Requests wait so long, and so many, for their member to have read it. */
    systemFollowMs: 1_000,
    systemAskingMax: 1_000,
    // The state of the cluster, as `node/cluster/` tells it
    /** The state of the cluster is read anew after this, with so many reads at once. */
    statusMs: 1_000,
    statusReadsMax: 8,
  },
  routing: {
    /** Requests to one shard that are under way at one edge. */
    shardInFlightMax: 1_000,
    /** New actors that go one after another to the same shard, and for how long at most. */
    gatherActorsMax: 96,
    gatherMs: 50,
    /** Without the wire, requests for other members' shards wait this long, then 503. */
    wireAwayMs: 800,
    /** A request that found its shard elsewhere, or no room, is sent again after this. */
    retryMs: 200,
  },
  membership: {
    /** A member shows this often that it lives. */
    beatEveryMs: 500,
    /** The main loop shows so often that it runs: without it, no beat is sent for it. */
    beatTickMs: 100,
    /** A beat is a lease of all shards of its member for so long. */
    leaseMs: 2_000,
    /** A beat that stands still for so long is a death: the lease and a quarter more. */
    deathMs: 2_500,
    /** The members' rows are read this often. */
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
     * A wire that is away for so long is told in its member's row; it is told back when it lasts.
     */
    wireDownMs: 2_000,
    wireUpMs: 5_000,
    /**
     * Another's wire that is down while one is up, for so long: longer than members may differ in
     * noticing that Redis is away (`redis.silentMs`) or back (`redis.reconnectMsMax`, `wireUpMs`
     * alike).
     */
    wireApartMs: 5_000,
  },
  placement: {
    /** The next member in rank claims a dead member's shard after this. */
    nextInRankMs: 500,
    /** Shards that a member claims or gives up at once. */
    claimsInFlightMax: 8,
    /** Shards that move at once: this share of them, at least one, at most so many. */
    movesShare: 0.05,
    movesMax: 20,
    /**
     * A move that has not ended by then is asked for again; a shard that was announced is let go.
     */
    moveMs: 10_000,
    /** Shards that a member that leaves hands over side by side: each pauses for as long as all. */
    handoffsInFlightMax: 2,
    /** Shards are moved to a member once it has been up for so long. */
    moveSettleMs: 2_000,
    /** A member that leaves waits so long to hear that the shards it has signed over are served. */
    moveServedMs: 1_000,
    /**
     * A shard is signed over: so long it is waited for that its log is closed, and for that word.
     */
    handedAwaitMs: 250,
    /** Who is to get a shard has so long to read ahead; then the shard is sealed all the same. */
    readAheadMs: 1_000,
  },
  log: {
    /** The fence of a claim: given up after this; what is undecided is asked again meanwhile. */
    claimMs: 5_000,
    claimRetryMs: 50,
    claimRetryMsMax: 500,
    /** Segments of one shard of which a process remembers where they begin. */
    segmentsKnownMax: 1_000,
  },
  feed: {
    // Projector (PROTOCOL 3.13)
    /**
     * Of new actors few are heard of again: states kept cost more than they save when they outlive
     * the youngest generation of the heap.
     */
    projectorNewMax: 1_000,
    projectorNewBytesMax: 8 * MiB,
    /** Of those that are: one that is not at hand is read, with what was written to it of late. */
    projectorActorsMax: 10_000,
    projectorActorsBytesMax: 32 * MiB,
    /** A state is measured anew when what was folded outweighs it, and this. */
    weighedAnewBytes: 8 * KiB,
    /** A page that several entries of a batch touch is written once: the more, the cheaper each. */
    projectorBatchEntries: 4_000,
    projectorBatchBytes: 16 * MiB,
    projectorBatchMs: 400,
    /** Of these bounds, while somebody waits for the index. */
    projectorAwaitedShare: 0.25,
    /** Entries come together for this long before a batch, unless somebody waits for the index. */
    projectorGatherMs: 250,
    /** Actors that can't be projected and are set aside. */
    projectorParkedMax: 10_000,
    /** Filling an index from its actors gives way to following the log this often. */
    refillStepMs: 500,
    /** How far an index is filled from its actors is kept this often. */
    refillKeptMs: 2_000,
    /** Actors that are read at once to fill an index from them. */
    refillReadsTogether: 16,
    // Followers beside the index (PROTOCOL 3.13.9)
    followersMax: 16,
    /** Bytes of log rows that one read asks for. */
    followerReadBytes: 1 * MiB,
    /** Entries with their states that were committed here and that one of them has yet to take. */
    followerFreshBytesMax: 32 * MiB,
    /** Groups that were committed here, kept for all of them together. */
    followersRowsBytesMax: 16 * MiB,
    // Watching the feed of other members (PROTOCOL 3.18)
    /** What is for a watcher is gathered so long, or until it has so many bytes. */
    watchGatherMs: 10,
    watchBatchBytes: 64 * KiB,
    /** Past it items for a watcher are dropped, and the part says so. */
    watchBytesMax: 1 * MiB,
    /** What a member wants is told this often, and owners say how far they are. */
    watchEveryMs: 1_000,
    /** An interest that was not told again for so long is over. */
    watchLeaseMs: 5_000,
    /** Who subscribes waits at most so long for all members to know. */
    watchKnownMs: 1_000,
    /** Members, times streams, that watch one member. */
    watchersMax: 4_096,
    // Back-pressure
    /** Entries that the index lacks, and their age, past which acknowledgements slow down. */
    indexLagEntriesMax: 60_000,
    indexLagMs: 1_500,
    /** Of fewer entries the age counts in proportion. */
    indexLagEntriesMin: 1_000,
    /** The most that an acknowledgement is held back because the index lags. */
    ackDelayMsMax: 1_000,
  },
  redis: {
    /** Unanswered bytes of an edge towards one member; a larger envelope goes alone. */
    bytesMax: 8 * MiB,
    /** Copies that one member has sent and that are neither answered nor forgotten. */
    copiesMax: 100_000,
    /** Bytes handed to Redis that it hasn't taken yet; past it answers and hints are dropped. */
    backlogBytesMax: 64 * MiB,
    /** An entry of a stream that is older is dropped by its reader. */
    entryAgeMs: 5 * 60_000,
    /** One that was sealed longer ago by its sender's clock is none: longer than clocks differ. */
    sealAgeMs: 10 * 60_000,
    /** Senders of whom it is known what they sealed last: more than a cluster has members. */
    sendersMax: 4_096,
    /** Entries that a reader remembers by id and checksum, to skip what comes again. */
    entriesKnownMax: 100_000,
    /** Entries of one read of a stream; how long it waits for the first. */
    readEntriesMax: 128,
    readBlockMs: 1_000,
    /** The stream of a member that has gone lives so long. */
    streamMs: 3_600_000,
    /** A Redis that says nothing for so long, or takes so long to connect, counts as away. */
    silentMs: 3_000,
    /** A member starts without its inbox after this, and goes on trying. */
    serveMs: 1_000,
    /** Longest pause between two attempts to reach Redis again. */
    reconnectMsMax: 1_000,
  },
} as const
