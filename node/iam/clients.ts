// Administration of clients and of their secrets. Source: specification "Personal access tokens and
// IAM", CONTRACT 1.8, RFC 7591 3.

import type { SystemEntry } from '../../cluster/actor-system.ts'
import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import { toUuid, uuidMaker } from '../../protocol/ids.ts'
import { aclOfClient, authMethodOf } from '../access/client.ts'
import type { Client } from '../access/client.ts'
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
import { ClientBody, RegistrationBody, RolesBody, SecretBody } from './bodies.ts'
import { changesOperation } from './changes.ts'
import { Directory, readPageQuery } from './directory.ts'
import type { IamParts } from './parts.ts'
import { checkRedirects, propertiesOf, registered } from './registration.ts'
import { shownAcl, shownClient } from './shown.ts'
import { tagsOf } from './writer.ts'
import type { Written } from './writer.ts'

const RESOURCE = 'iam/clients'
const PATH = '/resources/iam/clients'
const WRITE = [`${RESOURCE}:write`]

type Secret = Client['secrets'][number]
type Permission = 'read' | 'write' | 'delete'

export class ClientStation {
  readonly #parts: IamParts
  readonly #directory: Directory<Client>
  readonly #newId: () => string

  constructor(parts: IamParts) {
    const { actorSystem, world } = parts
    this.#parts = parts
    this.#directory = new Directory(actorSystem.system, 'client', ({ properties, roles }) => ({
      roles,
      texts: [properties.name, properties.description],
    }))
    const make = uuidMaker(world.random)
    this.#newId = () => make(world.clock.nowMs())
  }

  operations(): Operation[] {
    return [...this.#ofAll(), ...this.#ofOne(), ...this.#ofSecrets()]
  }

  #ofAll(): Operation[] {
    return [
      {
        ...{ method: 'POST', path: '/iam/clients', access: 'token' },
        summary: 'Register a client (members of RFC 7591); its secret is shown this once',
        permissions: WRITE,
        body: { type: 'json', required: true, schema: RegistrationBody },
        handle: (request) => this.#register(request),
      },
      {
        ...{ method: 'GET', path: PATH, access: 'token' },
        summary: 'Clients, a page of them, by their ids',
        permissions: [`${RESOURCE}:read`],
        parameters: [ROLE_PREFIX, ...PAGE_PARAMETERS],
        handle: (request) => {
          allow(request, RESOURCE, 'read')
          const page = this.#directory.page(readPageQuery(request.query))
          return answerOf('clients', page, page.entries.map(shownClient))
        },
      },
    ]
  }

  #ofOne(): Operation[] {
    const one = `${PATH}/{id}`
    const access = 'token'
    return [
      {
        ...{ method: 'GET', path: one, access },
        summary: 'A client, by its client_id',
        permissions: [`${RESOURCE}:read`],
        handle: (request) => this.#get(request),
      },
      changesOperation(this.#parts.changes, {
        ...{ type: 'client', path: one, permission: `${RESOURCE}:read` },
        keyOf: (request) => this.#known(request),
      }),
      {
        ...{ method: 'PUT', path: one, access },
        summary: 'Change a client, or make one with this UUID',
        permissions: WRITE,
        parameters: [IF_MATCH],
        body: { type: 'json', required: true, schema: ClientBody },
        handle: (request) => this.#put(request),
      },
      {
        ...{ method: 'DELETE', path: one, access },
        summary: 'Delete a client; its sessions and those that it has brought about end',
        permissions: [`${RESOURCE}:delete`],
        parameters: [IF_MATCH],
        handle: async (request) => {
          const target = {
            type: 'client',
            key: this.#find(request, 'delete'),
            tags: tagsOf(request),
          }
          return { status: 204, headers: await this.#parts.writer.remove(request, target) }
        },
      },
      {
        ...{ method: 'PUT', path: `${one}/roles`, access },
        summary: 'Assign roles: these, and no others',
        permissions: WRITE,
        parameters: [IF_MATCH],
        body: { type: 'json', required: true, schema: RolesBody },
        handle: (request) => {
          const { roles } = request.body as RolesBody
          return this.#change(request, (before) => ({ ...before, roles }))
        },
      },
      {
        ...{ method: 'PUT', path: `${one}/suspend`, access },
        summary: 'Suspend a client: its sessions end, and do not come back',
        permissions: WRITE,
        handle: (request) => {
          const suspendedAt = nowText(this.#parts.world)
          return this.#change(request, (before) => {
            const sessionEpoch = (before.sessionEpoch ?? 0) + 1
            return before.suspendedAt === null ? { ...before, sessionEpoch, suspendedAt } : null
          })
        },
      },
      {
        ...{ method: 'DELETE', path: `${one}/suspend`, access },
        summary: 'Let a suspended client ask for tokens again',
        permissions: WRITE,
        handle: (request) =>
          this.#change(request, (before) =>
            before.suspendedAt === null ? null : { ...before, suspendedAt: null },
          ),
      },
    ]
  }

  #ofSecrets(): Operation[] {
    const path = `${PATH}/{id}/secrets`
    return [
      {
        ...{ method: 'POST', path, access: 'token' },
        summary: 'Make a secret of a client; it is shown this once',
        permissions: WRITE,
        body: { type: 'json', required: false, schema: SecretBody },
        handle: (request) => this.#makeSecret(request),
      },
      {
        ...{ method: 'DELETE', path: `${path}/{secretId}`, access: 'token' },
        summary: 'Delete a secret of a client',
        permissions: WRITE,
        handle: (request) => this.#deleteSecret(request),
      },
    ]
  }

  async #register(request: OperationRequest): Promise<OperationResponse> {
    allow(request, RESOURCE, 'write')
    const body = request.body as RegistrationBody
    const key = this.#newId()
    const properties = propertiesOf(body)
    const roles = body.roles ?? []
    const hasSecret = isSecret(properties.tokenEndpointAuthMethod)
    const made = hasSecret ? await this.#secret(request, {}) : null
    const secrets = made === null ? [] : [made.secret]
    const value = this.#fresh({ properties, roles }, secrets)
    const written = await this.#parts.writer.make(request, 'client', key, value)
    const headers = { ...written.headers, Location: `${PATH}/${key}` }
    return { status: 201, headers, body: registered(key, value, made?.clientSecret ?? null) }
  }

  #get(request: OperationRequest): OperationResponse {
    const key = this.#find(request, 'read')
    const { system } = this.#parts.actorSystem
    const entry = system.get<Client>('client', key)!
    const acl = shownAcl(aclOfClient(entry.value, system))
    const headers = { ETag: etagOf(entry.version) }
    return { status: 200, headers, body: { ...shownClient(entry), acl } }
  }

  async #put(request: OperationRequest): Promise<OperationResponse> {
    const key = this.#find(request, 'write', true)
    const tags = tagsOf(request)
    const { properties, roles } = request.body as ClientBody
    checkRedirects(properties.redirectUris)
    if (this.#parts.actorSystem.system.get('client', key) === null) {
      if (tags !== null && tags !== '*') throw goneFor('client', key)
      const value = this.#fresh({ properties, roles: roles ?? [] }, [])
      const written = await this.#parts.writer.make(request, 'client', key, value)
      return { ...this.#answer(key, written), status: 201 }
    }
    if (tags === null) throw needsTag('client', key)
    return this.#change(request, (before) => ({
      ...before,
      properties,
      roles: roles ?? before.roles,
    }))
  }

  async #makeSecret(request: OperationRequest): Promise<OperationResponse> {
    const key = this.#find(request, 'write')
    const body = (request.body ?? {}) as SecretBody
    const { world, writer } = this.#parts
    if (typeof body.expiresAt === 'string' && Date.parse(body.expiresAt) <= world.clock.nowMs()) {
      throw new RequestError('INVALID_PARAMETERS', 'expiresAt lies in the past')
    }
    const { secret, clientSecret } = await this.#secret(request, body)
    const target = { request, type: 'client', key, tags: null }
    const { headers } = await writer.change<Client>(target, (before) => {
      const { secretsOfClientMax: max } = LIMITS.access
      if (!isSecret(authMethodOf(before))) {
        throw new RequestError('INVALID_STATE', 'this client shows who it is without a secret')
      }
      if (before.secrets.length >= max) {
        throw new RequestError('INVALID_STATE', `a client has at most ${max} secrets; delete one`)
      }
      return { ...before, secrets: [...before.secrets, secret] }
    })
    const { secretId, createdAt, expiresAt } = secret
    return { status: 200, headers, body: { secretId, clientSecret, createdAt, expiresAt } }
  }

  async #deleteSecret(request: OperationRequest): Promise<OperationResponse> {
    const key = this.#find(request, 'write')
    const { secretId } = request.params
    const target = { request, type: 'client', key, tags: null }
    const { headers } = await this.#parts.writer.change<Client>(target, (before) => {
      const secrets = before.secrets.filter((one) => one.secretId !== secretId)
      if (secrets.length === before.secrets.length) {
        throw new RequestError('NOT_FOUND', `this client has no secret "${secretId}"`)
      }
      return { ...before, secrets }
    })
    return { status: 204, headers }
  }

  async #secret(
    { identity }: OperationRequest,
    body: SecretBody,
  ): Promise<{ secret: Secret; clientSecret: string }> {
    const { secrets, world, hashing } = this.#parts
    const clientSecret = secrets.make()
    const { description, expiresAt } = body
    const secret: Secret = {
      secretId: this.#newId(),
      hash: await hashing.run(identity.id, () => secrets.hash(clientSecret)),
      source: 'issued',
      createdAt: nowText(world),
      expiresAt: typeof expiresAt === 'string' ? new Date(expiresAt).toISOString() : null,
      ...(description !== undefined && { description }),
    }
    return { secret, clientSecret }
  }

  #fresh(given: Pick<Client, 'properties' | 'roles'>, secrets: Secret[]): Client {
    return {
      ...given,
      secrets,
      sessionEpoch: 0,
      isSystem: false,
      createdAt: nowText(this.#parts.world),
      suspendedAt: null,
    }
  }

  async #change(
    request: OperationRequest,
    alter: (before: Client) => Client | null,
  ): Promise<OperationResponse> {
    const key = this.#find(request, 'write')
    const target = { request, type: 'client', key, tags: tagsOf(request) }
    return this.#answer(key, await this.#parts.writer.change(target, alter))
  }

  #answer(key: string, { value, version, headers }: Written<Client>): OperationResponse {
    return { status: 200, headers, body: shownClient({ key, version, value }) }
  }

  /** The key, also of one that was deleted. */
  #known(request: OperationRequest): string {
    const id = request.params['id']!
    const key = toUuid(id) ?? id
    allow(request, `${RESOURCE}/${key}`, 'read')
    return key
  }

  /** The key that `{id}` means. Throws RequestError 403 before it tells who is there. */
  #find(request: OperationRequest, permission: Permission, mayBeNew = false): string {
    const id = request.params['id']!
    const { system } = this.#parts.actorSystem
    const uuid = toUuid(id)
    const entry: SystemEntry<Client> | null = system.get<Client>('client', uuid ?? id)
    allow(request, entry === null ? RESOURCE : `${RESOURCE}/${entry.key}`, permission)
    if (entry !== null) return entry.key
    if (mayBeNew && uuid !== null) return uuid
    throw new RequestError('NOT_FOUND', `there is no client "${id}"`)
  }
}

function isSecret(method: Client['properties']['tokenEndpointAuthMethod']): boolean {
  return method !== 'none' && method !== 'private_key_jwt'
}
