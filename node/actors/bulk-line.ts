// One line of bulk: `{id, messages, idempotencyKey?}`, read and, when it is no good, refused with
// its number. Source: CONTRACT 0 "Bulk".

import { LIMITS } from '../../config/limits.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { ErrorItem } from '../../protocol/errors.ts'
import { parseJson } from '../../protocol/json/json.ts'
import type { Message } from '../../protocol/message.ts'
import { NEW, hashOfBody, readIdempotencyKey, readMessages, readTarget } from './actor-request.ts'
import type { Target } from './actor-request.ts'
import type { ActorType } from './actor-type.ts'

export interface BulkLine {
  /** The id as the line has it; null when it couldn't be read. */
  readonly id: string | null
  readonly target: Target
  readonly messages: readonly Message[]
  /** Why it holds no messages, under a key: its refusal is to be kept. */
  readonly fault: RequestError | null
  readonly idempotencyKey: string | null
  /** What a repeat of the key is compared by; '' without one. */
  readonly bodyHash: string
  /**
   * Lines that share a name take effect in line order: an actor's UUID, its number, or a natural
   * key that one of the messages asks for, under which a later line may mean the same actor. Empty:
   * nobody else can mean this line's actor.
   */
  readonly names: ReadonlySet<string>
}

/** What a line is: good, or refused. */
export type ReadLine =
  | { readonly ok: true; readonly line: BulkLine }
  | { readonly ok: false; readonly id: string | null; readonly error: RequestError }

/** Of what is wrong an answer repeats so much. */
const SHOWN_CHARS = 100
const MEMBERS: ReadonlySet<string> = new Set(['id', 'messages', 'idempotencyKey'])

export function readLine(type: ActorType, bytes: Uint8Array | 'too-large'): ReadLine {
  let id: string | null = null
  try {
    if (bytes === 'too-large') {
      throw new RequestError(
        'TOO_LARGE',
        `a line has at most ${LIMITS.http.bulkLineBytesMax} bytes`,
      )
    }
    const value = parseJson(bytes)
    if (value instanceof RequestError) throw value
    const raw = membersOf(value)
    if (typeof raw.id !== 'string') {
      throw new RequestError('MALFORMED_REQUEST', 'the line needs an "id": a UUID, number or "new"')
    }
    id = raw.id.slice(0, LIMITS.commerce.keyCharsMax)
    const target = readTarget(type, raw.id)
    const idempotencyKey = readKey(raw.idempotencyKey)
    const bodyHash = idempotencyKey === null ? '' : hashOfBody(JSON.stringify(raw.messages) ?? '')
    const keyed = { id, target, idempotencyKey, bodyHash }
    const messages = messagesOf(raw)
    if (messages instanceof RequestError) {
      if (idempotencyKey === null) throw messages
      const names = namesOf(type, target, NO_MESSAGES)
      return { ok: true, line: { ...keyed, messages: NO_MESSAGES, fault: messages, names } }
    }
    const names = namesOf(type, target, messages)
    return { ok: true, line: { ...keyed, messages, fault: null, names } }
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
    const name = JSON.stringify(member.slice(0, SHOWN_CHARS))
    const what = `the line has a member ${name}; it may have id, messages and `
    throw new RequestError('MALFORMED_REQUEST', `${what}idempotencyKey`)
  }
  return value
}

function messagesOf({ messages }: RawLine): readonly Message[] | RequestError {
  try {
    return readMessages(messages)
  } catch (error) {
    if (error instanceof RequestError) return error
    throw error
  }
}

const NO_MESSAGES: readonly Message[] = []

function readKey(key: unknown): string | null {
  if (key === undefined || key === null) return null
  if (typeof key !== 'string' || key === '') {
    throw new RequestError('MALFORMED_REQUEST', 'idempotencyKey should be a text, or absent')
  }
  return readIdempotencyKey(key)
}

function namesOf(
  { behaviour }: ActorType,
  { id, uuid }: Target,
  messages: readonly Message[],
): ReadonlySet<string> {
  const names = new Set<string>()
  if (uuid !== null) names.add(uuid)
  else if (id !== NEW) names.add(`${behaviour.type}\0${id}`)
  for (const message of messages) {
    for (const { keyType, key } of behaviour.mayTake(message)) names.add(`${keyType}\0${key}`)
  }
  return names
}

/** The answer to a line of which nothing was done, or nothing is known. */
export function failedLine(number: number, id: string | null, error: RequestError): string {
  const errors = error.errors.map((item): ErrorItem => ({
    ...item,
    details: { ...item.details, line: number },
  }))
  return `{"id":${JSON.stringify(id)},"paths":[],"data":null,"results":[],"errors":${JSON.stringify(errors)}}`
}
