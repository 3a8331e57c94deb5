// The parameters of a request of GraphQL over HTTP, checked: refusals say what would be right.
// Source: https://graphql.github.io/graphql-over-http/draft/ "Request Parameters".

import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import { parseJson } from '../../../protocol/json/json.ts'
import type { OperationRequest } from '../../http/operation.ts'

export interface GraphQlParameters {
  readonly query: string
  readonly operationName: string | null
  readonly variables: Readonly<Record<string, unknown>>
  /** By GET. */
  readonly isSafe: boolean
}

export function parametersOfBody(request: OperationRequest): GraphQlParameters {
  if (request.bodyFault !== null) throw request.bodyFault
  if (request.header('content-type') === '') {
    throw new RequestError('UNSUPPORTED_MEDIA_TYPE', 'send Content-Type: application/json')
  }
  const { graphqlBytesMax } = LIMITS.graph
  if (request.bodyBytes.length > graphqlBytesMax) {
    throw new RequestError(
      'INVALID_QUERY',
      `a GraphQL request has at most ${graphqlBytesMax} bytes, found ${request.bodyBytes.length}`,
    )
  }
  const { body } = request
  if (!isObject(body)) {
    throw new RequestError('MALFORMED_REQUEST', 'the body is no JSON object with a query in it')
  }
  return checked(body, false)
}

export function parametersOfUrl({ query: url }: OperationRequest): GraphQlParameters {
  return checked(
    {
      query: url.get('query') ?? undefined,
      operationName: url.get('operationName') ?? undefined,
      variables: jsonOf(url.get('variables'), 'variables'),
      extensions: jsonOf(url.get('extensions'), 'extensions'),
    },
    true,
  )
}

function jsonOf(value: string | null, name: string): unknown {
  if (value === null || value === '') return undefined
  const parsed = parseJson(Buffer.from(value))
  if (parsed instanceof RequestError) {
    throw new RequestError('MALFORMED_REQUEST', `${name} is no JSON`, { member: name })
  }
  return parsed
}

function checked(body: Record<string, unknown>, isSafe: boolean): GraphQlParameters {
  const { query, operationName = null, variables = null, extensions = null } = body
  if (typeof query !== 'string' || query === '') throw wrong('query', 'a GraphQL document')
  if (operationName !== null && typeof operationName !== 'string') {
    throw wrong('operationName', 'the name of an operation')
  }
  if (variables !== null && !isObject(variables)) throw wrong('variables', 'a JSON object')
  if (extensions !== null && !isObject(extensions)) throw wrong('extensions', 'a JSON object')
  return {
    query,
    operationName: operationName === '' ? null : operationName,
    variables: variables ?? {},
    isSafe,
  }
}

function wrong(member: string, right: string): RequestError {
  return new RequestError('MALFORMED_REQUEST', `${member} must be ${right}`, { member })
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
