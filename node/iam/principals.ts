// Administration of people. Source: specification "Personal access tokens and IAM", CONTRACT 1.8.

import type { TSchema } from '@sinclair/typebox'
import type { SystemEntry } from '../../cluster/actor-system.ts'
import { RequestError } from '../../protocol/errors.ts'
import { toUuid, uuidMaker } from '../../protocol/ids.ts'
import { foldedEmail, grantedTo, principalByEmail } from '../access/principal.ts'
import type { Principal } from '../access/principal.ts'
import type { Operation, OperationRequest, OperationResponse } from '../http/operation.ts'
import { etagOf } from '../system-actor.ts'
import {
  allow,
  answerOf,
  goneFor,
  IF_MATCH,
  needsTag,
  nowText,
  PAGE_PARAMETERS,
  ROLE_PREFIX,
} from './asking.ts'
import { PrincipalBody, RolesBody } from './bodies.ts'
import { changesOperation } from './changes.ts'
import { Directory, readPageQuery } from './directory.ts'
import type { IamParts } from './parts.ts'
import { shownAcl, shownPrincipal } from './shown.ts'
import { tagsOf } from './writer.ts'
import type { Written } from './writer.ts'

const RESOURCE = 'iam/principals'
const PATH = '/resources/iam/principals'
const WRITE = [`${RESOURCE}:write`]

const json = (schema: TSchema) => ({ type: 'json' as const, required: true, schema })

type Permission = 'read' | 'write' | 'delete'

export class PrincipalStation {
  readonly #parts: IamParts
  readonly #directory: Directory<Principal>
  readonly #newId: () => string

  constructor(parts: IamParts) {
    const { actorSystem, world } = parts
    this.#parts = parts
    this.#directory = new Directory(actorSystem.system, 'principal', ({ properties, roles }) => ({
      roles,
      texts: [properties.name, properties.email, properties.phone],
    }))
    const make = uuidMaker(world.random)
    this.#newId = () => make(world.clock.nowMs())
  }

  operations(): Operation[] {
    return [...this.#ofAll(), ...this.#ofOne(), ...this.#ofState()]
  }

  #ofAll(): Operation[] {
    const access = 'token'
    return [
      {
        ...{ method: 'GET', path: PATH, access },
        summary: 'People, a page of them, in the order in which they were made',
        permissions: [`${RESOURCE}:read`],
        parameters: [ROLE_PREFIX, ...PAGE_PARAMETERS],
        handle: (request) => this.#list(request),
      },
      {
        ...{ method: 'POST', path: PATH, access },
        summary: 'Make a principal; it gets its first password by a reset',
        permissions: WRITE,
        body: json(PrincipalBody),
        handle: (request) => this.#make(request, this.#newId()),
      },
    ]
  }

  #ofOne(): Operation[] {
    const one = `${PATH}/{id}`
    const access = 'token'
    return [
      {
        ...{ method: 'GET', path: one, access },
        summary: 'A principal, by its UUID or its e-mail address',
        permissions: [`${RESOURCE}:read`],
        handle: (request) => this.#get(request),
      },
      this.#changes(one),
      {
        ...{ method: 'PUT', path: one, access },
        summary: 'Change a principal, or make one with this UUID',
        permissions: WRITE,
        parameters: [IF_MATCH],
        body: json(PrincipalBody),
        handle: (request) => this.#put(request),
      },
      {
        ...{ method: 'DELETE', path: one, access },
        summary: 'Delete a principal; its sessions and personal access tokens end',
        permissions: [`${RESOURCE}:delete`],
        parameters: [IF_MATCH],
        handle: (request) => this.#delete(request),
      },
    ]
  }

  #ofState(): Operation[] {
    const one = `${PATH}/{id}`
    const access = 'token'
    return [
      {
        ...{ method: 'PUT', path: `${one}/roles`, access },
        summary: 'Assign roles: these, and no others',
        permissions: WRITE,
        parameters: [IF_MATCH],
        body: json(RolesBody),
        handle: (request) => {
          const { roles } = request.body as RolesBody
          return this.#change(request, (before) => ({ ...before, roles }))
        },
      },
      {
        ...{ method: 'POST', path: `${one}/password/reset`, access },
        summary: 'Make a temporary password, with which only another one can be chosen',
        permissions: WRITE,
        handle: (request) => this.#reset(request),
      },
      {
        ...{ method: 'PUT', path: `${one}/suspend`, access },
        summary: 'Suspend a principal: its sessions and tokens end, and do not come back',
        permissions: WRITE,
        handle: (request) => {
          const suspendedAt = nowText(this.#parts.world)
          return this.#change(request, (before) =>
            before.suspendedAt === null ? { ...ended(before), suspendedAt } : null,
          )
        },
      },
      {
        ...{ method: 'DELETE', path: `${one}/suspend`, access },
        summary: 'Let a suspended principal sign in again',
        permissions: WRITE,
        handle: (request) =>
          this.#change(request, (before) =>
            before.suspendedAt === null ? null : { ...before, suspendedAt: null },
          ),
      },
    ]
  }

  #changes(path: string): Operation {
    const permission = `${RESOURCE}:read`
    const keyOf = (request: OperationRequest): string => this.#find(request, 'read', true)
    return changesOperation(this.#parts.changes, { type: 'principal', path, permission, keyOf })
  }

  #list(request: OperationRequest): OperationResponse {
    allow(request, RESOURCE, 'read')
    const page = this.#directory.page(readPageQuery(request.query))
    const shown = page.entries.map((entry) => this.#shown(entry))
    return answerOf('principals', page, shown)
  }

  #get(request: OperationRequest): OperationResponse {
    const key = this.#find(request, 'read')
    const { system } = this.#parts.actorSystem
    const entry = system.get<Principal>('principal', key)
    if (entry === null) throw new RequestError('NOT_FOUND', `there is no principal "${key}"`)
    const acl = shownAcl(grantedTo(entry.value, system))
    const headers = { ETag: etagOf(entry.version) }
    return { status: 200, headers, body: { ...this.#shown(entry), acl } }
  }

  async #put(request: OperationRequest): Promise<OperationResponse> {
    const key = this.#find(request, 'write', true)
    const tags = tagsOf(request)
    if (this.#parts.actorSystem.system.get('principal', key) === null) {
      if (tags !== null && tags !== '*') throw goneFor('principal', key)
      return this.#make(request, key)
    }
    if (tags === null) throw needsTag('principal', key)
    const { properties, roles, accessAttributes } = request.body as PrincipalBody
    return this.#change(request, (before) => ({
      ...before,
      properties,
      roles: roles ?? before.roles,
      accessAttributes: accessAttributes ?? before.accessAttributes,
    }))
  }

  async #make(request: OperationRequest, key: string): Promise<OperationResponse> {
    allow(request, RESOURCE, 'write')
    const { properties, roles = [], accessAttributes = {} } = request.body as PrincipalBody
    const value: Principal = {
      ...{ properties, roles, accessAttributes },
      password: null,
      sessionEpoch: 0,
      createdAt: nowText(this.#parts.world),
      suspendedAt: null,
    }
    const written = await this.#parts.writer.make(request, 'principal', key, value)
    const answer = this.#answer(key, written)
    return { ...answer, status: 201, headers: { ...answer.headers, Location: `${PATH}/${key}` } }
  }

  async #delete(request: OperationRequest): Promise<OperationResponse> {
    const key = this.#find(request, 'delete')
    const target = { type: 'principal', key, tags: tagsOf(request) }
    return { status: 204, headers: await this.#parts.writer.remove(request, target) }
  }

  async #reset(request: OperationRequest): Promise<OperationResponse> {
    const key = this.#find(request, 'write')
    const { passwords, world, writer, hashing } = this.#parts
    const temporaryPassword = passwords.temporary()
    const password = {
      hash: await hashing.run(request.identity.id, () => passwords.hash(temporaryPassword)),
      changedAt: nowText(world),
      expiresAt: passwords.temporaryUntil(),
    }
    const target = { request, type: 'principal', key, tags: null }
    const { headers } = await writer.change<Principal>(target, (before) => ({
      ...ended(before),
      password,
    }))
    const body = { temporaryPassword, expiresAt: password.expiresAt }
    return { status: 200, headers, body }
  }

  async #change(
    request: OperationRequest,
    alter: (before: Principal) => Principal | null,
  ): Promise<OperationResponse> {
    const key = this.#find(request, 'write')
    const target = { request, type: 'principal', key, tags: tagsOf(request) }
    return this.#answer(key, await this.#parts.writer.change(target, alter))
  }

  #answer(key: string, { value, version, headers }: Written<Principal>): OperationResponse {
    return { status: 200, headers, body: this.#shown({ key, version, value }) }
  }

  #shown(entry: Pick<SystemEntry<Principal>, 'key' | 'version' | 'value'>): object {
    return shownPrincipal(entry, this.#parts.lastActiveAt(entry.key))
  }

  /**
   * The key that `{id}` means: a UUID, or an e-mail address that somebody has. Throws RequestError
   * 403 before it tells who is there.
   */
  #find(request: OperationRequest, permission: Permission, mayBeNew = false): string {
    const id = request.params['id']!
    const { system } = this.#parts.actorSystem
    const uuid = toUuid(id)
    const key = uuid ?? principalByEmail(system, id)?.key ?? null
    allow(request, key === null ? RESOURCE : `${RESOURCE}/${key}`, permission)
    if (key === null || (!mayBeNew && system.get('principal', key) === null)) {
      throw new RequestError('NOT_FOUND', `there is no principal "${foldedEmail(id)}"`)
    }
    return key
  }
}

/** All that it has signed in with is over. */
function ended(before: Principal): Principal {
  return { ...before, sessionEpoch: before.sessionEpoch + 1 }
}
