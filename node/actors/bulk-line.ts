// One line of bulk: `{id, messages, idempotencyKey?}`, read and, when it is no good, refused with
// its number. It stands between the bytes of a line and the run that sends it. Source: CONTRACT 0
// "Bulk".

import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { ErrorItem } from '../../protocol/errors.ts'
import { parseJson } from '../../protocol/json.ts'
import type { Message } from '../../protocol/message.ts'
import { NEW, readIdempotencyKey, readMessages, readTarget } from './actor-request.ts'
import type { Target } from './actor-request.ts'
import type { ActorType } from './actor-type.ts'

export interface BulkLine {
  /** The id as the line has it; null when it couldn't be read. */
  readonly id: string | null
  readonly target: Target
  readonly messages: readonly Message[]
  readonly idempotencyKey: string | null
  /**
   * Lines of one name take effect in line order: an actor's UUID, its number, or the number that
   * a `create` to `new` chooses. null: nobody else can mean this line's actor.
   */
  readonly name: string | null
}

/** What a line is: good, or refused. */
export type ReadLine =
  | { readonly ok: true; readonly line: BulkLine }
  | { readonly ok: false; readonly id: string | null; readonly error: RequestError }

const MEMBERS: ReadonlySet<string> = new Set(['id', 'messages', 'idempotencyKey'])

export function readLine(type: ActorType, bytes: Uint8Array | 'too-large'): ReadLine {
  let id: string | null = null
  try {
    if (bytes === 'too-large') {
      throw new RequestError('TOO_LARGE', `a line has at most ${LIMITS.bulkLineBytesMax} bytes`)
    }
    const value = parseJson(bytes)
    if (value instanceof RequestError) throw value
    const raw = membersOf(value)
    if (typeof raw.id !== 'string') {
      throw new RequestError('MALFORMED_REQUEST', 'the line needs an "id": a UUID, number or "new"')
    }
    id = raw.id
    const target = readTarget(type, id)
    const messages = readMessages(raw.messages)
    const idempotencyKey = readKey(raw.idempotencyKey)
    return {
      ok: true,
      line: { id, target, messages, idempotencyKey, name: nameOf(type, target, messages) },
    }
  } catch (error) {
    if (error instanceof RequestError) return { ok: false, id, error }
    throw error
  }
}

interface RawLine {
  readonly id?: unknown
  readonly messages?: unknown
  readonly idempotencyKey?: unknown
}

function membersOf(value: unknown): RawLine {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new RequestError('MALFORMED_REQUEST', 'a line is {"id": …, "messages": […]}')
  }
  for (const member in value) {
    if (MEMBERS.has(member)) continue
    const what = `the line has a member ${JSON.stringify(member)}; it may have id, messages and `
    throw new RequestError('MALFORMED_REQUEST', `${what}idempotencyKey`)
  }
  return value
}

function readKey(key: unknown): string | null {
  if (key === undefined || key === null) return null
  if (typeof key !== 'string' || key === '') {
    throw new RequestError('MALFORMED_REQUEST', 'idempotencyKey should be a text, or absent')
  }
  return readIdempotencyKey(key)
}

function nameOf(type: ActorType, target: Target, messages: readonly Message[]): string | null {
  if (target.id !== NEW) return target.id
  const { behaviour } = type
  const create = messages.find((message) => behaviour.creates.includes(message.type))
  if (create === undefined || behaviour.check(create) !== null) return null
  return behaviour.chosenKey(create)?.key ?? null
}

/** The answer to a line of which nothing was done, or nothing is known. */
export function failedLine(number: number, id: string | null, error: RequestError): string {
  const errors = error.errors.map((item): ErrorItem => ({
    ...item,
    details: { ...item.details, line: number },
  }))
  return `{"id":${JSON.stringify(id)},"paths":[],"data":null,"results":[],"errors":${JSON.stringify(errors)}}`
}
