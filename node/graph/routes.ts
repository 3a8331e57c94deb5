// The graph over HTTP: queries by POST and GET, and what there is to ask for. Source: specification
// "Graph", CONTRACT 1.4.

import { Type } from '@sinclair/typebox'
import { RequestError } from '../../protocol/errors.ts'
import { NavigationsSchema } from '../../protocol/graph/navigation-body.ts'
import { parseJson } from '../../protocol/json/json.ts'
import type {
  Operation,
  OperationParameter,
  OperationRequest,
  OperationResponse,
} from '../http/operation.ts'
import { CONSISTENCY_HEADER } from './consistency.ts'
import type { Graph } from './graph.ts'
import { callerOf } from '../access/identity.ts'

/** Of each node that is asked for, and of each field that is shown or sorted by. */
const PERMISSIONS = ['graph/<node>:query', 'graph/<node>:field:<field>']

const JSON_TYPE = { 'Content-Type': 'application/json' } as const

const consistency: OperationParameter = {
  name: CONSISTENCY_HEADER,
  in: 'header',
  description:
    'From the answer to a write: the query sees that write, or waits for it (503 INDEX_BEHIND). ' +
    'Of several writes: their values with commas between them.',
  schema: Type.String(),
}

const explain: OperationParameter = {
  name: 'explain',
  in: 'query',
  description:
    'Answer {plan, engine, timings} instead of the data; needs graph:explain. ' +
    '`false` counts as absent',
}

/** `?explain` and `?explain=true` ask for it, `?explain=false` doesn't. */
function isExplain({ query }: OperationRequest): boolean {
  const asked = query.get('explain')
  return asked !== null && asked !== 'false'
}

/** The operations of the graph. */
export function graphRoutes(graph: Graph): Operation[] {
  const answer = async (
    request: OperationRequest,
    body: unknown,
    text: string,
  ): Promise<OperationResponse> => {
    const asked = {
      body,
      text,
      acl: request.identity.acl,
      caller: callerOf(request.identity),
      consistency: request.header('x-consistency'),
      budgetMs: request.budgetMs,
    }
    if (isExplain(request)) return { status: 200, body: await graph.explain(asked) }
    const { json } = await graph.run(asked)
    return { status: 200, headers: JSON_TYPE, raw: json }
  }
  return [
    {
      method: 'POST',
      path: '/resources/graph',
      summary: 'Query the graph with nested navigations',
      access: 'token',
      permissions: PERMISSIONS,
      body: { schema: NavigationsSchema, type: 'json', required: true, code: 'INVALID_QUERY' },
      parameters: [explain, consistency],
      // Latin-1 keeps every byte apart, and that is all a key of the plan cache needs.
      handle: (request) => answer(request, request.body, latin1(request.bodyBytes)),
    },
    {
      method: 'GET',
      path: '/resources/graph',
      summary: 'Query the graph, the navigations in the query string',
      access: 'token',
      permissions: PERMISSIONS,
      parameters: [
        {
          name: 'q',
          in: 'query',
          description: 'JSON array of navigation objects, URL-encoded.',
          required: true,
          schema: Type.String(),
        },
        explain,
        consistency,
      ],
      handle: (request) => {
        const q = request.query.get('q')
        if (q === null || q === '') {
          throw new RequestError(
            'INVALID_PARAMETERS',
            'the parameter q is missing: it holds the JSON array of navigations, URL-encoded',
            { parameter: 'q' },
          )
        }
        const bytes = Buffer.from(q)
        const body = parseJson(bytes)
        if (body instanceof RequestError) throw body
        return answer(request, body, latin1(bytes))
      },
    },
    {
      method: 'GET',
      path: '/resources/graph/meta',
      summary: 'Base sets, node types, their fields and edges, as far as the token covers them',
      access: 'token',
      handle: ({ identity }) => ({ status: 200, body: graph.meta(identity.acl) }),
    },
  ]
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}
