// A person's own password. Source: specification "Personal access tokens and IAM", CONTRACT 1.8.

import { RequestError } from '../../protocol/errors.ts'
import type { ErrorCode } from '../../protocol/errors.ts'
import type { PasswordAnswer } from '../access/password.ts'
import type { Principal } from '../access/principal.ts'
import type { Operation, OperationRequest, OperationResponse } from '../http/operation.ts'
import { allow, nowText } from './asking.ts'
import { PasswordBody } from './bodies.ts'
import type { IamParts } from './parts.ts'

export class OwnPassword {
  readonly #parts: IamParts

  constructor(parts: IamParts) {
    this.#parts = parts
  }

  operations(): Operation[] {
    return [
      {
        method: 'POST',
        path: '/resources/me/password',
        summary: "Change one's own password; all sessions and personal access tokens end",
        access: 'token',
        permissions: ['me:write'],
        body: { type: 'json', required: true, schema: PasswordBody },
        handle: (request) => this.#change(request),
      },
    ]
  }

  async #change(request: OperationRequest): Promise<OperationResponse> {
    const { identity, address, requestId } = request
    const { passwords, actorSystem, writer, world, hashing } = this.#parts
    const { currentPassword, newPassword } = request.body as PasswordBody
    allow(request, 'me', 'write')
    const entry =
      identity.kind === 'principal'
        ? actorSystem.system.get<Principal>('principal', identity.id)
        : null
    if (entry === null) throw new RequestError('FORBIDDEN', 'only people have passwords')
    const principal = entry.value
    const { email } = principal.properties
    const sent = { principal, email, password: currentPassword, address }
    const answer = await passwords.check(sent)
    const refusal = refusalOf(answer, requestId)
    if (refusal !== null) return refusal
    const fault = passwords.fault(newPassword, principal) ?? sameAs(currentPassword, newPassword)
    if (fault !== null) throw new RequestError(fault.code as ErrorCode, fault.message)
    const hash = await hashing.run(identity.id, () => passwords.hash(newPassword))
    const password = { hash, changedAt: nowText(world), expiresAt: null }
    const target = { request, type: 'principal', key: identity.id, tags: null }
    const { headers } = await writer.change<Principal>(target, (before) => {
      // Somebody has reset it meanwhile: what was checked is the password no more.
      if (before.password?.hash !== principal.password?.hash) throw wrong()
      return { ...before, password, sessionEpoch: before.sessionEpoch + 1 }
    })
    return { status: 204, headers }
  }
}

function wrong(): RequestError {
  return new RequestError('INVALID_PASSWORD', 'currentPassword is not the password')
}

/** null: the password is right. */
function refusalOf(answer: PasswordAnswer, requestId: string): OperationResponse | null {
  if (answer === 'wrong') throw wrong()
  if (typeof answer === 'string') return null
  const seconds = String(Math.max(1, Math.ceil(answer.retryAfterMs / 1_000)))
  const code = answer.refused === 'busy' ? 'TOO_BUSY' : 'RATE_LIMITED'
  const message = 'passwords of this account are not checked for a while; try again later'
  const errors = [{ code, message }]
  return { status: 429, headers: { 'Retry-After': seconds }, body: { errors, requestId } }
}

function sameAs(current: string, next: string): { code: string; message: string } | null {
  if (current !== next) return null
  return { code: 'WEAK_PASSWORD', message: 'newPassword is the present one' }
}
