// Bounds of the graph: what a query may ask (`protocol/graph/`) and how it is read (`node/graph/`).
// Part of LIMITS. Source: CONTRACT 1.4, PROTOCOL 3.13.

import { CURSOR_LIMITS } from '../../protocol/graph/cursor.ts'
import { EXPLAIN_LIMITS } from '../../protocol/graph/explain/trace.ts'
import { PATH_LIMITS } from '../../protocol/graph/filter/parser.ts'
import { SEARCH_LIMITS } from '../../protocol/graph/search/search-index.ts'

const KiB = 1024
const MiB = 1024 * KiB

export const GRAPH_LIMITS = {
  // What a query may ask
  /** One filter. */
  filterCharsMax: 8 * KiB,
  /** Of all filters of one query: what plans it is the thread that answers everybody. */
  filtersCharsMax: 16 * KiB,
  /** Nesting of parentheses and `not`; terms of one sum. */
  filterDepthMax: 32,
  /** Levels of navigations in one another, and all of them together. */
  navigationDepthMax: 8,
  navigationsMax: 32,
  /** Fields that one navigation asks for. */
  fieldsMax: 200,
  ...PATH_LIMITS,
  ...CURSOR_LIMITS,
  ...SEARCH_LIMITS,
  ...EXPLAIN_LIMITS,
  /**
   * `limit` of a navigation that has none: of the first level, of a nested one; and the highest.
   */
  limitDefault: 100,
  nestedLimitDefault: 1_000,
  limitMax: 1_000,
  /** Nodes of one answer, all levels. */
  resultNodesMax: 100_000,
  /** A token of consistency (`X-Consistency`). */
  consistencyTokenCharsMax: 4 * KiB,
  /** Parts of a process that are told of a new schema: each is there once. */
  schemaFollowersMax: 16,
  /** Times that a query is planned, where the schema changes under it. */
  planTriesMax: 3,
  // What the registry adds to it
  /** Custom fields and edges of a node type, and characters of their names. */
  customFieldsMax: 50,
  customEdgesMax: 20,
  customNameCharsMax: 64,
  /** Values that are listed for one enum. */
  enumValuesMax: 1_000,
  /** Requests that wait for the schema at once, and how often it is looked at for them. */
  schemaWaitersMax: 1_000,
  schemaLookMs: 25,
  // How long it may take
  /** A query is answered within this, waiting included. */
  deadlineMs: 10_000,
  /** What a plan may work, once its turn has come; then it is interrupted. */
  workMs: 5_000,
  /** Past its deadline by this much, a query's thread counts as stuck and is replaced. */
  stuckMs: 1_000,
  // Threads that read the embedded index
  /** One a core, up to the first, or as many as are set. */
  readersDefaultMax: 4,
  readersMax: 16,
  /** Embedded: a plan that has worked so long while others wait makes room for them, once. */
  quantumMs: 25,
  /** Light plans that such a thread is given before it has answered; it has one heavy one. */
  plansAheadMax: 32,
  /** A plan that takes longer has no company on its thread, nor have others of its session. */
  companyMs: 5,
  /** Plans of a session that had such ones get no company on a thread for so long. */
  suspectMs: 1_000,
  suspectsMax: 1_000,
  /** Plans kept by each reader thread, and the characters of their JSON. */
  readerPlansMax: 256,
  readerPlansCharsMax: 1 * MiB,
  /** Actors of which a reader thread remembers whether they are deleted. */
  tombstonesKnownMax: 20_000,
  // Plans
  /** Plans kept by the text of their query. */
  plansMax: 1_000,
  /** Characters of their JSON; as objects they take several times that. */
  plansCharsMax: 4 * MiB,
  /** Plans that are run at once by the search engine: in all, of an identity, of a session. */
  plansInFlightMax: 32,
  plansOfIdentityMax: 24,
  plansOfSessionMax: 16,
  /** Graph requests that wait, of all callers and of one identity; more get 429. */
  queueMax: 1_000,
  queueOfIdentityMax: 500,
  // GraphQL
  /** A request, its variables included. */
  graphqlBytesMax: 1 * MiB,
  /** Words, signs and comments of a document, and brackets in one another: what a parser works. */
  graphqlTokensMax: 4_000,
  graphqlBracketsMax: 100,
  /** Of an operation with its fragments in place. */
  graphqlDepthMax: 15,
  graphqlAliasesMax: 100,
  graphqlSelectionsMax: 2_000,
  /** Of a document: what validation compares, each with each. */
  graphqlNameTimesMax: 100,
  graphqlDirectivesMax: 100,
  /** Nodes that an operation may bring by its limits; things of the schema that it may ask for. */
  graphqlCostMax: 100_000,
  /** `limit` of a nested list that has none. */
  graphqlNestedLimitDefault: 50,
  /** Errors that an answer tells, and lists that it tells to be cut. */
  graphqlErrorsMax: 20,
  graphqlCutMax: 100,
  /** Nodes of an answer that are made in one go. */
  graphqlSliceNodes: 2_000,
  /** Schemas that are kept, one for each set of permissions, and documents of all together. */
  graphqlSchemasMax: 64,
  graphqlDocumentsMax: 1_000,
  graphqlDocumentsCharsMax: 1024 * KiB,
  // The `query` message of an actor
  /** A `query` message runs inside a turn, on the thread that answers all requests. */
  actorQueryMs: 500,
  /** History that one `query` message looks through, as JSON. */
  actorHistoryBytesMax: 16 * MiB,
} as const
