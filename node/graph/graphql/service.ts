// GraphQL over the graph: an operation is parsed, validated against the caller's schema, and asked
// of the graph as one query, whatever it selects. Permissions, bounds, consistency and the queue
// are the graph's own. Source: CONTRACT 1.4.1, https://spec.graphql.org/October2021/.

import {
  type DocumentNode,
  type ExecutionResult,
  type FieldNode,
  GraphQLError,
  type GraphQLSchema,
  type OperationDefinitionNode,
  OperationTypeNode,
  getOperationAST,
  getVariableValues,
  specifiedRules,
  validate,
} from 'graphql'
import { LIMITS } from '../../../config/limits.ts'
import { type ErrorItem, RequestError } from '../../../protocol/errors.ts'
import type { NavigationBody } from '../../../protocol/graph/navigation-body.ts'
import type { Graph, GraphRequest } from '../graph.ts'
import { type Change, shapedChange } from './changes.ts'
import { parseDocument } from './document.ts'
import { shaped } from './form.ts'
import { checkIntrospection, introspect } from './introspection.ts'
import { Refused } from './refused.ts'
import { Schemas } from './schemas.ts'
import { Selecting } from './selecting.ts'
import {
  type ChangesTranslation,
  type FieldPathInAnswer,
  translate,
  translateChanges,
} from './translate.ts'

/** One request of GraphQL over HTTP, well formed. */
export interface GraphQlRequest extends Pick<
  GraphRequest,
  'acl' | 'caller' | 'consistency' | 'budgetMs'
> {
  readonly query: string
  readonly operationName: string | null
  readonly variables: Readonly<Record<string, unknown>>
  /** By GET, which nobody expects to change anything. */
  readonly isSafe: boolean
}

/** What is answered; without `data` nothing has been run. */
export interface GraphQlAnswer {
  readonly errors?: readonly GraphQLError[]
  readonly data?: Readonly<Record<string, unknown>>
  readonly extensions?: Readonly<Record<string, unknown>>
}

export class GraphQlService {
  readonly #graph: Graph
  readonly #schemas: Schemas
  readonly #pause: () => Promise<void>

  /** `pause` lets others have their turn. */
  constructor(graph: Graph, pause: () => Promise<void>) {
    this.#graph = graph
    this.#schemas = new Schemas(graph)
    this.#pause = pause
  }

  /** Rejects with Refused; with RequestError where no query would be answered to this caller. */
  async answer(request: GraphQlRequest): Promise<GraphQlAnswer> {
    const budgetMs = await this.#followed(request)
    const { operation, ...others } = this.#chosen(request)
    if (operation.operation !== OperationTypeNode.QUERY) {
      const isChange = operation.operation === OperationTypeNode.MUTATION
      const code = request.isSafe && isChange ? 'METHOD_NOT_ALLOWED' : 'INVALID_QUERY'
      throw refused(code, [noQuery(operation)])
    }
    const selecting = selectingOf(request, { operation, ...others })
    return this.#run({ ...request, budgetMs }, { operation, ...others, selecting })
  }

  /** What operation is meant. Throws as `answer` rejects. */
  operationOf(request: OperationChoice): Chosen {
    return this.#chosen(request)
  }

  /** A subscription, by what its caller may see at the moment. Throws as `answer` rejects. */
  subscription(request: OperationChoice & Pick<GraphQlRequest, 'variables'>): Subscription {
    const chosen = this.#chosen(request)
    const { schema, operation } = chosen
    const type = schema.getSubscriptionType()
    if (!type) throw invalid([new GraphQLError('The token covers no list that can be followed')])
    const selecting = selectingOf(request, chosen)
    const [one] = selecting.rootFields(type, operation.selectionSet)
    if (one === undefined) {
      throw invalid([new GraphQLError('The subscription selects nothing', { nodes: [operation] })])
    }
    const [key, nodes] = one
    return subscriptionOf(
      key,
      refusing(() => translateChanges(type, key, { nodes, selecting })),
    )
  }

  #chosen(request: OperationChoice): Chosen {
    const { schema, document } = this.#prepared(request)
    return { schema, document, operation: operationOf(document, request.operationName) }
  }

  /** A field that was defined just before is in the schema that the query is held against. */
  async #followed(request: GraphQlRequest): Promise<number> {
    try {
      return await this.#graph.followed(request)
    } catch (error) {
      throw refusedByGraph(error, NOWHERE)
    }
  }

  #prepared({ acl, query }: Pick<GraphQlRequest, 'acl' | 'query'>): {
    readonly schema: GraphQLSchema
    readonly document: DocumentNode
  } {
    const kept = this.#schemas.of(acl)
    if (kept === null) {
      throw new RequestError(
        'FORBIDDEN_NODE',
        'The token covers no node of the graph: graph/<node>:query is needed',
      )
    }
    const { schema } = kept
    const known = this.#schemas.document(kept, query)
    if (known !== null) return { schema, document: known }
    const document = refusing(() => parseDocument(query))
    const errors = validate(schema, document, specifiedRules, {
      maxErrors: LIMITS.graph.graphqlErrorsMax,
    })
    if (errors.length > 0) throw invalid(errors)
    this.#schemas.keep(kept, query, document)
    return { schema, document }
  }

  async #run(request: GraphQlRequest, operation: Operation): Promise<GraphQlAnswer> {
    const { schema, selecting } = operation
    const type = schema.getQueryType()!
    const selected = selecting.rootFields(type, operation.operation.selectionSet)
    const own = new Map(selected)
    const meta: FieldNode[] = []
    for (const [key, nodes] of selected) {
      if (!INTROSPECTION.has(nodes[0]!.name.value)) continue
      own.delete(key)
      meta.push(...nodes)
    }
    const { navigations, form, places } = refusing(() => {
      checkIntrospection(meta, schema, selecting)
      return translate(type, own, selecting)
    })
    const raw = navigations.length === 0 ? {} : await this.#ask(request, navigations, places)
    const { data, errors, cut } = await shaped(raw, form, this.#pause)
    const about = meta.length === 0 ? {} : introspect(meta, { ...operation, ...request })
    const all = [...errors, ...(about.errors ?? [])]
    return {
      ...(all.length === 0 ? {} : { errors: all }),
      data: inOrder(selected.keys(), { ...data, ...about.data }),
      ...(cut.length === 0 ? {} : { extensions: { cut } }),
    }
  }

  async #ask(
    { acl, caller, consistency, budgetMs }: GraphQlRequest,
    body: unknown,
    places: ReadonlyMap<string, FieldPathInAnswer>,
  ): Promise<Record<string, unknown>> {
    // As the bytes of a body: the keys of the plans that are kept are such texts.
    const text = Buffer.from(JSON.stringify(body)).toString('latin1')
    try {
      const { json } = await this.#graph.run({ body, text, acl, caller, consistency, budgetMs })
      return JSON.parse(json) as Record<string, unknown>
    } catch (error) {
      throw refusedByGraph(error, places)
    }
  }
}

type OperationChoice = Pick<GraphQlRequest, 'acl' | 'query' | 'operationName'>

/** An operation of a document that is valid. */
export interface Chosen {
  readonly schema: GraphQLSchema
  readonly document: DocumentNode
  readonly operation: OperationDefinitionNode
}

interface Operation extends Chosen {
  readonly selecting: Selecting
}

/** A list to be followed, and how its changes are told. */
export interface Subscription {
  /** As `createLiveQuery` takes it. */
  readonly query: NavigationBody
  readonly resume: string | null
  result(change: Change): ExecutionResult
  /** Refused, where the error is the graph's refusal of `query`. */
  refusal(error: unknown): unknown
}

/** Nothing of the document is kept: a subscription stands for long. */
function subscriptionOf(key: string, translation: ChangesTranslation): Subscription {
  const { query, resume, form, places } = translation
  return {
    query,
    resume,
    result: (change) => shapedChange(change, key, form),
    refusal: (error) => refusedByGraph(error, places),
  }
}

function selectingOf(
  { variables }: Pick<GraphQlRequest, 'variables'>,
  { schema, document, operation }: Chosen,
): Selecting {
  const definitions = operation.variableDefinitions ?? []
  const coerced = getVariableValues(schema, definitions, variables, {
    maxErrors: LIMITS.graph.graphqlErrorsMax,
  })
  if (coerced.coerced === undefined) throw refused('INVALID_PARAMETERS', coerced.errors)
  return new Selecting(document, coerced.coerced)
}

const INTROSPECTION: ReadonlySet<string> = new Set(['__schema', '__type'])

function operationOf(document: DocumentNode, name: string | null): OperationDefinitionNode {
  const found = getOperationAST(document, name)
  if (found) return found
  throw invalid([
    new GraphQLError(
      name === null
        ? 'The query has several operations: say in operationName which one is meant'
        : `The query has no operation ${JSON.stringify(name.slice(0, 100))}`,
    ),
  ])
}

function noQuery(operation: OperationDefinitionNode): GraphQLError {
  const text =
    operation.operation === OperationTypeNode.SUBSCRIPTION
      ? 'This is a subscription: it is answered over a WebSocket at this path, by the subprotocol ' +
        'graphql-transport-ws'
      : 'This is a mutation; only queries and subscriptions are answered here: the graph is ' +
        'written by what is done to actors'
  return new GraphQLError(text, { nodes: [operation] })
}

function invalid(errors: readonly GraphQLError[]): Refused {
  return refused('INVALID_QUERY', errors)
}

function refused(code: string, errors: readonly GraphQLError[]): Refused {
  const told = errors.slice(0, LIMITS.graph.graphqlErrorsMax)
  return new Refused(
    code,
    told.map((error) => coded(error, code)),
  )
}

function refusing<T>(act: () => T): T {
  try {
    return act()
  } catch (error) {
    if (error instanceof GraphQLError) throw invalid([error])
    throw error
  }
}

function coded(error: GraphQLError, code: string): GraphQLError {
  const { message, nodes = null, source = null, positions = null, path = null } = error
  return new GraphQLError(message, { nodes, source, positions, path, extensions: { code } })
}

/** What isn't the graph's refusal comes back as it is. */
function refusedByGraph(error: unknown, places: ReadonlyMap<string, FieldPathInAnswer>): unknown {
  if (!(error instanceof RequestError)) return error
  const errors = error.errors.map((item) => graphError(item, places))
  return new Refused(error.errors[0]!.code, errors)
}

const NOWHERE: ReadonlyMap<string, FieldPathInAnswer> = new Map()

/** A refusal of the graph, which names places of navigation objects, at fields of the answer. */
function graphError(
  { code, message, details = {} }: ErrorItem,
  places: ReadonlyMap<string, FieldPathInAnswer>,
): GraphQLError {
  const { path: place, ...others } = details
  const path = typeof place === 'string' ? fieldAt(place.slice(1), places) : null
  const text = message.replaceAll(
    /\/(\d[\w/]*)|\b(__e\d+)\b/g,
    (all, at?: string, alias?: string) => fieldAt(at ?? alias!, places)?.join('.') ?? all,
  )
  return new GraphQLError(text, {
    path,
    extensions: { code, ...(Object.keys(others).length === 0 ? {} : { details: others }) },
  })
}

function fieldAt(
  place: string,
  places: ReadonlyMap<string, FieldPathInAnswer>,
): FieldPathInAnswer | null {
  for (let at = place; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('/')))) {
    const field = places.get(at)
    if (field !== undefined) return field
  }
  return null
}

function inOrder(
  keys: Iterable<string>,
  data: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(Array.from(keys, (key) => [key, data[key] ?? null]))
}
