// The arguments of sets, edges and connections: those of navigation objects by the same names, in
// the graph's own grammar. Source: CONTRACT 1.4, 1.4.1.

import {
  type GraphQLArgumentConfig,
  GraphQLEnumType,
  type GraphQLFieldConfigArgumentMap,
  GraphQLInt,
  GraphQLString,
} from 'graphql'
import { LIMITS } from '../../../config/limits.ts'

const FILTER: GraphQLArgumentConfig = {
  type: GraphQLString,
  description: `A condition in the graph's filter grammar: orderTotal > 100 and tags anyof ['b2b'].`,
}
const PHRASE: GraphQLArgumentConfig = {
  type: GraphQLString,
  description:
    'Words that its search index must have, best hits first: a trailing * finds by the beginning, ' +
    'quotes find words as they stand. Not together with orderBy.',
}
const ORDER_BY: GraphQLArgumentConfig = {
  type: GraphQLString,
  description: 'A list with commas of fields, each with asc or desc: createdAt desc.',
}

const REQUIRE: GraphQLArgumentConfig = {
  type: new GraphQLEnumType({
    name: 'Require',
    description: 'Which parents are in the answer.',
    values: {
      any: { value: 'any', description: 'All.' },
      some: { value: 'some', description: 'Those with a matching child.' },
      none: { value: 'none', description: 'Those without one.' },
    },
  }),
  description: 'Keeps only parents with (some) or without (none) a match.',
}

function count(defaultValue: number): GraphQLArgumentConfig {
  const { limitMax } = LIMITS.graph
  return { type: GraphQLInt, defaultValue, description: `At most ${limitMax}.` }
}

/** Of a base set, or of an edge. */
export function argumentsOf(of: {
  readonly isMany: boolean
  readonly isRoot: boolean
}): GraphQLFieldConfigArgumentMap {
  const { limitDefault, graphqlNestedLimitDefault } = LIMITS.graph
  const which = { filter: FILTER, phrase: PHRASE }
  if (of.isRoot) return { ...which, orderBy: ORDER_BY, limit: count(limitDefault) }
  if (!of.isMany) return { ...which, require: REQUIRE }
  const limit = count(graphqlNestedLimitDefault)
  return { ...which, orderBy: ORDER_BY, limit, require: REQUIRE }
}

/** Of a subscription. */
export function changesArguments(): GraphQLFieldConfigArgumentMap {
  const { queryLimitMax } = LIMITS.live
  return {
    filter: FILTER,
    orderBy: ORDER_BY,
    limit: {
      type: GraphQLInt,
      defaultValue: LIMITS.graph.limitDefault,
      description: `How many nodes the list has; at most ${queryLimitMax}.`,
    },
    resume: {
      type: GraphQLString,
      description: 'A position that the same subscription has told: goes on from there if it can.',
    },
  }
}

/** `isShown`: its nodes can be seen, not only counted. */
export function connectionArguments(isShown: boolean): GraphQLFieldConfigArgumentMap {
  const which = { filter: FILTER, phrase: PHRASE }
  if (!isShown) return which
  return {
    ...which,
    orderBy: ORDER_BY,
    first: count(LIMITS.graph.limitDefault),
    after: { type: GraphQLString, description: 'A cursor of the same query: what is behind it.' },
  }
}
