// What fields and types of a caller's schema are to the graph. Source: CONTRACT 1.4.1.

import type { GraphQLField, GraphQLObjectType } from 'graphql'

/** What a field of the schema is to the graph. */
export type Meaning =
  /** A value: `field` as navigation objects write it, `member` where the answer has it. */
  | { readonly kind: 'leaf'; readonly field: string; readonly member: string }
  /** A record with members of its own; by the field `any` it is found out whether it is there. */
  | { readonly kind: 'object'; readonly member: string; readonly any: string }
  /** A member of a `dynamic`, by the argument `name`. */
  | { readonly kind: 'dynamic-member'; readonly field: string }
  /** A base set or an edge. */
  | { readonly kind: 'nodes'; readonly edge: string; readonly isMany: boolean }
  /** The changes of a base set. */
  | { readonly kind: 'changes'; readonly edge: string }
  /** A page of a base set. */
  | { readonly kind: 'connection'; readonly edge: string }
  /** A part of a connection, or of what hangs on it. */
  | { readonly kind: 'part' }

/** What a type of nodes has, so that something can be asked for where no field is selected. */
export interface NodeTypeMeaning {
  /** A field that the caller may read; null: there is none. */
  readonly someField: string | null
}

export function meaningOf(field: GraphQLField<unknown, unknown>): Meaning {
  return field.extensions['graph'] as Meaning
}

export function nodeTypeMeaning(type: GraphQLObjectType): NodeTypeMeaning {
  return type.extensions['graph'] as NodeTypeMeaning
}
