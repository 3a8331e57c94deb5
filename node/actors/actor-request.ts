// From an HTTP body to the messages that go to an actor: reads them, asks who may send them, checks
// their shape. The routes and the lines of bulk make them. What fails here gets its error here, and
// the rest travels in one request, in order. Source: CONTRACT 0 "Multi-message actor calls", 1.3;
// PROTOCOL 3.6.

import { hash } from 'node:crypto'
import type { ActorRequest } from '../../cluster/actor-system.ts'
import { LIMITS } from '../../config/limits.ts'
import type { Acl } from '../../protocol/ace.ts'
import { RequestError, errorItem } from '../../protocol/errors.ts'
import type { ErrorCode, ErrorItem } from '../../protocol/errors.ts'
import { toUuid } from '../../protocol/ids.ts'
import type { Message, MessageResult, Refusals, Reply } from '../../protocol/message.ts'
import type { ActorType } from './actor-type.ts'

/** The virtual id under which actors are made. */
export const NEW = 'new'

/** Whom a path or a line names. */
export interface Target {
  /** Canonical UUID, natural key, or `new`. */
  readonly id: string
  /** The id as a UUID, or null: `new`, or a natural key. */
  readonly uuid: string | null
}

/** Throws RequestError 404 for an id that no actor can have. */
export function readTarget(type: ActorType, id: string): Target {
  const uuid = toUuid(id)
  if (uuid !== null) return { id: uuid, uuid }
  if (id.length === 0 || id.length > LIMITS.commerce.keyCharsMax) {
    throw new RequestError('NOT_FOUND', `there is no ${type.behaviour.type} with such an id`)
  }
  return { id, uuid: null }
}

/** The messages of a body. Throws RequestError 400 that names what is wrong and where. */
export function readMessages(body: unknown): readonly Message[] {
  if (!Array.isArray(body)) {
    throw malformed('the body should be an array of messages: [{"type": "create", "body": {}}]')
  }
  if (body.length === 0 || body.length > LIMITS.actors.messagesMax) {
    throw malformed(
      `a request has 1 to ${LIMITS.actors.messagesMax} messages, this one has ${body.length}`,
      { count: body.length },
    )
  }
  for (let i = 0; i < body.length; i++) {
    const wrong = faultOf(body[i])
    if (wrong !== null) throw malformed(`message ${i} ${wrong}`, { messageIndex: i })
  }
  return body as Message[]
}

function faultOf(message: unknown): string | null {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) {
    return 'should be an object: {"type": "create", "body": {}}'
  }
  const { type } = message as Message
  if (typeof type !== 'string') return 'needs a "type", a string'
  if (type.length > LIMITS.actors.messageTypeCharsMax) {
    return `has a "type" of more than ${LIMITS.actors.messageTypeCharsMax} characters`
  }
  for (const member in message) {
    if (member !== 'type' && member !== 'body') {
      return `has a member ${JSON.stringify(member.slice(0, 100))}; only "type" and "body" are known`
    }
  }
  return null
}

const KEY = /^[\x21-\x7e]+$/

/** The caller's Idempotency-Key, or null. Throws RequestError 400 for one out of bounds. */
export function readIdempotencyKey(key: string): string | null {
  if (key === '') return null
  if (key.length <= LIMITS.actors.idempotencyKeyCharsMax && KEY.test(key)) return key
  throw malformed(
    'an idempotency key has 1 to ' +
      `${LIMITS.actors.idempotencyKeyCharsMax} printable ASCII characters without spaces`,
  )
}

/** What a caller may see of the graph goes along with `query` messages: the owner plans them. */
export function graphAcesFor(
  messages: readonly Message[],
  acl: Acl,
): Partial<Pick<ActorRequest, 'graphAces' | 'graphAttributes'>> | null {
  if (!messages.some(({ type }) => type === 'query')) return null
  const { graphLists: graphAces, graphAttributes } = acl
  return Object.keys(graphAttributes).length === 0 ? { graphAces } : { graphAces, graphAttributes }
}

/** What a repeat of a key is compared by: 128 bits of SHA-256 over the body. */
export function hashOfBody(body: string | Uint8Array): string {
  return hash('sha256', body, 'hex').slice(0, 32)
}

function malformed(message: string, details?: Readonly<Record<string, unknown>>): RequestError {
  return new RequestError('MALFORMED_REQUEST', message, details)
}

/** A request's messages after permission and shape were looked at. */
export interface Checked {
  /**
   * What goes to the actor's owner, in order; may be empty. Under an idempotency key all of it,
   * when anything of it may commit: a refusal is remembered like any other answer (CONTRACT 0).
   */
  readonly send: readonly Message[]
  /** What the owner shall not run, but record, of what goes there. */
  readonly refused?: Refusals
  /** By the request's order: what failed here; null where the message goes to the actor. */
  readonly failed: readonly (MessageResult | null)[] | null
}

/** Who sends messages to whom. */
export interface Sender {
  readonly acl: Acl
  /** The actor's, when it is known: authorization always goes by it. */
  readonly uuid: string | null
  readonly virtual: boolean
  /** The answer is remembered under a key of the caller. */
  readonly isKeyed: boolean
}

/** Permission (ACE `actors/<type>[/<uuid>]:<message type>`) and shape of each message. */
export function checkMessages(type: ActorType, messages: readonly Message[], who: Sender): Checked {
  const { behaviour } = type
  const scene = who.virtual ? new VirtualScene(behaviour.creates) : null
  let failed: (MessageResult | null)[] | null = null
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]!
    const own = permissionError(type, message, who) ?? shapeError(type, message)
    const errors = scene === null ? own : scene.look(message, own)
    if (errors === null) continue
    failed ??= messages.map(() => null)
    failed[i] = { type: message.type, success: false, errors }
  }
  if (failed === null) return { send: messages, failed: null }
  if (!who.isKeyed || !messages.some((message) => !behaviour.isRead(message.type))) {
    return { send: messages.filter((_, i) => failed[i] === null), failed }
  }
  return { send: messages, refused: failed, failed }
}

function codeOf(result: MessageResult | null): string | null {
  return result === null || result.success ? null : result.errors[0]!.code
}

/**
 * How many refusals the owner would record for somebody who may send nothing of it: what has a
 * bound of its own (ForbiddenKeys). 0 where something of the request goes to the actor.
 */
export function forbiddenOf(type: ActorType, { send, refused }: Checked): number {
  if (refused === undefined) return 0
  const writes = refused.filter((_, i) => !type.behaviour.isRead(send[i]!.type))
  if (writes.includes(null)) return 0
  const isForbidden = writes.some((result) => codeOf(result) === 'UNAUTHORIZED_MESSAGE')
  return isForbidden ? writes.length : 0
}

/** True when the caller may send nothing that changes the actor; `uuid` null: it has none. */
export function mayWriteNothing(
  { behaviour, resource }: ActorType,
  acl: Acl,
  uuid: string | null,
): boolean {
  const may = (type: string): boolean =>
    acl.covers(resource, type) || (uuid !== null && acl.covers(`${resource}/${uuid}`, type))
  return behaviour.messageTypes.every((type) => behaviour.isRead(type) || !may(type))
}

/**
 * Whether the answer may show whose it is: not to who was refused all of it, and may send none of
 * it now. A repeat shows what the first answer did, so the recorded codes say it.
 */
export function showsActor({ failed }: Checked, results: readonly MessageResult[]): boolean {
  const isAsked = failed === null || failed.includes(null)
  return results.some((result) => {
    const code = codeOf(result)
    return code === null || !(OF_THE_EDGE.has(code) || (!isAsked && OF_ITS_OWNER.has(code)))
  })
}

const OF_THE_EDGE: ReadonlySet<string> = new Set(['UNAUTHORIZED_MESSAGE', 'INVALID_MESSAGE_BODY'])
/** What is told of a message whether it may be sent or not. */
const OF_ITS_OWNER: ReadonlySet<string> = new Set([
  ...['IDEMPOTENCY_MISMATCH', 'QUARANTINED', 'POISONED'],
  ...['TOO_BUSY', 'UNAVAILABLE', 'STORAGE_FULL'],
])

/** True when only the actor's UUID can tell whether the messages may be sent. */
export function needsUuid(
  { resource }: ActorType,
  messages: readonly Pick<Message, 'type'>[],
  acl: Acl,
): boolean {
  return messages.some(({ type }) => !acl.covers(resource, type) && acl.reaches(resource, type))
}

function permissionError(
  type: ActorType,
  message: Message,
  { acl, uuid }: { readonly acl: Acl; readonly uuid: string | null },
): readonly ErrorItem[] | null {
  if (acl.covers(type.resource, message.type)) return null
  if (uuid !== null && acl.covers(`${type.resource}/${uuid}`, message.type)) return null
  const needs = `${type.resource}:${message.type}`
  const what = `sending "${message.type}" needs the ACE ${needs}`
  return [errorItem('UNAUTHORIZED_MESSAGE', what, { needs })]
}

/** Unknown types never leave the edge: the runtime has message types of its own. */
function shapeError({ behaviour }: ActorType, message: Message): readonly ErrorItem[] | null {
  if (behaviour.messageTypes.includes(message.type)) return behaviour.check(message)
  const known = behaviour.messageTypes.join(', ')
  const what = `an actor of type ${behaviour.type} knows no message "${message.type}"; it knows `
  return [errorItem('INVALID_MESSAGE_BODY', `${what}${known}`)]
}

/**
 * Messages to `new`: those before the first `create`, and those after a failed one, find nobody.
 */
class VirtualScene {
  readonly #creates: readonly string[]
  #actor: 'none' | 'made' | 'failed' = 'none'

  constructor(creates: readonly string[]) {
    this.#creates = creates
  }

  look(message: Message, own: readonly ErrorItem[] | null): readonly ErrorItem[] | null {
    if (this.#actor === 'made') return own
    if (this.#actor === 'failed') {
      return [errorItem('NOT_FOUND', 'the actor was not made: an earlier message failed')]
    }
    if (this.#creates.includes(message.type)) {
      this.#actor = own === null ? 'made' : 'failed'
      return own
    }
    const what = `"${NEW}" names nobody yet; begin with ${this.#creates.join(' or ')}`
    return own ?? [errorItem('NOT_FOUND', what)]
  }
}

/** Results of all messages in request order: what failed here, and what the actor answered. */
export function mergeResults(
  checked: Checked,
  answered: readonly MessageResult[],
): readonly MessageResult[] {
  if (checked.failed === null) return answered
  // Its owner doesn't know the type of what is not run.
  if (checked.refused) return answered.map((one, i) => ({ ...one, type: checked.send[i]!.type }))
  let next = 0
  return checked.failed.map((failed) => failed ?? answered[next++]!)
}

/**
 * A missing actor is the failure of each message that would have gone to it, so that the answer
 * shows all of them; any other refusal is the request's.
 */
export function refusedResults(
  reply: Exclude<Reply, { outcome: 'answered' }>,
  { send, refused, failed }: Checked,
): readonly MessageResult[] {
  if (reply.error.code !== 'NOT_FOUND') throw requestErrorOf(reply.error)
  const errors = [errorItem('NOT_FOUND', reply.error.message, reply.error.details)]
  const own = refused ? failed : null
  return send.map(({ type }, i) => own?.[i] ?? { type, success: false, errors })
}

/** A refusal of the actor system as the station's own. */
export function requestErrorOf(error: ErrorItem): RequestError {
  return new RequestError(error.code as ErrorCode, error.message, error.details)
}
