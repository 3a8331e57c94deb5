// GraphQL over HTTP, and GraphiQL to try it. Source: CONTRACT 1.4.1,
// https://graphql.github.io/graphql-over-http/draft/.

import { Type } from '@sinclair/typebox'
import { RequestError, statusOf } from '../../../protocol/errors.ts'
import { callerOf } from '../../access/identity.ts'
import { wishesOf } from '../../accept.ts'
import type {
  Operation,
  OperationParameter,
  OperationRequest,
  OperationResponse,
} from '../../http/operation.ts'
import { CONSISTENCY_HEADER } from '../consistency.ts'
import { graphiqlOperations } from './graphiql.ts'
import type { GraphQl } from './loader.ts'
import { type GraphQlParameters, parametersOfBody, parametersOfUrl } from './parameters.ts'
import { Refused } from './refused.ts'
import type { GraphQlAnswer } from './service.ts'

const PERMISSIONS = ['graph/<node>:query', 'graph/<node>:field:<field>']

type Media = 'application/json' | 'application/graphql-response+json'

const consistency: OperationParameter = {
  name: CONSISTENCY_HEADER,
  in: 'header',
  description: 'As of POST /resources/graph.',
  schema: Type.String(),
}

const text = (name: string, description: string, required = false): OperationParameter => ({
  name,
  in: 'query',
  description,
  required,
  schema: Type.String(),
})

const BodySchema = Type.Object({
  query: Type.String(),
  operationName: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  variables: Type.Optional(Type.Union([Type.Object({}), Type.Null()])),
  extensions: Type.Optional(Type.Union([Type.Object({}), Type.Null()])),
})

export function graphqlRoutes(graphql: GraphQl): Operation[] {
  const answerer = new Answerer(graphql)
  return [
    {
      method: 'POST',
      path: '/graphql',
      summary: 'GraphQL over the same graph',
      access: 'token',
      permissions: PERMISSIONS,
      parameters: [consistency],
      body: { shown: () => BodySchema, type: 'json', required: true, handlesFaults: true },
      handle: (request) => answerer.answer(request, () => parametersOfBody(request)),
    },
    {
      method: 'GET',
      path: '/graphql',
      summary: 'GraphQL over the same graph, the query in the query string',
      access: 'token',
      permissions: PERMISSIONS,
      parameters: [
        text('query', 'A GraphQL document.', true),
        text('operationName', 'Which of its operations is meant.'),
        text('variables', 'Their values, a JSON object.'),
        consistency,
      ],
      handle: (request) => answerer.answer(request, () => parametersOfUrl(request)),
    },
    ...graphiqlOperations(),
  ]
}

class Answerer {
  readonly #graphql: GraphQl

  constructor(graphql: GraphQl) {
    this.#graphql = graphql
  }

  async answer(
    request: OperationRequest,
    parameters: () => GraphQlParameters,
  ): Promise<OperationResponse> {
    const media = mediaFor(request.header('accept'))
    if (media === null) {
      throw new RequestError(
        'NOT_ACCEPTABLE',
        'GraphQL is answered as application/graphql-response+json or application/json',
      )
    }
    const service = await this.#graphql.service()
    try {
      const { identity } = request
      const answer = await service.answer({
        ...parameters(),
        acl: identity.acl,
        caller: callerOf(identity),
        consistency: request.header('x-consistency'),
        budgetMs: request.budgetMs,
      })
      return response(200, media, answer)
    } catch (error) {
      if (error instanceof Refused) {
        return response(statusFor(error.code, media), media, { errors: error.errors })
      }
      if (!(error instanceof RequestError)) throw error
      const errors = error.errors.map(({ code, message, details }) => ({
        message,
        extensions: details === undefined ? { code } : { code, details },
      }))
      return response(error.status, media, { errors })
    }
  }
}

function response(
  status: number,
  media: Media,
  answer: GraphQlAnswer | { readonly errors: readonly unknown[] },
): OperationResponse {
  const headers: Record<string, string> = {
    'Content-Type': `${media}; charset=utf-8`,
    Vary: 'Accept',
    ...(status === 405 ? { Allow: 'POST' } : {}),
  }
  return { status, headers, raw: JSON.stringify(answer) }
}

/**
 * The media type of the answer, null: none that is wished for. Who names neither gets the one that
 * clients without a wish know.
 */
function mediaFor(accept: string): Media | null {
  if (accept === '') return 'application/json'
  const wish = wishesOf(accept)
  const own = wish('application/graphql-response+json')
  const json = wish('application/json')
  if (own.exactness === 3 && own.weight > 0 && own.weight >= json.weight) {
    return 'application/graphql-response+json'
  }
  if (json.weight > 0) return 'application/json'
  return own.weight > 0 ? 'application/graphql-response+json' : null
}

/** As application/json a well-formed request is 200, whatever its query is: clients go by it. */
function statusFor(code: string, media: Media): number {
  const status = statusOf(code)
  const isOfQuery = status === 400 || status === 403 || status === 422
  return isOfQuery && media === 'application/json' ? 200 : status
}
