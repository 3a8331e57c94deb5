// The fields of selections with fragments in place, and without what @skip and @include leave out:
// what the specification of GraphQL calls CollectFields. Our types are objects only, so a fragment
// fits where its type is the very one. Source: https://spec.graphql.org/October2021/ 6.3.2.

import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLIncludeDirective,
  type GraphQLObjectType,
  GraphQLSkipDirective,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
  getDirectiveValues,
} from 'graphql'

/** Fields by their name in the answer; several of one name are one field whose selections join. */
export type Selected = ReadonlyMap<string, readonly FieldNode[]>

type Variables = Readonly<Record<string, unknown>>

export class Selecting {
  readonly variables: Variables
  readonly #fragments = new Map<string, FragmentDefinitionNode>()

  constructor(document: DocumentNode, variables: Variables) {
    this.variables = variables
    for (const one of document.definitions) {
      if (one.kind === Kind.FRAGMENT_DEFINITION) this.#fragments.set(one.name.value, one)
    }
  }

  /** What is selected below these fields; `type` null: fragments of all types. */
  fieldsOf(type: GraphQLObjectType | null, nodes: readonly FieldNode[]): Selected {
    return this.#collected(
      type,
      nodes.flatMap(({ selectionSet }) => selectionSet ?? []),
    )
  }

  rootFields(type: GraphQLObjectType, selectionSet: SelectionSetNode): Selected {
    return this.#collected(type, [selectionSet])
  }

  #collected(type: GraphQLObjectType | null, sets: readonly SelectionSetNode[]): Selected {
    const selected = new Map<string, FieldNode[]>()
    const visited = new Set<string>()
    const collect = (selections: readonly SelectionNode[]): void => {
      for (const one of selections) {
        if (!this.#isIncluded(one)) continue
        if (one.kind === Kind.FIELD) {
          const key = (one.alias ?? one.name).value
          const same = selected.get(key)
          if (same === undefined) selected.set(key, [one])
          else same.push(one)
          continue
        }
        const fragment =
          one.kind === Kind.INLINE_FRAGMENT ? one : this.#unseen(one.name.value, visited)
        if (fragment === undefined) continue
        const on = fragment.typeCondition?.name.value
        if (type === null || on === undefined || on === type.name) {
          collect(fragment.selectionSet.selections)
        }
      }
    }
    for (const set of sets) collect(set.selections)
    return selected
  }

  #unseen(name: string, visited: Set<string>): FragmentDefinitionNode | undefined {
    if (visited.has(name)) return undefined
    visited.add(name)
    return this.#fragments.get(name)
  }

  #isIncluded(node: SelectionNode): boolean {
    if (node.directives === undefined || node.directives.length === 0) return true
    if (getDirectiveValues(GraphQLSkipDirective, node, this.variables)?.['if'] === true)
      return false
    return getDirectiveValues(GraphQLIncludeDirective, node, this.variables)?.['if'] !== false
  }
}
