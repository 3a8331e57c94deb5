// What callers see and change of themselves: who they are and what they may, their sessions, their
// personal access tokens. Source: specification "Personal access tokens and IAM", CONTRACT 1.8.

import { Type } from '@sinclair/typebox'
import type { TSchema } from '@sinclair/typebox'
import { LIMITS } from '../../config/limits.ts'
import { lacking, RequestError } from '../../protocol/errors.ts'
import { grantedAces } from '../../protocol/granted-aces.ts'
import { toUuid } from '../../protocol/ids.ts'
import type { Client } from '../access/client.ts'
import type { Identity } from '../access/identity.ts'
import type { Principal } from '../access/principal.ts'
import type { SessionRecord } from '../access/sessions/grants.ts'
import type {
  Operation,
  OperationParameter,
  OperationRequest,
  OperationResponse,
} from '../http/operation.ts'
import { Pats } from './pats.ts'
import type { PatBody, PatsOptions } from './pats.ts'

const PatSchema = Type.Object({
  keyId: Type.String({ format: 'uuid' }),
  description: Type.String(),
  issuedAt: Type.String(),
  lastUsedAt: Type.Union([Type.String(), Type.Null()]),
  expiresAt: Type.String(),
  scope: Type.Array(Type.String()),
  active: Type.Boolean(),
  accessToken: Type.Optional(Type.String({ description: 'Shown this once' })),
})

const SessionSchema = Type.Object({
  sessionId: Type.String({ format: 'uuid' }),
  clientId: Type.String(),
  scope: Type.Union([Type.String(), Type.Null()]),
  createdAt: Type.String(),
  lastUsedAt: Type.String(),
  expiresAt: Type.String(),
  current: Type.Boolean({ description: 'The one that asks' }),
})

const listed = (name: string, item: TSchema): TSchema =>
  Type.Object({
    [name]: Type.Array(item),
    totalCount: Type.Integer(),
    firstCursor: Type.Union([Type.String(), Type.Null()]),
    lastCursor: Type.Union([Type.String(), Type.Null()]),
  })

const PatBodySchema = Type.Object(
  {
    description: Type.Optional(
      Type.String({ maxLength: LIMITS.access.sessionDescriptionCharsMax }),
    ),
    scope: Type.Optional(Type.String({ maxLength: LIMITS.access.formBytesMax })),
    expiresAt: Type.Optional(Type.String({ format: 'timestamp' })),
  },
  {
    additionalProperties: false,
    examples: [{ description: 'Nightly export', scope: 'graph:query' }],
  },
)

const RenewSchema = Type.Object(
  { expiresAt: Type.String({ format: 'timestamp' }) },
  { additionalProperties: false, examples: [{ expiresAt: '2027-01-31T12:00:00.000Z' }] },
)

const PAGES: readonly OperationParameter[] = [
  { name: 'limit', in: 'query', description: 'At most so many, 1 to 100; 50 by default' },
  { name: 'after', in: 'query', description: 'The `lastCursor` of a page: what comes behind it' },
  { name: 'before', in: 'query', description: 'The `firstCursor` of a page: what comes before' },
]

const CLIENT: readonly OperationParameter[] = [
  {
    name: 'X-Client-Id',
    in: 'header',
    description: 'The client that the token is for',
    required: true,
  },
  { name: 'X-Client-Secret', in: 'header', description: 'Its secret', required: true },
]

const READ = ['me:read']
const WRITE = ['me:write']

/** Operations of the station. */
export function meOperations(options: PatsOptions): Operation[] {
  const me = new Me(options)
  return [
    {
      ...{ method: 'GET', path: '/resources/me', access: 'token', permissions: READ },
      summary: 'Who calls, and the ACEs that this token covers',
      handle: (request) => me.who(request),
    },
    {
      ...{ method: 'GET', path: '/resources/me/sessions', access: 'token', permissions: READ },
      summary: "The caller's sessions, the newest first",
      parameters: PAGES,
      response: listed('sessions', SessionSchema),
      handle: (request) => me.sessions(request),
    },
    {
      ...{ method: 'DELETE', path: '/resources/me/sessions/{id}', access: 'token' },
      permissions: WRITE,
      summary: 'End a session of the caller, or a personal access token',
      handle: (request) => me.endSession(request),
    },
    {
      ...{ method: 'GET', path: '/me/pat', access: 'token', permissions: READ },
      summary: "The caller's personal access tokens, the newest first",
      parameters: PAGES,
      response: listed('pats', PatSchema),
      handle: (request) => me.pats(request),
    },
    {
      ...{ method: 'POST', path: '/me/pat', access: 'token', permissions: WRITE },
      summary: 'Make a personal access token; it is shown this once',
      parameters: CLIENT,
      body: { type: 'json', required: true, schema: PatBodySchema, code: 'INVALID_PARAMETERS' },
      response: PatSchema,
      handle: (request) => me.makePat(request),
    },
    {
      ...{ method: 'DELETE', path: '/me/pat/{id}', access: 'token' },
      permissions: WRITE,
      summary: 'Delete a personal access token; itself without the ACE, too',
      handle: (request) => me.deletePat(request),
    },
    {
      ...{ method: 'POST', path: '/me/pat/{id}/renew', access: 'token', permissions: WRITE },
      summary: 'Give a personal access token another end, at most a year ahead',
      body: { type: 'json', required: true, schema: RenewSchema, code: 'INVALID_PARAMETERS' },
      response: PatSchema,
      handle: (request) => me.renewPat(request),
    },
  ]
}

class Me {
  readonly #options: PatsOptions
  readonly #pats: Pats

  constructor(options: PatsOptions) {
    this.#options = options
    this.#pats = new Pats(options)
  }

  who(request: OperationRequest): OperationResponse {
    const { identity } = request
    allow(identity, 'read')
    const { id, kind, acl, session } = identity
    const found = this.#options.system.get<Client | Principal>(kind, id)?.value
    if (found === undefined) throw new RequestError('NOT_FOUND', `there is no ${kind} "${id}"`)
    const entries = grantedAces(acl).map(({ attribute, path, permission }) => ({
      resource: `${attribute === null ? '' : `${attribute}@`}${path.join('/') || '*'}`,
      permission,
    }))
    const { properties, roles, createdAt } = found
    const own = { id, type: kind, properties, roles, createdAt }
    const attributes = 'accessAttributes' in found ? found.accessAttributes : {}
    const { clientId, scope } = session
    const body = { ...own, accessAttributes: attributes, acl: { entries }, clientId, scope }
    return { status: 200, body: { ...body, sessionId: identity.sessionId } }
  }

  async sessions(request: OperationRequest): Promise<OperationResponse> {
    const page = await this.#page(request, false)
    const shown = page.found.map((one) => showSession(one, request.identity))
    return { status: 200, body: { sessions: shown, ...page.around } }
  }

  async pats(request: OperationRequest): Promise<OperationResponse> {
    const page = await this.#page(request, true)
    return {
      status: 200,
      body: { pats: page.found.map((one) => this.#pats.show(one)), ...page.around },
    }
  }

  async makePat(request: OperationRequest): Promise<OperationResponse> {
    allow(request.identity, 'write')
    const made = await this.#pats.make(request, request.body as PatBody)
    return { status: 200, headers: NO_STORE, body: made }
  }

  async renewPat(request: OperationRequest): Promise<OperationResponse> {
    allow(request.identity, 'write')
    const { expiresAt } = request.body as { readonly expiresAt: string }
    return { status: 200, body: await this.#pats.renew(idOf(request), expiresAt, request) }
  }

  async deletePat(request: OperationRequest): Promise<OperationResponse> {
    const { identity, requestId: trace } = request
    if (toUuid(request.params['id']!) !== identity.sessionId) allow(identity, 'write')
    const id = idOf(request)
    await this.#pats.own(id, identity, trace)
    await this.#options.access.sessions.end(id, { trace })
    return { status: 204 }
  }

  async endSession(request: OperationRequest): Promise<OperationResponse> {
    const { identity, requestId: trace } = request
    allow(identity, 'write')
    const id = idOf(request)
    const { sessions } = this.#options.access
    const found = await sessions.read(id, { trace })
    if (found?.identity !== identity.id || found.kind !== identity.kind) {
      throw new RequestError('NOT_FOUND', `you have no session "${id}"`)
    }
    await sessions.end(id, { trace })
    return { status: 204 }
  }

  async #page(request: OperationRequest, isPat: boolean) {
    const { identity, requestId: trace, query } = request
    allow(identity, 'read')
    const { sessions } = this.#options.access
    const owner = { kind: identity.kind, identity: identity.id }
    const all = await sessions.listOf(owner, isPat, { trace })
    const ids = pageOf(all, query)
    const found = await sessions.readAll(ids, { trace })
    const [firstCursor = null, lastCursor = null] = [ids[0], ids.at(-1)]
    return { found, around: { totalCount: all.length, firstCursor, lastCursor } }
  }
}

const NO_STORE = { 'Cache-Control': 'no-store', Pragma: 'no-cache' }
const LIMIT_MAX = 100
const LIMIT = 50

function pageOf(all: readonly string[], query: URLSearchParams): readonly string[] {
  const limitText = query.get('limit')
  const limit = limitText === null ? LIMIT : Number(limitText)
  if (!Number.isInteger(limit) || limit < 1 || limit > LIMIT_MAX) {
    throw invalid('limit', `is a number from 1 to ${LIMIT_MAX}, not "${limitText}"`)
  }
  const placeOf = (name: string): number | null => {
    const cursor = query.get(name)
    if (cursor === null) return null
    const at = all.indexOf(cursor)
    if (at >= 0) return at
    throw invalid(name, 'is no cursor of this list (any more); begin anew without it')
  }
  const [after, before] = [placeOf('after'), placeOf('before')]
  if (before === null) return all.slice((after ?? -1) + 1).slice(0, limit)
  return all.slice((after ?? -1) + 1, before).slice(-limit)
}

function showSession(session: SessionRecord, identity: Identity): object {
  const { sessionId, clientId, scope, createdAtMs, lastUsedAtMs, expiresAtMs } = session
  return {
    ...{ sessionId, clientId, scope },
    createdAt: new Date(createdAtMs).toISOString(),
    lastUsedAt: new Date(lastUsedAtMs).toISOString(),
    expiresAt: new Date(expiresAtMs).toISOString(),
    current: sessionId === identity.sessionId,
  }
}

function idOf({ params }: OperationRequest): string {
  const id = toUuid(params['id']!)
  if (id === null) throw new RequestError('NOT_FOUND', `"${params['id']!}" is no id of a session`)
  return id
}

function allow({ acl }: Identity, permission: 'read' | 'write'): void {
  if (acl.covers('me', permission)) return
  throw lacking(`me:${permission}`)
}

function invalid(name: string, what: string): RequestError {
  return new RequestError('INVALID_PARAMETERS', `${name} ${what}`, { parameter: name })
}
