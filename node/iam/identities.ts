// The administration of identities of one kind, people or clients, as far as both are alike: lists,
// one by its id, changes under ETags, roles, suspension, deletion. What differs is given in.
// Source: specification "Personal access tokens and IAM", CONTRACT 1.8.

import type { TSchema } from '@sinclair/typebox'
import type { SystemEntry } from '../../cluster/actor-system.ts'
import type { Acl } from '../../protocol/ace.ts'
import type { ConfigurationView } from '../../protocol/behaviour.ts'
import { lacking, RequestError } from '../../protocol/errors.ts'
import { toUuid } from '../../protocol/ids.ts'
import type { ShownActivity } from '../access/activity/last-activity.ts'
import { epochOf } from '../access/client.ts'
import type { Client } from '../access/client.ts'
import type { Principal } from '../access/principal.ts'
import type { Operation, OperationRequest, OperationResponse } from '../http/operation.ts'
import { etagOf } from '../system-actor.ts'
import {
  allow,
  answerOf,
  checkTag,
  IF_MATCH,
  nowText,
  PAGE_PARAMETERS,
  ROLE_PREFIX,
} from './asking.ts'
import { RolesBody } from './bodies.ts'
import { changesOperation } from './changes.ts'
import { Directory, readPageQuery } from './directory.ts'
import type { Card } from './directory.ts'
import type { IamParts } from './parts.ts'
import { shownAcl } from './shown.ts'
import { tagsOf } from './writer.ts'
import type { Written } from './writer.ts'

/** What one kind of identities has of its own. */
export interface IdentityKind<T> {
  readonly type: 'principal' | 'client'
  /** As paths, entries and answers call them. */
  readonly plural: 'principals' | 'clients'
  readonly summaries: Readonly<
    Record<'list' | 'one' | 'put' | 'delete' | 'suspend' | 'resume', string>
  >
  /** Of a PUT. */
  readonly body: TSchema
  /** Reads one: what it makes of what was there. Throws RequestError 400. */
  readonly read: (body: unknown) => (before: T | null) => T
  /** The key that an id means which is no UUID; null: nobody has it. */
  readonly keyNamed: (id: string) => string | null
  readonly card: (value: T) => Card
  /** `activity` null: it can't be told at the moment. */
  readonly shown: (entry: ShownEntry<T>, activity: ShownActivity | null) => Record<string, unknown>
  readonly aclOf: (value: T, view: ConfigurationView) => Acl
}

type ShownEntry<T> = Pick<SystemEntry<T>, 'key' | 'version' | 'value'>
type Permission = 'read' | 'write' | 'delete'
/** What must be of an id: it is there, it is or can be made, or it may have been. */
type Presence = 'there' | 'new' | 'gone'

export class IdentityStation<T extends Principal | Client> {
  readonly #parts: IamParts
  readonly #kind: IdentityKind<T>
  readonly #directory: Directory<T>
  /** `iam/principals`. */
  readonly #resource: string
  /** `/resources/iam/principals`. */
  readonly path: string

  constructor(parts: IamParts, kind: IdentityKind<T>) {
    this.#parts = parts
    this.#kind = kind
    this.#directory = new Directory(parts.actorSystem.system, kind.type, kind.card)
    this.#resource = `iam/${kind.plural}`
    this.path = `/resources/${this.#resource}`
  }

  operations(): Operation[] {
    return [...this.#reads(), ...this.#writes(), ...this.#states()]
  }

  #reads(): Operation[] {
    const { list, one } = this.#kind.summaries
    const path = `${this.path}/{id}`
    const permission = `${this.#resource}:read`
    const may = { access: 'token', permissions: [permission] } as const
    return [
      {
        ...{ method: 'GET', path: this.path, ...may, summary: list },
        parameters: [ROLE_PREFIX, ...PAGE_PARAMETERS],
        handle: (request) => this.#list(request),
      },
      {
        ...{ method: 'GET', path, ...may, summary: one },
        handle: (request) => this.#get(request),
      },
      changesOperation(this.#parts.changes, {
        ...{ type: this.#kind.type, path, permission },
        keyOf: (request) => this.find(request, 'read', 'gone'),
      }),
    ]
  }

  #writes(): Operation[] {
    const { body: schema, summaries } = this.#kind
    const path = `${this.path}/{id}`
    const access = 'token'
    const parameters = [IF_MATCH]
    return [
      {
        ...{ method: 'PUT', path, access, summary: summaries.put, parameters },
        permissions: [`${this.#resource}:write`],
        body: { type: 'json', required: true, schema },
        handle: (request) => this.#put(request),
      },
      {
        ...{ method: 'DELETE', path, access, summary: summaries.delete, parameters },
        permissions: [`${this.#resource}:delete`],
        handle: (request) => this.#delete(request),
      },
    ]
  }

  #states(): Operation[] {
    const one = `${this.path}/{id}`
    const { suspend, resume } = this.#kind.summaries
    const may = { access: 'token', permissions: [`${this.#resource}:write`] } as const
    return [
      {
        ...{ method: 'PUT', path: `${one}/roles`, ...may },
        summary: 'Assign roles: these, and no others',
        parameters: [IF_MATCH],
        body: { type: 'json', required: true, schema: RolesBody },
        handle: (request) => {
          const { roles } = request.body as RolesBody
          return this.#change(request, (before) => ({ ...before, roles }))
        },
      },
      {
        ...{ method: 'PUT', path: `${one}/suspend`, ...may, summary: suspend },
        handle: (request) => {
          const suspendedAt = nowText(this.#parts.world)
          return this.#change(request, (before) =>
            before.suspendedAt === null ? { ...ended(before), suspendedAt } : null,
          )
        },
      },
      {
        ...{ method: 'DELETE', path: `${one}/suspend`, ...may, summary: resume },
        handle: (request) =>
          this.#change(request, (before) =>
            before.suspendedAt === null ? null : { ...before, suspendedAt: null },
          ),
      },
    ]
  }

  async #list(request: OperationRequest): Promise<OperationResponse> {
    allow(request, this.#resource, 'read')
    const page = this.#directory.page(readPageQuery(request.query))
    return answerOf(this.#kind.plural, page, await this.#shown(request, page.entries))
  }

  async #get(request: OperationRequest): Promise<OperationResponse> {
    const { type, aclOf } = this.#kind
    const key = this.find(request, 'read')
    const { system } = this.#parts.actorSystem
    const entry = system.get<T>(type, key)!
    const acl = shownAcl(aclOf(entry.value, system))
    const [shown] = await this.#shown(request, [entry])
    return { status: 200, headers: { ETag: etagOf(entry.version) }, body: { ...shown, acl } }
  }

  async #put(request: OperationRequest): Promise<OperationResponse> {
    const { type, read } = this.#kind
    const key = this.find(request, 'write', 'new')
    const make = read(request.body)
    const isThere = this.#parts.actorSystem.system.get(type, key) !== null
    checkTag({ type, key, tags: tagsOf(request) }, isThere)
    if (isThere) return this.#change(request, make)
    const written = await this.make(request, key, make(null))
    return { ...(await this.answer(request, key, written)), status: 201 }
  }

  /** Makes one, where the caller may make any. `headers` are those of a 201. */
  async make(request: OperationRequest, key: string, value: T): Promise<Written<T>> {
    allow(request, this.#resource, 'write')
    const written = await this.#parts.writer.make(request, this.#kind.type, key, value)
    return { ...written, headers: { ...written.headers, Location: `${this.path}/${key}` } }
  }

  async #delete(request: OperationRequest): Promise<OperationResponse> {
    const key = this.find(request, 'delete')
    const target = { type: this.#kind.type, key, tags: tagsOf(request) }
    return { status: 204, headers: await this.#parts.writer.remove(request, target) }
  }

  async #change(
    request: OperationRequest,
    alter: (before: T) => T | null,
  ): Promise<OperationResponse> {
    const key = this.find(request, 'write')
    const target = { request, type: this.#kind.type, key, tags: tagsOf(request) }
    const written = await this.#parts.writer.change(target, alter)
    return this.answer(request, key, written)
  }

  /** Shows what was written. */
  async answer(
    request: OperationRequest,
    key: string,
    { version, value, headers }: Written<T>,
  ): Promise<OperationResponse> {
    const [body] = await this.#shown(request, [{ key, version, value }])
    return { status: 200, headers, body }
  }

  async #shown(
    { requestId }: OperationRequest,
    entries: readonly ShownEntry<T>[],
  ): Promise<readonly object[]> {
    const { type, shown } = this.#kind
    const keys = entries.map(({ key }) => key)
    const activity = await this.#parts.lastActivity.of(type, keys, requestId)
    return entries.map((entry, i) => shown(entry, activity[i]!))
  }

  /**
   * The key that `{id}` means. Throws RequestError 403 before it tells who is there, and in the
   * same words whether anybody is; then 404.
   */
  find(request: OperationRequest, permission: Permission, presence: Presence = 'there'): string {
    const id = request.params['id']!
    const { type, keyNamed } = this.#kind
    const uuid = toUuid(id)
    const key = uuid ?? keyNamed(id)
    const place = key === null ? this.#resource : `${this.#resource}/${key}`
    if (!request.identity.acl.covers(place, permission)) {
      throw lacking(`${uuid === null ? this.#resource : place}:${permission}`)
    }
    if (key !== null && (presence === 'gone' || (presence === 'new' && uuid !== null))) return key
    if (key !== null && this.#parts.actorSystem.system.get(type, key) !== null) return key
    throw new RequestError('NOT_FOUND', `there is no ${type} "${id}"`)
  }
}

/** All that it has signed in with is over. */
export function ended<T extends Principal | Client>(before: T): T {
  return { ...before, sessionEpoch: epochOf(before) + 1 }
}
