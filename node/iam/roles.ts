// Administration of roles. Source: specification "Personal access tokens and IAM", CONTRACT 1.8.

import type { SystemEntry } from '../../cluster/actor-system.ts'
import { formatAce, parseAce } from '../../protocol/ace.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { Role } from '../access/role.ts'
import type { Operation, OperationRequest, OperationResponse } from '../http/operation.ts'
import { etagOf } from '../system-actor.ts'
import { allow, answerOf, checkTag, IF_MATCH, PAGE_PARAMETERS } from './asking.ts'
import { ROLE_KEY, RoleBody } from './bodies.ts'
import { changesOperation } from './changes.ts'
import { Directory, readPageQuery } from './directory.ts'
import type { IamParts } from './parts.ts'
import { BUILT_IN_ROLES, entryOf, shownRole } from './shown.ts'
import { tagsOf } from './writer.ts'

const RESOURCE = 'iam/roles'
const PATH = '/resources/iam/roles'

export class RoleStation {
  readonly #parts: IamParts
  readonly #directory: Directory<Role>

  constructor(parts: IamParts) {
    this.#parts = parts
    this.#directory = new Directory(parts.actorSystem.system, 'role', ({ description }) => ({
      roles: [],
      texts: [description],
    }))
  }

  operations(): Operation[] {
    const one = `${PATH}/{roleKey}`
    const access = 'token'
    return [
      {
        ...{ method: 'GET', path: PATH, access },
        summary: 'Roles, a page of them, by their keys; the first page has the built-in ones, too',
        permissions: [`${RESOURCE}:read`],
        parameters: PAGE_PARAMETERS,
        handle: (request) => this.#list(request),
      },
      {
        ...{ method: 'GET', path: one, access },
        summary: 'A role, by its key',
        permissions: [`${RESOURCE}:read`],
        handle: (request) => this.#get(request),
      },
      changesOperation(this.#parts.changes, {
        ...{ type: 'role', path: one, permission: `${RESOURCE}:read` },
        keyOf(request) {
          allow(request, RESOURCE, 'read')
          return keyOf(request)
        },
      }),
      {
        ...{ method: 'PUT', path: one, access },
        summary: 'Create or change a role; it takes effect for all who have it within a second',
        permissions: [`${RESOURCE}:write`],
        parameters: [IF_MATCH],
        body: { type: 'json', required: true, schema: RoleBody },
        handle: (request) => this.#put(request),
      },
      {
        ...{ method: 'DELETE', path: one, access },
        summary: 'Delete a role; who has it keeps its key, which grants nothing then',
        permissions: [`${RESOURCE}:delete`],
        parameters: [IF_MATCH],
        handle: async (request) => {
          allow(request, RESOURCE, 'delete')
          const key = keyOf(request)
          const target = { type: 'role', key, tags: tagsOf(request) }
          return { status: 204, headers: await this.#parts.writer.remove(request, target) }
        },
      },
    ]
  }

  /** The built-in roles are few and stand before all pages: they count, and have no place. */
  #list(request: OperationRequest): OperationResponse {
    allow(request, RESOURCE, 'read')
    const query = readPageQuery(request.query)
    const page = this.#directory.page(query)
    const isFirst = query.after === null && query.before === null && query.search === ''
    const own = isFirst ? BUILT_IN_ROLES : []
    const totalCount = page.totalCount + (query.search === '' ? BUILT_IN_ROLES.length : 0)
    return answerOf('roles', { ...page, totalCount }, [...own, ...page.entries.map(shownRole)])
  }

  #get(request: OperationRequest): OperationResponse {
    allow(request, RESOURCE, 'read')
    const key = keyOf(request)
    const { system } = this.#parts.actorSystem
    const entry: SystemEntry<Role> | null = system.get<Role>('role', key)
    const shown =
      entry === null ? BUILT_IN_ROLES.find((role) => role['key'] === key) : shownRole(entry)
    if (shown === undefined) throw new RequestError('NOT_FOUND', `there is no role "${key}"`)
    return { status: 200, headers: { ETag: etagOf(entry?.version ?? 0) }, body: shown }
  }

  async #put(request: OperationRequest): Promise<OperationResponse> {
    allow(request, RESOURCE, 'write')
    const key = keyOf(request)
    if (key.startsWith('system:')) {
      throw new RequestError('SYSTEM_ROLE', 'roles of the namespace system: are not written')
    }
    const value = roleOf(request.body as RoleBody)
    const tags = tagsOf(request)
    const { actorSystem, writer } = this.#parts
    const isThere = actorSystem.system.get('role', key) !== null
    const target = { request, type: 'role', key, tags }
    checkTag(target, isThere)
    const written = isThere
      ? await writer.change<Role>(target, () => value)
      : await writer.make(request, 'role', key, value)
    const body = shownRole({ key, version: written.version, value })
    return { status: isThere ? 200 : 201, headers: written.headers, body }
  }
}

/** As it is kept: entries in their one spelling. */
function roleOf({ description = '', acl }: RoleBody): Role {
  const entries = acl.entries.map((entry, i) => {
    const text = typeof entry === 'string' ? entry : `${entry.resource}:${entry.permission}`
    const parsed = parseAce(text)
    if (parsed.ok) return entryOf(formatAce(parsed.ace))
    const member = `acl.entries.${i}`
    throw new RequestError('INVALID_PARAMETERS', `${member}: ${parsed.reason}`, { member })
  })
  return { description, acl: { entries } }
}

function keyOf(request: OperationRequest): string {
  const key = request.params['roleKey']!
  if (ROLE_KEY.test(key) && key.length <= 200) return key
  throw new RequestError(
    'INVALID_PARAMETERS',
    `a role's key is <namespace>:<capability>, not "${key}"`,
  )
}
