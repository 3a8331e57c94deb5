// Updating what phrases find over HTTP: having it made anew, and how far that is. A configuration
// that is written applies by itself (node/graph/custom/); the nodes of a store are found in one
// index, so what is made anew is that of all. Source: specification "Graph", CONTRACT 1.1 "Search
// indexes".

import { Type } from '@sinclair/typebox'
import { RequestError, lacking } from '../../protocol/errors.ts'
import type { GraphSchema } from '../../protocol/graph/schema.ts'
import { suggestion } from '../../protocol/near-names.ts'
import type { Operation, OperationRequest } from '../http/operation.ts'
import { graphAccess } from '../graph/access.ts'
import type { AskedRebuilds } from './asked-rebuilds.ts'

export interface SearchRoutesOptions {
  readonly rebuilds: AskedRebuilds
  /** Of today. */
  readonly schema: () => GraphSchema
}

const PATH = '/resources/graph/search/{node}'
const PERMISSIONS = ['graph/{node}:update-search']

const UPDATE = Type.Object(
  { rebuild: Type.Optional(Type.Boolean({ description: 'Make the index anew from the journal' })) },
  { additionalProperties: false },
)

const PROGRESS = Type.Object({
  state: Type.Union([Type.Literal('idle'), Type.Literal('running')]),
  done: Type.Number({ description: 'Hundredths of what the index that is read has' }),
  total: Type.Number({ description: '100; 0 when idle' }),
  startedAt: Type.Union([Type.Number(), Type.Null()], {
    description: 'Milliseconds since 1970; null when idle',
  }),
})

export function searchRoutes(options: SearchRoutesOptions): Operation[] {
  return [
    {
      method: 'POST',
      path: PATH,
      summary: 'Update what phrases find of a node, while everything goes on',
      access: 'token',
      permissions: PERMISSIONS,
      body: { type: 'json', required: false, schema: UPDATE },
      async handle(request) {
        const { rebuilds, schema } = options
        allow(request, schema())
        const { rebuild = false } = (request.body ?? {}) as { readonly rebuild?: boolean }
        if (rebuild) await rebuilds.rebuild()
        return { status: 202 }
      },
    },
    {
      method: 'GET',
      path: PATH,
      summary: 'Whether what phrases find is being made anew, and how far it is',
      access: 'token',
      permissions: PERMISSIONS,
      response: PROGRESS,
      async handle(request) {
        const { rebuilds, schema } = options
        allow(request, schema())
        return { status: 200, body: await rebuilds.progress() }
      },
    },
  ]
}

/** Throws RequestError 403, and 404 for a node that isn't there. */
function allow({ identity: { acl }, params }: OperationRequest, { nodes }: GraphSchema): void {
  const node = params['node']!
  if (!acl.covers(`graph/${node}`, 'update-search')) {
    throw lacking(`graph/${node}:update-search`)
  }
  if (nodes.has(node)) return
  const { sees } = graphAccess(acl, 'any')
  const seen = [...nodes.values()].filter(({ type }) => sees(type) !== false)
  const names = suggestion(
    node,
    seen.map(({ type }) => type.name),
  )
  throw new RequestError('NOT_FOUND', `there is no node "${node}"${names}`)
}
