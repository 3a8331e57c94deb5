// Introspection: answered from the caller's schema by the library, within the bound that nodes
// have. Its lists lead into one another, so a short query may ask for millions of things. Source:
// CONTRACT 1.4.1.

import {
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  executeSync,
  isEnumType,
  isObjectType,
} from 'graphql'
import { LIMITS } from '../../../config/limits.ts'
import type { Selecting } from './selecting.ts'

/** Things that lists of the introspection schema have, on average; `fieldsMax`: of the largest. */
interface Sizes {
  readonly lists: Readonly<Record<string, number>>
  readonly fieldsMax: number
}

const SIZES = new WeakMap<GraphQLSchema, Sizes>()

/** Throws GraphQLError where it would be too much. */
export function checkIntrospection(
  fields: readonly FieldNode[],
  schema: GraphQLSchema,
  selecting: Selecting,
): void {
  const { graphqlCostMax } = LIMITS.graph
  const sizes = sizesOf(schema)
  let cost = 0
  const walk = (nodes: readonly FieldNode[], things: number, inType: boolean): void => {
    for (const [, same] of selecting.fieldsOf(null, nodes)) {
      const name = same[0]!.name.value
      const size = inType && name === 'fields' ? sizes.fieldsMax : sizes.lists[name]
      const found = things * (size ?? 1)
      if (size !== undefined) cost += found
      if (cost > graphqlCostMax) {
        throw new GraphQLError(
          `The query asks for more than ${graphqlCostMax} things of the schema: ask for fewer at once`,
          { nodes: same },
        )
      }
      walk(same, found, ENTRIES.has(name))
    }
  }
  for (const one of fields) walk([one], 1, one.name.value === '__type')
}

/** Fields that lead to one type that the caller chooses. */
const ENTRIES: ReadonlySet<string> = new Set(['__type', 'queryType', 'subscriptionType'])

function sizesOf(schema: GraphQLSchema): Sizes {
  const known = SIZES.get(schema)
  if (known !== undefined) return known
  const types = Object.values(schema.getTypeMap())
  const objects = types.filter((type) => isObjectType(type))
  const fields = objects.map((type) => Object.values(type.getFields()))
  const all = fields.flat()
  const args = all.reduce((sum, field) => sum + field.args.length, 0)
  const values = types.reduce(
    (sum, type) => sum + (isEnumType(type) ? type.getValues().length : 0),
    0,
  )
  const sizes: Sizes = {
    lists: {
      types: types.length,
      directives: schema.getDirectives().length,
      fields: Math.max(1, all.length / types.length),
      args: Math.max(1, args / all.length),
      enumValues: Math.max(1, values / types.length),
      inputFields: 1,
      interfaces: 1,
      possibleTypes: 1,
    },
    fieldsMax: Math.max(...fields.map(({ length }) => length)),
  }
  SIZES.set(schema, sizes)
  return sizes
}

/** The answer to these fields of an operation alone, which the rest of its document may serve. */
export function introspect(
  fields: readonly FieldNode[],
  of: {
    readonly schema: GraphQLSchema
    readonly document: DocumentNode
    readonly operation: OperationDefinitionNode
    readonly variables: Readonly<Record<string, unknown>>
  },
): ExecutionResult {
  const { schema, document, operation, variables } = of
  const alone: OperationDefinitionNode = {
    ...operation,
    selectionSet: { kind: Kind.SELECTION_SET, selections: fields },
  }
  const fragments = document.definitions.filter(({ kind }) => kind === Kind.FRAGMENT_DEFINITION)
  return executeSync({
    schema,
    document: { kind: Kind.DOCUMENT, definitions: [alone, ...fragments] },
    variableValues: variables,
  })
}
