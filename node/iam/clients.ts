// Administration of clients: their registration and their secrets, beside what all identities have.
// Source: specification "Personal access tokens and IAM", CONTRACT 1.8, RFC 7591 3.

import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import { aclOfClient, authMethodOf } from '../access/client.ts'
import type { Client } from '../access/client.ts'
import type { Operation, OperationRequest, OperationResponse } from '../http/operation.ts'
import { allow, nowText } from './asking.ts'
import { ClientBody, RegistrationBody, SecretBody } from './bodies.ts'
import { IdentityStation } from './identities.ts'
import type { IamParts } from './parts.ts'
import { checkRedirects, propertiesOf, registered } from './registration.ts'
import { shownClient } from './shown.ts'

const RESOURCE = 'iam/clients'

type Secret = Client['secrets'][number]

export class ClientStation {
  readonly #parts: IamParts
  readonly #clients: IdentityStation<Client>

  constructor(parts: IamParts) {
    this.#parts = parts
    this.#clients = new IdentityStation<Client>(parts, {
      ...{ type: 'client', plural: 'clients' },
      summaries: {
        list: 'Clients, a page of them, by their ids',
        one: 'A client, by its client_id',
        put: 'Change a client, or make one with this UUID',
        delete: 'Delete a client; its sessions and those that it has brought about end',
        suspend: 'Suspend a client: its sessions end, and do not come back',
        resume: 'Let a suspended client ask for tokens again',
      },
      body: ClientBody,
      read: (body) => this.#read(body as ClientBody),
      keyNamed: (id) => id,
      card: ({ properties, roles }) => ({
        roles,
        texts: [properties.name, properties.description],
      }),
      shown: shownClient,
      aclOf: aclOfClient,
    })
  }

  operations(): Operation[] {
    const secrets = `${this.#clients.path}/{id}/secrets`
    const may = { access: 'token', permissions: [`${RESOURCE}:write`] } as const
    return [
      {
        ...{ method: 'POST', path: '/iam/clients', ...may },
        summary: 'Register a client (members of RFC 7591); its secret is shown this once',
        body: { type: 'json', required: true, schema: RegistrationBody },
        handle: (request) => this.#register(request),
      },
      ...this.#clients.operations(),
      {
        ...{ method: 'POST', path: secrets, ...may },
        summary: 'Make a secret of a client; it is shown this once',
        body: { type: 'json', required: false, schema: SecretBody },
        handle: (request) => this.#makeSecret(request),
      },
      {
        ...{ method: 'DELETE', path: `${secrets}/{secretId}`, ...may },
        summary: 'Delete a secret of a client',
        handle: (request) => this.#deleteSecret(request),
      },
    ]
  }

  #read({ properties, roles }: ClientBody): (before: Client | null) => Client {
    checkRedirects(properties.redirectUris)
    return (before) => ({
      ...(before ?? this.#fresh([])),
      properties,
      ...(roles !== undefined && { roles }),
    })
  }

  #fresh(secrets: Secret[]): Omit<Client, 'properties'> {
    return {
      ...{ roles: [], secrets, sessionEpoch: 0, isSystem: false },
      ...{ createdAt: nowText(this.#parts.world), suspendedAt: null },
    }
  }

  async #register(request: OperationRequest): Promise<OperationResponse> {
    allow(request, RESOURCE, 'write')
    const body = request.body as RegistrationBody
    const key = this.#parts.newId()
    const properties = propertiesOf(body)
    const hasSecret = isSecret(properties.tokenEndpointAuthMethod)
    const made = hasSecret ? this.#secret({}) : null
    const secrets = made === null ? [] : [made.secret]
    const value = { ...this.#fresh(secrets), properties, roles: body.roles ?? [] }
    const { headers } = await this.#clients.make(request, key, value)
    return { status: 201, headers, body: registered(key, value, made?.clientSecret ?? null) }
  }

  async #makeSecret(request: OperationRequest): Promise<OperationResponse> {
    const key = this.#clients.find(request, 'write')
    const body = (request.body ?? {}) as SecretBody
    const { world, writer } = this.#parts
    if (typeof body.expiresAt === 'string' && Date.parse(body.expiresAt) <= world.clock.nowMs()) {
      throw new RequestError('INVALID_PARAMETERS', 'expiresAt lies in the past')
    }
    const { secret, clientSecret } = this.#secret(body)
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
    const key = this.#clients.find(request, 'write')
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

  #secret({ description, expiresAt }: SecretBody): { secret: Secret; clientSecret: string } {
    const { secrets, world, newId } = this.#parts
    const clientSecret = secrets.make()
    const secret: Secret = {
      secretId: newId(),
      hash: secrets.hashMade(clientSecret),
      source: 'issued',
      createdAt: nowText(world),
      expiresAt: typeof expiresAt === 'string' ? new Date(expiresAt).toISOString() : null,
      ...(description !== undefined && { description }),
    }
    return { secret, clientSecret }
  }
}

function isSecret(method: Client['properties']['tokenEndpointAuthMethod']): boolean {
  return method !== 'none' && method !== 'private_key_jwt'
}
