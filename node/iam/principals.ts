// Administration of people: what they have beside what all identities have. Source: specification
// "Personal access tokens and IAM", CONTRACT 1.8.

import { grantedTo, loginName, principalByEmail } from '../access/principal.ts'
import type { Principal } from '../access/principal.ts'
import type { Operation, OperationRequest, OperationResponse } from '../http/operation.ts'
import { nowText } from './asking.ts'
import { PrincipalBody } from './bodies.ts'
import { ended, IdentityStation } from './identities.ts'
import type { IamParts } from './parts.ts'
import { shownPrincipal } from './shown.ts'

export class PrincipalStation {
  readonly #parts: IamParts
  readonly #people: IdentityStation<Principal>

  constructor(parts: IamParts) {
    this.#parts = parts
    const { system } = parts.actorSystem
    this.#people = new IdentityStation<Principal>(parts, {
      ...{ type: 'principal', plural: 'principals' },
      summaries: {
        list: 'People, a page of them, in the order in which they were made',
        one: 'A principal, by its UUID or its e-mail address',
        put: 'Change a principal, or make one with this UUID',
        delete: 'Delete a principal; its sessions and personal access tokens end',
        suspend: 'Suspend a principal: its sessions and tokens end, and do not come back',
        resume: 'Let a suspended principal sign in again',
      },
      body: PrincipalBody,
      read: (body) => (before) => this.#valueOf(body as PrincipalBody, before),
      keyNamed: (id) => principalByEmail(system, id)?.key ?? null,
      card: ({ properties, roles }) => ({
        roles,
        texts: [properties.name, properties.email, properties.phone],
      }),
      shown: shownPrincipal,
      aclOf: grantedTo,
    })
  }

  operations(): Operation[] {
    const { path } = this.#people
    const may = { access: 'token', permissions: ['iam/principals:write'] } as const
    return [
      {
        ...{ method: 'POST', path, ...may },
        summary: 'Make a principal; it gets its first password by a reset',
        body: { type: 'json', required: true, schema: PrincipalBody },
        handle: (request) => this.#make(request),
      },
      ...this.#people.operations(),
      {
        ...{ method: 'POST', path: `${path}/{id}/password/reset`, ...may },
        summary: 'Make a temporary password, with which only another one can be chosen',
        handle: (request) => this.#reset(request),
      },
    ]
  }

  #valueOf(body: PrincipalBody, before: Principal | null): Principal {
    const { properties, roles, accessAttributes, logins } = body
    const was = before ?? this.#fresh()
    return {
      ...(isLoginGone(was.logins, logins) ? { ...was, sessionEpoch: was.sessionEpoch + 1 } : was),
      properties,
      ...(roles !== undefined && { roles }),
      ...(accessAttributes !== undefined && { accessAttributes }),
      ...(logins !== undefined && { logins }),
    }
  }

  #fresh(): Omit<Principal, 'properties'> {
    return {
      ...{ roles: [], accessAttributes: {}, password: null, sessionEpoch: 0 },
      ...{ createdAt: nowText(this.#parts.world), suspendedAt: null },
    }
  }

  async #make(request: OperationRequest): Promise<OperationResponse> {
    const key = this.#parts.newId()
    const value = this.#valueOf(request.body as PrincipalBody, null)
    const written = await this.#people.make(request, key, value)
    return { ...(await this.#people.answer(request, key, written)), status: 201 }
  }

  async #reset(request: OperationRequest): Promise<OperationResponse> {
    const key = this.#people.find(request, 'write')
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
}

/** What somebody has signed in with is theirs no more: those sessions end. */
function isLoginGone(had: Principal['logins'] = [], left: PrincipalBody['logins'] = had): boolean {
  const names = new Set(left.map(loginName))
  return had.some((login) => !names.has(loginName(login)))
}
