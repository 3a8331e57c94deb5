// The plan of a graph request: what was asked, with every name resolved, every rule of the contract
// applied and every constant computed. The planner (navigation.ts) knows callers and their
// mistakes; the executions (SQL, memory, Elasticsearch) know none. A plan is plain JSON: it can be
// sent to a worker thread. Source: CONTRACT 1.4, Appendix A.

import type { FieldDef, Storage } from './node-type.ts'
import type { PhraseSearch } from './search/phrase-search.ts'

/** A whole request: one step for each base set that was asked for. */
export interface GraphPlan {
  readonly steps: readonly Step[]
}

/** The plan of one node: of a `query` message, and inside every step that returns nodes. */
export interface NodePlan {
  /** Name of the node type. */
  readonly node: string
  readonly fields: readonly FieldPath[]
  readonly steps: readonly Step[]
}

/** Members to read and to nest the value under: `['invoiceAddress', 'name']`. */
export type FieldPath = readonly string[]

/** One navigation: a base set, or an edge followed from each parent. */
export interface Step {
  /** Member of the answer: `alias`, else `edge`. */
  readonly name: string
  readonly source: StepSource
  /** How nodes of this type are kept. */
  readonly storage: Storage
  /** Member of the doc that holds the node's id. */
  readonly idField: string
  /** Member of the doc that holds the node's place in its parent's lists; null: as it was made. */
  readonly position: string | null
  readonly cardinality: 'single' | 'many'
  /** Node type, the fields to return and the steps below. */
  readonly plan: NodePlan
  /** null: every node matches. */
  readonly filter: Condition | null
  /** What is found, and goes by rank; null: none. */
  readonly phrase: PhraseSearch | null
  /**
   * Keys in order; empty: base sets by node id, nested lists in their parent's order. With a phrase
   * there are none.
   */
  readonly orderBy: readonly SortKey[]
  /** Most nodes to return; one more sets `<name>HasMore`. */
  readonly limit: number
  /** What comes back: nodes, their number, both, or nothing (a mere semi-join). */
  readonly returns: 'nodes' | 'count' | 'both' | 'nothing'
  /** `some` / `none`: the parent counts only with / without a matching child. */
  readonly require: 'any' | 'some' | 'none'
  /**
   * For history nodes as a base set: UUIDs of the actors whose history is read, taken out of the
   * filter on the parent's id; null for all others.
   */
  readonly historyOf: readonly string[] | null
  /** Of history nodes: custom fields, which each gets as it is read; absent: there are none. */
  readonly historyFields?: readonly FieldDef[]
  /**
   * For history nodes whose parents the caller sees only some of, by what is not in the history
   * node: the parents that are seen, as a base set; null: no need to ask.
   */
  readonly historySeen: Step | null
  /** Of a base set: cursors come with its nodes; absent: none. */
  readonly cursor?: {
    /** What they are tied to. */
    readonly of: string
    /** One with each node; false: one of the last, where there are more. */
    readonly each: boolean
  }
  /** Of a base set: nodes behind this place are shown, all are counted. Absent: from the first. */
  readonly after?: CursorPlace
}

/** Where a node stood in a step's order. */
export interface CursorPlace {
  readonly id: string
  readonly actorId: string
  /** Of each sort key; null: missing. With a phrase the rank alone. */
  readonly values: readonly (Scalar | null)[]
}

export type StepSource =
  | { readonly kind: 'set' }
  | {
      readonly kind: 'edge'
      readonly edge: string
      /** Node type of the parent. */
      readonly parent: string
      /** Parent's doc[from] equals this node's doc[to]; a missing value leads nowhere. */
      readonly from: string
      readonly to: string
      /** Both are nodes of one actor. */
      readonly sameActor: boolean
      /** Nodes between the two; absent: none. */
      readonly through?: Link
    }

/** Nodes of type `node`, kept as rows: parent's doc[from] to link's, link's doc[to] to node's. */
export interface Link {
  readonly node: string
  readonly idField: string
  readonly from: string
  readonly to: string
  /** Links that count; null: all. */
  readonly filter: Condition | null
}

export interface SortKey {
  readonly path: FieldPath
  readonly direction: 'asc' | 'desc'
  /**
   * How values are compared; missing ones come last in both directions. `any` (members of
   * `dynamic`): booleans, then numbers, then text (reversed by desc); all else reads as missing.
   */
  readonly as: ValueKind | 'any'
}

/** What executions compare: instants, dates, UUIDs and enums are text in their canonical form. */
export type ValueKind = 'text' | 'number' | 'boolean'

export type Scalar = string | number | boolean

export type CompareOperator = '==' | '!=' | '<' | '<=' | '>' | '>='

export type TextOperator = 'contains' | 'startsWith' | 'endsWith'

/**
 * A truth about one node. There is no third value: an operand that is missing, or of another kind
 * than `as`, makes its comparison false, and `not` is plain negation (CONTRACT Appendix A).
 */
export type Condition =
  | { readonly kind: 'constant'; readonly value: boolean }
  | { readonly kind: 'and'; readonly of: readonly Condition[] }
  | { readonly kind: 'or'; readonly of: readonly Condition[] }
  | { readonly kind: 'not'; readonly of: Condition }
  | {
      readonly kind: 'compare'
      readonly operator: CompareOperator
      /** `any`: two members of `dynamic`, equal or in order only when of one kind. */
      readonly as: ValueKind | 'any'
      readonly left: Operand
      readonly right: Operand
    }
  /** `x == nothing`: absent or null. */
  | { readonly kind: 'missing'; readonly path: FieldPath }
  /** Equal to one of the values, which are all of one kind and at least one. */
  | {
      readonly kind: 'in'
      readonly as: ValueKind
      readonly operand: Operand
      readonly values: readonly Scalar[]
    }
  /** An array member holds one (`anyof`) or all (`allof`) of the values, all of one kind. */
  | {
      readonly kind: 'array'
      readonly operator: 'anyof' | 'allof'
      readonly path: FieldPath
      readonly as: ValueKind
      readonly values: readonly Scalar[]
    }
  | {
      readonly kind: 'text'
      readonly operator: TextOperator
      readonly left: Operand
      readonly right: Operand
    }
  /** A boolean value by itself. */
  | { readonly kind: 'true'; readonly operand: Operand }

/** A value of a node, or a constant. Missing operands make missing results. */
export type Operand =
  | { readonly kind: 'value'; readonly value: Scalar }
  | { readonly kind: 'field'; readonly path: FieldPath; readonly type: OperandType }
  /** Numbers, added or subtracted; what is not a number (NaN) is missing. */
  | {
      readonly kind: 'sum'
      readonly operator: '+' | '-'
      readonly left: Operand
      readonly right: Operand
    }
  /** Milliseconds since 1970 of an instant or of a date's midnight (UTC), a number. */
  | { readonly kind: 'millis'; readonly of: Operand }
  /** A date as the instant of its midnight, text. */
  | { readonly kind: 'midnight'; readonly of: Operand }
  /** A condition's truth as a boolean, never missing. */
  | { readonly kind: 'truth'; readonly of: Condition }

/**
 * What a field operand holds. `dynamic`: any JSON, to be read as what the comparison asks for, a
 * value of another kind reads as missing.
 */
export type OperandType = 'text' | 'number' | 'boolean' | 'instant' | 'date' | 'dynamic'

/** Answer of a plan: a member for each step, as CONTRACT 1.4 "Response shape" says. */
export type GraphResult = Readonly<Record<string, unknown>>
