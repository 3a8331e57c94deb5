// Changes of identities and roles: what is there is read from the maps, what it becomes is written
// under the version that was read, so that nothing in between is lost. Who may is decided by the
// owner of the system shard (node/access/administration/). Source: CONTRACT 0 "ETags", 1.8.

import type { ActorSystem, SystemEntry } from '../../cluster/actor-system.ts'
import type { World } from '../../cluster/clock.ts'
import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { ErrorCode } from '../../protocol/errors.ts'
import type { Position } from '../../protocol/ids.ts'
import type { Reply } from '../../protocol/message.ts'
import type { OperationRequest } from '../http/operation.ts'
import { deleteRequest, etagOf, failureOf, putRequest } from '../system-actor.ts'
import type { Origin, WriteCondition } from '../system-actor.ts'

export interface WriterOptions {
  readonly actorSystem: ActorSystem
  readonly clock: World['clock']
  /** Makes the X-Consistency token (node/graph/consistency.ts). */
  readonly consistency: { encode(positions: readonly Position[]): string }
}

/** What a write has made of its actor. */
export interface Written<T> {
  readonly value: T
  readonly version: number
  readonly headers: Readonly<Record<string, string>>
}

/** `*`, ETags of which one must be the newest, or null: the caller names none. */
export type Tags = '*' | readonly string[] | null

/** How often a change is made anew because somebody else was first, without a tag of the caller. */
const TRIES_MAX = 5

export class IdentityWriter {
  readonly #options: WriterOptions

  constructor(options: WriterOptions) {
    this.#options = options
  }

  /** Makes what is not there yet; 409 CONFLICT where it is. */
  make<T>(request: OperationRequest, type: string, key: string, value: T): Promise<Written<T>> {
    return this.#put({ request, type, key }, value, { ifAbsent: true })
  }

  /** Makes another value of what is there. `alter` may run again; null: nothing has to be done. */
  async change<T>(
    target: { request: OperationRequest; type: string; key: string; tags: Tags },
    alter: (before: T) => T | null | Promise<T | null>,
  ): Promise<Written<T>> {
    const { request, type, key, tags } = target
    for (let tries = 1; ; tries++) {
      const entry = await this.#entry<T>(target)
      const value = await alter(entry.value)
      const { version } = entry
      if (value === null) return { value: entry.value, version, headers: { ETag: etagOf(version) } }
      try {
        return await this.#put({ request, type, key }, value, { ifMatch: [etagOf(version)] })
      } catch (error) {
        const isOld = error instanceof RequestError && error.errors[0]!.code === 'CONFLICT'
        const mayAgain = isOld && (tags === null || tags === '*') && tries < TRIES_MAX
        if (!mayAgain || this.#options.actorSystem.system.get(type, key) === null) throw error
      }
    }
  }

  async remove(
    request: OperationRequest,
    target: { type: string; key: string; tags: Tags },
  ): Promise<Record<string, string>> {
    const { type, key, tags } = target
    const condition: WriteCondition = tags === null || tags === '*' ? {} : { ifMatch: tags }
    const asked = deleteRequest(type, key, condition, originOf(request))
    const reply = await this.#options.actorSystem.ask(asked)
    dataOf(reply)
    return this.#headers(reply)
  }

  /** What the caller's tags are of; a member that is behind waits for it. */
  async #entry<T>({
    type,
    key,
    tags,
  }: {
    type: string
    key: string
    tags: Tags
  }): Promise<SystemEntry<T>> {
    const { system } = this.#options.actorSystem
    const newest = (): SystemEntry<T> | null => system.get<T>(type, key)
    if (Array.isArray(tags)) {
      const most = Math.max(...tags.map((tag: string) => Number(tag.slice(1, -1)) || 0))
      if ((newest()?.version ?? 0) < most) await this.#changed(type, key)
    }
    const entry = newest()
    if (entry === null) throw new RequestError('NOT_FOUND', `there is no ${type} "${key}"`)
    if (Array.isArray(tags) && !tags.includes(etagOf(entry.version))) {
      const what = `${type} "${key}" has changed: its ETag is now ${etagOf(entry.version)}`
      throw new RequestError('CONFLICT', `${what}; read it again`)
    }
    return entry
  }

  /** Until the maps have the next change of it, or as long as they may be behind. */
  #changed(type: string, key: string): Promise<void> {
    const { actorSystem, clock } = this.#options
    return new Promise((resolve) => {
      const end = (): void => {
        unfollow()
        cancel()
        resolve()
      }
      const unfollow = actorSystem.system.onChange(type, (other) => other === key && end())
      const cancel = clock.after(LIMITS.cluster.systemStaleMs, end)
    })
  }

  async #put<T>(
    { request, type, key }: { request: OperationRequest; type: string; key: string },
    value: T,
    condition: WriteCondition,
  ): Promise<Written<T>> {
    const bytes = Buffer.byteLength(JSON.stringify(value))
    if (bytes > LIMITS.iam.valueBytesMax) {
      const what = `a ${type} has at most ${LIMITS.iam.valueBytesMax} bytes, this one has ${bytes}`
      throw new RequestError('TOO_LARGE', what)
    }
    const asked = putRequest(type, key, { value, ...condition }, originOf(request))
    const wrong = this.#options.actorSystem.behaviours.get(type)!.check(asked.messages[0]!)
    if (wrong !== null) {
      const { message, details } = wrong[0]!
      throw new RequestError('INVALID_PARAMETERS', message.replace(/^value\./, ''), details)
    }
    const reply = await this.#options.actorSystem.ask(asked)
    const { version } = dataOf(reply) as { version: number }
    return { value, version, headers: { ETag: etagOf(version), ...this.#headers(reply) } }
  }

  #headers(reply: Reply): Record<string, string> {
    if (reply.outcome !== 'answered' || reply.position === null) return {}
    return { 'X-Consistency': this.#options.consistency.encode([reply.position]) }
  }
}

/**
 * The ETags of a request: `If-Match`, else `eTag` (or `etag`) of its body. Weak ones count as
 * strong ones, and quotes may be left out in a body.
 */
export function tagsOf(request: OperationRequest): Tags {
  const header = request.header('if-match').trim()
  const { eTag, etag } = (request.body ?? {}) as { eTag?: string; etag?: string }
  const text = header === '' ? (eTag ?? etag ?? '').trim() : header
  if (text === '') return null
  if (text === '*') return '*'
  return text.split(',').map((tag) => {
    const plain = tag.trim().replace(/^W\//, '')
    return plain.startsWith('"') ? plain : `"${plain}"`
  })
}

function originOf({ identity, requestId }: OperationRequest): Origin {
  return { by: identity.id, trace: requestId, session: identity.session }
}

/** The data of a write that took effect; throws its refusal as RequestError. */
function dataOf(reply: Reply): unknown {
  const error = failureOf(reply)
  if (error !== null) {
    throw new RequestError(error.code as ErrorCode, error.message, error.details)
  }
  const result = reply.outcome === 'answered' ? reply.results[0]! : null
  return result?.success ? result.data : undefined
}
