// Bounds of the graph: what a query may ask, how it is read, and how the index is fed, embedded and
// on a search engine. Part of LIMITS. Source: CONTRACT 1.4, PROTOCOL 3.13.

import { PATH_LIMITS } from '../protocol/graph/parser.ts'

const KiB = 1024
const MiB = 1024 * KiB

export const GRAPH_LIMITS = {
  // Graph
  filterCharsMax: 8 * KiB,
  /** Of all filters of one query: what plans it is the thread that answers everybody. */
  filtersCharsMax: 16 * KiB,
  /** Nesting of parentheses and `not`; terms of one sum. */
  filterDepthMax: 32,
  navigationDepthMax: 8,
  navigationsMax: 32,
  fieldsMax: 200,
  ...PATH_LIMITS,
  graphLimitDefault: 100,
  graphNestedLimitDefault: 1_000,
  graphLimitMax: 1_000,
  graphDeadlineMs: 10_000,
  /** What a plan may work, once its turn has come; then it is interrupted. */
  graphWorkMs: 5_000,
  /** Embedded: a plan that has worked so long while others wait makes room for them, once. */
  graphQuantumMs: 25,
  /** Light plans that such a thread is given before it has answered; it has one heavy one. */
  graphPlansAheadMax: 32,
  /** A plan that takes longer has no company on its thread, nor have others of its session. */
  graphCompanyMs: 5,
  /** Plans of a session that had such ones get no company on a thread for so long. */
  graphSuspectMs: 1_000,
  graphSuspectsMax: 1_000,
  /** Threads that read the embedded index: one a core, up to the first, or as many as are set. */
  graphReadersDefaultMax: 4,
  graphReadersMax: 16,
  graphResultNodesMax: 100_000,
  /** Documents of one page, where candidates are looked at one by one. */
  graphPageNodes: 1_000,
  /** Parents whose edges one search follows. */
  graphLinksTogether: 1_000,
  /** Searches of one request to the engine. */
  graphSearchesTogether: 32,
  /** Children that a semi-join is turned around for: they say which parents can pass. */
  graphGateChildrenMax: 2_000,
  // Search engine (PROTOCOL 3.13)
  indexBulkBytesMax: 5 * MiB,
  /** Nodes, and UTF-16 units of their JSON, that an actor's own document holds of its others. */
  indexWholeNodesMax: 256,
  indexWholeCharsMax: 128 * KiB,
  /** Such documents of one search. */
  graphPageWholes: 128,
  indexBulkMs: 30_000,
  /** What the engine has no room for is sent again after this long, doubling, so many times. */
  indexBusyMs: 50,
  indexBusyAttemptsMax: 6,
  /** How long what is written may stay unseen, where nobody asks for a refresh. */
  indexRefreshMs: 1_000,
  /** How often it is looked which generation of the index is live, and whether it is whole. */
  indexLookMs: 1_000,
  /** Removed nodes are looked through for old ones this often. */
  indexPurgeEveryMs: 60_000,
  /** In a cluster so long at a time, with every look at the index while some are left. */
  indexPurgeMs: 500,
  /** What is no longer live stays for those who still read it. */
  indexGraceMs: 60_000,
  /** Forced refreshes are at least so far apart. */
  indexRefreshGapMs: 200,
  /** How often the offset of another member's shard is read while somebody waits for it. */
  indexPollMs: 50,
  /** Plans that are run at once by the search engine: in all, of an identity, of a session. */
  graphPlansInFlightMax: 32,
  graphPlansOfIdentityMax: 24,
  graphPlansOfSessionMax: 16,
  /** Requests about whole indexes. */
  engineAdminMs: 30_000,
  /** Graph requests that wait, of all callers and of one identity; more get 429. */
  graphQueueMax: 1_000,
  graphQueueOfIdentityMax: 500,
  consistencyWaitMs: 5_000,
  /** How long a removed node's version is remembered (PROTOCOL 3.13.3). */
  indexTombstoneMs: 24 * 3_600_000,
  /** Removed nodes forgotten in one request or transaction, at least. */
  indexPurgeMax: 1_000,
  /** The embedded index's log, which is copied into its file past it. */
  indexLogBytes: 64 * MiB,
  /** Prepared statements a reader of the embedded index keeps. */
  indexStatementsMax: 256,
  consistencyTokenCharsMax: 4 * KiB,
  /** Requests that wait for the index at once. */
  consistencyWaitersMax: 10_000,
  /** Plans kept by the text of their query. */
  graphPlansMax: 1_000,
  /** Characters of their JSON; as objects they take several times that. */
  graphPlansCharsMax: 4 * MiB,
  /** The same of each reader thread, by their JSON. */
  readerPlansMax: 256,
  readerPlansCharsMax: 1 * MiB,
  /** Past its deadline by this much, a query's thread counts as stuck and is replaced. */
  graphStuckMs: 1_000,
  /** Actors of which a reader thread remembers whether they are deleted. */
  tombstonesKnownMax: 20_000,
  /** A `query` message runs inside a turn, on the thread that answers all requests. */
  actorQueryMs: 500,
  // Projector (PROTOCOL 3.13)
  /** States kept cost more than they save when they outlive the youngest generation of the heap. */
  projectorActorsMax: 1_000,
  projectorActorsBytesMax: 8 * MiB,
  /** A page that several entries of a batch touch is written once: the more, the cheaper each. */
  projectorBatchEntries: 4_000,
  /** Filling an index from its actors gives way to following the log this often. */
  refillStepMs: 500,
  /** How far an index is filled from its actors is kept this often. */
  refillKeptMs: 2_000,
  /** Actors that are read at once to fill an index from them. */
  refillReadsTogether: 16,
  projectorBatchBytes: 16 * MiB,
  projectorBatchMs: 400,
  /** Of these bounds, while somebody waits for the index. */
  projectorAwaitedShare: 0.25,
  /** Entries come together for this long before a batch, unless somebody waits for the index. */
  projectorGatherMs: 250,
  /** Waiting for derived rows that are still under way, or after a failed write. */
  projectorRetryMs: 20,
  projectorRetryMsMax: 5_000,
  projectorParkedMax: 10_000,
  /** The same on the thread that answers requests (in a cluster): a batch, and a slice of it. */
  clusterBatchEntries: 256,
  clusterBatchMs: 50,
  clusterSliceMs: 5,
  /** Groups that were committed here, kept for the projector. */
  recentRowsBytesMax: 16 * MiB,
  /** The most that an acknowledgement is held back because the index lags. */
  ackDelayMsMax: 1_000,
} as const
