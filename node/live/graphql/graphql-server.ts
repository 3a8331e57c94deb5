// graphql-transport-ws by the library graphql-ws, whose hooks answer from the graph and from live
// queries. Source: CONTRACT 1.4.1, https://github.com/enisdenjo/graphql-ws.

import {
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
  OperationTypeNode,
  parse,
} from 'graphql'
import { makeServer, type Server, type SubscribePayload } from 'graphql-ws'
import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { type Identity, callerOf } from '../../access/identity.ts'
import { Refused } from '../../graph/graphql/refused.ts'
import type { GraphQlService } from '../../graph/graphql/service.ts'
import type { OperationsConnection } from './operations-connection.ts'
import { type ListOptions, SubscribedList, SubscriptionFailed } from './subscribed-list.ts'

export type GraphQlServer = Server<OperationsConnection>

interface Parts {
  readonly service: GraphQlService
  readonly lists: ListOptions
}

export function graphqlServer(parts: Parts): GraphQlServer {
  return makeServer<Record<string, unknown>, OperationsConnection>({
    // The connection has a clock of its own.
    connectionInitWaitTimeout: 0,
    onConnect: ({ extra, connectionParams }) =>
      guarded(extra, false, () => extra.authenticate(connectionParams?.['authorization'])),
    onPong: ({ extra }) => extra.pong(),
    onSubscribe: ({ extra, subscriptions }, id, payload) => {
      const others = Object.keys(subscriptions).length - 1
      return guarded(extra, OURS, () => prepared(parts, extra, { id, payload, others }))
    },
    execute: ({ contextValue }) => contextValue as ExecutionResult,
    subscribe: ({ contextValue }) => contextValue as SubscribedList,
    onError: (_context, _id, _payload, [error]) => {
      const failed = (error as GraphQLError).originalError
      return failed instanceof SubscriptionFailed ? failed.errors : undefined
    },
  })
}

const OURS: readonly GraphQLError[] = [
  new GraphQLError('a fault of the node', { extensions: { code: 'INTERNAL_ERROR' } }),
]

/** Nothing is thrown into the library: it would be taken for the client's fault. */
async function guarded<T>(
  connection: OperationsConnection,
  instead: T,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run()
  } catch (error) {
    connection.fault(error)
    return instead
  }
}

interface Asked {
  readonly id: string
  readonly payload: SubscribePayload
  /** Operations of the connection that are under way. */
  readonly others: number
}

/** What the library goes on with: the answer of a query, a list of changes, or what is wrong. */
async function prepared(
  parts: Parts,
  connection: OperationsConnection,
  asked: Asked,
): Promise<ExecutionArgs | readonly GraphQLError[]> {
  try {
    return await begun(parts, connection, asked)
  } catch (error) {
    return errorsOf(error)
  }
}

async function begun(
  { service, lists }: Parts,
  connection: OperationsConnection,
  { id, payload, others }: Asked,
): Promise<ExecutionArgs> {
  const { queriesMax, queryIdCharsMax, subscribedCharsMax } = LIMITS.live
  if (others >= queriesMax) {
    throw new RequestError('TOO_LARGE', `a connection has at most ${queriesMax} operations at once`)
  }
  if (connection.idOf(id).length > queryIdCharsMax) {
    throw new RequestError('TOO_LARGE', `an id has at most ${queryIdCharsMax} characters`)
  }
  const identity = identityOf(connection)
  const request = requestOf(payload)
  const { acl } = identity
  const { schema, operation } = service.operationOf({ ...request, acl })
  if (operation.operation === OperationTypeNode.SUBSCRIPTION) {
    const chars = request.query.length + JSON.stringify(request.variables).length
    if (connection.standingChars + chars > subscribedCharsMax) {
      const text = `subscriptions of a connection have at most ${subscribedCharsMax} characters`
      throw new RequestError('TOO_LARGE', text)
    }
    const asks = asking(service, request)
    const list = new SubscribedList(connection, lists, { asks, identity, chars })
    connection.stand(list)
    return { schema, document: A_SUBSCRIPTION, contextValue: list }
  }
  const answer = await service.answer({
    ...request,
    acl,
    caller: callerOf(identity),
    consistency: '',
    budgetMs: LIMITS.graph.deadlineMs,
    isSafe: false,
  })
  identityOf(connection)
  return { schema, document: A_QUERY, contextValue: answer }
}

/** Of a document the library wants to know what kind of operation it is: it keeps no large one. */
const A_SUBSCRIPTION = parse('subscription { any }')
const A_QUERY = parse('{ any }')

type Asks = ReturnType<typeof requestOf>

/** Keeps nothing but the request. */
function asking(service: GraphQlService, request: Asks) {
  return ({ acl }: Identity) => service.subscription({ ...request, acl })
}

function identityOf({ identity }: OperationsConnection): Identity {
  if (identity !== null) return identity
  throw new RequestError('UNAVAILABLE', 'tokens cannot be checked at the moment; try again')
}

function requestOf({ query, operationName, variables }: SubscribePayload) {
  return {
    query,
    operationName: operationName === '' ? null : (operationName ?? null),
    variables: variables ?? {},
  }
}

/** Throws what is a fault of ours. */
function errorsOf(error: unknown): readonly GraphQLError[] {
  if (error instanceof Refused) return error.errors
  if (!(error instanceof RequestError)) throw error
  return error.errors.map(
    ({ code, message, details }) =>
      new GraphQLError(message, {
        extensions: details === undefined ? { code } : { code, details },
      }),
  )
}
