// The actors' HTTP surface: messages to one actor, and bulk. Source: specification "Actors",
// CONTRACT 0, 1.3.

import { Type } from '@sinclair/typebox'
import type { ActorSystem } from '../../cluster/actor-system.ts'
import type { World } from '../../cluster/clock.ts'
import { LIMITS } from '../../config/limits.ts'
import { lacking, RequestError } from '../../protocol/errors.ts'
import type { ErrorItem } from '../../protocol/errors.ts'
import type { Position } from '../../protocol/ids.ts'
import type { Message, MessageResult } from '../../protocol/message.ts'
import type {
  Operation,
  OperationParameter,
  OperationRequest,
  OperationResponse,
} from '../http/operation.ts'
import {
  NEW,
  checkMessages,
  forbiddenOf,
  graphAcesFor,
  hashOfBody,
  mergeResults,
  needsUuid,
  readIdempotencyKey,
  readMessages,
  readTarget,
  refusedResults,
  requestErrorOf,
  showsActor,
} from './actor-request.ts'
import type { Target } from './actor-request.ts'
import { ActorTypes } from './actor-type.ts'
import type { ActorType } from './actor-type.ts'
import { answerJson, statusOfResults } from './answer.ts'
import { describeBodies } from './bodies.ts'
import type { DescribedBodies } from './bodies.ts'
import { BulkRun } from './bulk.ts'
import { ForbiddenKeys } from './forbidden-keys.ts'
import { keepRefusal } from './refused-body.ts'

export interface ActorsOptions {
  readonly actorSystem: ActorSystem
  /** Makes the X-Consistency token (node/graph/consistency.ts). */
  readonly consistency: { encode(positions: readonly Position[]): string }
  /** Time and chance of bulk's retries. */
  readonly world: World
}

const ErrorsSchema = Type.Array(
  Type.Object({
    code: Type.String(),
    message: Type.String(),
    details: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  }),
)

const ActorAnswerSchema = Type.Object({
  paths: Type.Array(Type.String()),
  data: Type.Unknown(),
  preview: Type.Boolean(),
  results: Type.Array(
    Type.Object({
      type: Type.String(),
      success: Type.Boolean(),
      data: Type.Optional(Type.Unknown()),
      errors: Type.Optional(ErrorsSchema),
    }),
  ),
  errors: ErrorsSchema,
})

const PARAMETERS: readonly OperationParameter[] = [
  {
    name: 'preview',
    in: 'query',
    description: 'Run the messages and store nothing; `false` counts as absent',
  },
  {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      'The same key with the same body has effect once and is answered alike for 24 h, refusals ' +
      'included; with another body it is refused',
  },
]

/** Operations of the station; both forms of the path are served (CONTRACT 1.3). */
export function actorOperations(options: ActorsOptions): Operation[] {
  const station = new ActorsStation(options)
  const bodies = describedOnce(options)
  return ['/resources/actors', '/resources/reference/actors'].flatMap((base): Operation[] => [
    {
      method: 'POST',
      path: `${base}/{type}/{id}`,
      summary: 'Send messages to an actor, by its UUID, its number, or `new`',
      access: 'token',
      permissions: ['actors/{type}/<uuid>:<message type>'],
      body: { type: 'json', required: true, shown: () => bodies().messages, handlesFaults: true },
      named: () => bodies().named,
      response: ActorAnswerSchema,
      parameters: PARAMETERS,
      handle: (request) => station.send(request),
    },
    {
      method: 'POST',
      path: `${base}/{type}/{typeKey}/{ref}`,
      summary: 'Send messages to an actor of a typed actor type',
      access: 'token',
      permissions: ['actors/{type}/{typeKey}:<message type>'],
      body: { type: 'json', required: true },
      handle: (request) => station.sendTyped(request),
    },
    {
      method: 'POST',
      path: `${base}/{type}`,
      summary: 'Send messages to many actors: one {id, messages, idempotencyKey?} a line',
      access: 'token',
      permissions: ['actors/{type}/<uuid>:<message type>'],
      body: { type: 'ndjson', required: true, shown: () => bodies().line },
      named: () => bodies().named,
      handle: () => {
        throw new RequestError(
          'UNSUPPORTED_MEDIA_TYPE',
          'messages to many actors come as Content-Type: application/x-ndjson; ' +
            'messages to one actor go to its own path',
        )
      },
      stream: (request, lines) => {
        const type = station.types.get(request.params['type']!)
        const preview = isPreview(request)
        const { uuidOf, forbidden } = station
        return new BulkRun({ ...options, type, request, lines, preview, uuidOf, forbidden }).run()
      },
    },
  ])
}

/** Made when the document is asked for: a start doesn't need it. */
function describedOnce({ actorSystem }: ActorsOptions): () => DescribedBodies {
  let known: DescribedBodies | null = null
  return () => (known ??= describeBodies(actorSystem.behaviours.values()))
}

class ActorsStation {
  readonly types: ActorTypes
  readonly forbidden: ForbiddenKeys
  readonly #options: ActorsOptions

  constructor(options: ActorsOptions) {
    this.#options = options
    this.forbidden = new ForbiddenKeys(options.world)
    this.types = new ActorTypes(options.actorSystem.behaviours)
  }

  send(request: OperationRequest): OperationResponse | Promise<OperationResponse> {
    const type = this.types.get(request.params['type']!)
    const target = readTarget(type, request.params['id']!)
    const idempotencyKey = readIdempotencyKey(request.header('idempotency-key'))
    const preview = isPreview(request)
    const messages = messagesOf(request)
    if (messages instanceof RequestError) {
      if (idempotencyKey === null || preview) throw messages
      return this.#refuseBody({ request, type, target, idempotencyKey }, messages)
    }
    const sending: Sending = { request, type, target, messages, idempotencyKey, preview }
    const unresolved = target.uuid === null && target.id !== NEW
    if (unresolved && needsUuid(type, messages, request.identity.acl)) {
      return this.uuidOf(type, target.id, request).then((uuid) => this.#send(sending, uuid))
    }
    return this.#send(sending, target.uuid)
  }

  /** `/resources/actors/ticket/claim/17`; no typed actor type is built yet. */
  sendTyped(request: OperationRequest): OperationResponse {
    const { type, typeKey, ref } = request.params as Record<string, string>
    if (!this.types.isTyped(type!)) {
      this.types.get(type!)
      throw new RequestError(
        'NOT_FOUND',
        `actors of type "${type}" have no type key; ` +
          `the path is /resources/actors/${type}/<id>, not .../${typeKey}/${ref}`,
      )
    }
    allowTyped(request, `actors/${type}/${typeKey}`)
    const system = this.#options.actorSystem.system
    if (system.get('registry', `actors/${type}/types/${typeKey}`) === null) {
      const error: ErrorItem = {
        code: `UNDEFINED_${type!.toUpperCase()}_TYPE`,
        message:
          `there is no ${type} type "${typeKey}"; types are defined in the registry, ` +
          `under actors/${type}/types/`,
      }
      return { status: 422, body: { errors: [error], requestId: request.requestId } }
    }
    this.types.get(type!)
    throw new RequestError('NOT_AVAILABLE', `actors of type "${type}" are not available yet`)
  }

  #send(sending: Sending, uuid: string | null): OperationResponse | Promise<OperationResponse> {
    const { request, type, target, messages, idempotencyKey, preview } = sending
    const virtual = target.id === NEW
    const { acl } = request.identity
    const isKeyed = idempotencyKey !== null && !preview
    const checked = checkMessages(type, messages, { acl, uuid, virtual, isKeyed })
    if (checked.send.length === 0) {
      return this.#answer(sending, { ...NOBODY, results: mergeResults(checked, []) })
    }
    const { id: by } = request.identity
    const to = { type: type.behaviour.type, id: target.id }
    const bodyHash = idempotencyKey === null ? '' : hashOfBody(request.bodyBytes)
    if (idempotencyKey !== null) {
      const keyed = { ...to, identity: by, idempotencyKey, bodyHash }
      this.forbidden.take(keyed, forbiddenOf(type, checked))
    }
    return this.#options.actorSystem
      .ask({
        ...to,
        // Whom the number names may be another by now, to whom this caller may send nothing.
        id: uuid ?? target.id,
        messages: checked.send,
        ...(checked.refused ? { refused: checked.refused } : null),
        idempotencyKey,
        bodyHash,
        by,
        ...graphAcesFor(checked.send, acl),
        preview,
        budgetMs: request.budgetMs,
        trace: request.requestId,
      })
      .then((reply) => {
        if (reply.outcome === 'answered') {
          const { actorId, keys, position } = reply
          const results = mergeResults(checked, reply.results)
          const shown = showsActor(checked, results) ? { actorId, keys } : NOBODY
          return this.#answer(sending, { ...shown, results }, position)
        }
        const results = mergeResults(checked, refusedResults(reply, checked))
        return this.#answer(sending, { ...NOBODY, results })
      })
  }

  /** A body that holds no messages: what its caller is told belongs to the key all the same. */
  async #refuseBody(
    sent: Pick<Sending, 'request' | 'type' | 'target'> & { readonly idempotencyKey: string },
    fault: RequestError,
  ): Promise<never> {
    const { request, type, target, idempotencyKey } = sent
    const { actorSystem } = this.#options
    throw await keepRefusal(
      {
        ...{ fault, type, target, idempotencyKey, identity: request.identity },
        bodyHash: hashOfBody(request.bodyBytes),
        budgetMs: request.budgetMs,
        trace: request.requestId,
      },
      {
        ask: (asked) => actorSystem.ask(asked),
        forbidden: this.forbidden,
        uuidOf: () => this.uuidOf(type, target.id, request),
      },
    )
  }

  /** UUID of an actor that was named by its number: authorization always goes by the UUID. */
  readonly uuidOf = async (
    type: ActorType,
    id: string,
    request: OperationRequest,
  ): Promise<string | null> => {
    const reply = await this.#options.actorSystem.ask({
      type: type.behaviour.type,
      id,
      messages: [resolvingMessage(type)],
      idempotencyKey: null,
      bodyHash: '',
      by: request.identity.id,
      preview: true,
      budgetMs: LIMITS.sharding.requestBudgetMs,
      trace: request.requestId,
    })
    if (reply.outcome === 'answered') return reply.actorId
    // Nobody there: without an ACE on the type the caller is told no more than "not allowed".
    if (reply.error.code === 'NOT_FOUND') return null
    throw requestErrorOf(reply.error)
  }

  #answer(
    { request, type, preview }: Sending,
    answer: { actorId: string | null; keys: readonly string[]; results: readonly MessageResult[] },
    position: Position | null = null,
  ): OperationResponse {
    const status = statusOfResults(answer.results)
    const failedId = status === 200 ? null : request.requestId
    const raw = answerJson(type, answer, { preview, failedId })
    if (position === null) return { status, raw }
    return {
      status,
      headers: { 'X-Consistency': this.#options.consistency.encode([position]) },
      raw,
    }
  }
}

interface Sending {
  readonly request: OperationRequest
  readonly type: ActorType
  readonly target: Target
  readonly messages: readonly Message[]
  readonly idempotencyKey: string | null
  readonly preview: boolean
}

const NOBODY = { actorId: null, keys: [] } as const

/** The messages of a body, or what is wrong with it. */
function messagesOf({ body, bodyFault }: OperationRequest): readonly Message[] | RequestError {
  if (bodyFault !== null) return bodyFault
  try {
    return readMessages(body)
  } catch (error) {
    if (error instanceof RequestError) return error
    throw error
  }
}

/** Throws RequestError 403 where the caller may send none of the messages. */
function allowTyped({ identity, body }: OperationRequest, resource: string): void {
  const messages = (Array.isArray(body) ? body : []) as { readonly type?: unknown }[]
  const types = messages.map((message) => (typeof message?.type === 'string' ? message.type : '*'))
  if (types.length === 0) types.push('*')
  if (types.some((type) => identity.acl.covers(resource, type))) return
  throw lacking(`${resource}:${types[0]}`)
}

/** `?preview` and `?preview=true` ask for one, `?preview=false` doesn't. */
function isPreview(request: OperationRequest): boolean {
  const preview = request.query.get('preview')
  return preview !== null && preview !== 'false'
}

/** A message that changes nothing and needs no body: its answer tells whose number it is. */
function resolvingMessage({ behaviour }: ActorType): Message {
  for (const type of behaviour.messageTypes) {
    const message = { type, body: undefined }
    if (behaviour.isRead(type) && behaviour.check(message) === null) return message
  }
  throw new RequestError(
    'UNAUTHORIZED_MESSAGE',
    `your ACEs name single actors of type ${behaviour.type}; address them by UUID`,
  )
}
