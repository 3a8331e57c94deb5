// What a subscription is told of the list that it follows, as a type of the schema: one type of
// changes for each type of nodes. Source: CONTRACT 1.4.1, 1.10.

import {
  GraphQLBoolean,
  GraphQLEnumType,
  type GraphQLFieldConfig,
  GraphQLID,
  GraphQLInt,
  GraphQLList,
  GraphQLNonNull,
  GraphQLObjectType,
  type GraphQLOutputType,
  GraphQLString,
} from 'graphql'
import type { Meaning } from './meaning.ts'

const KIND = new GraphQLEnumType({
  name: 'ChangeKind',
  values: {
    created: {
      value: 'created',
      description: 'The list as it is; without nodes where `resume` goes on from what was told.',
    },
    added: { value: 'added', description: 'A node came, at `index`.' },
    updated: {
      value: 'updated',
      description: 'A node changed, or moved from `previousIndex` to `index`.',
    },
    removed: { value: 'removed', description: 'The node at `index` went.' },
    reset: { value: 'reset', description: 'The list anew: what was told before is void.' },
  },
})

export function changesType(node: GraphQLObjectType, name: string): GraphQLObjectType {
  return new GraphQLObjectType({
    name,
    description: 'One change of the list, to be made on what was told before.',
    fields: {
      kind: field(new GraphQLNonNull(KIND), 'What has become of the list.'),
      node: field(node, 'What came or changed, as it is now.'),
      nodes: field(
        new GraphQLList(new GraphQLNonNull(node)),
        'The whole list, of created and reset.',
      ),
      id: field(
        GraphQLID,
        'Of the node that came, changed or went; null to who may not see the field.',
      ),
      index: field(GraphQLInt, 'Its place: of one that went, before the change, else after it.'),
      previousIndex: field(GraphQLInt, 'Of one that changed: its place before.'),
      hasMore: field(GraphQLBoolean, 'Of created and reset: more match than the list has.'),
      position: field(
        new GraphQLNonNull(GraphQLString),
        'Where the list is, for `resume` after a reconnect.',
      ),
    },
  })
}

function field(type: GraphQLOutputType, description: string): GraphQLFieldConfig<unknown, unknown> {
  return { type, description, extensions: { graph: { kind: 'part' } satisfies Meaning } }
}
