// Where the members of a cluster agree that an assertion was taken: an actor of the hashed shards
// for each client. What it knows are the marks that any actor has of its messages (PROTOCOL 3.6
// "Marks"): an assertion's message bears the name of its `jti`, for 24 hours nothing else can, and
// an assertion lives for an hour. So it is taken once whoever is asked, over restarts and changes
// of the owner, and its entry has no records and leaves the store like a refusal's (PROTOCOL 3.12
// "What expires"). Source: RFC 7523 3 (7), CONTRACT 1.11.

import { createHash } from 'node:crypto'
import type { ActorSystem } from '../../../cluster/actor-system.ts'
import { LIMITS } from '../../../config/limits.ts'
import type { Behaviour, Decision, RuntimeCall } from '../../../protocol/behaviour.ts'
import { recordShapes } from '../../../protocol/entry/record-shape.ts'
import { RequestError, errorItem } from '../../../protocol/errors.ts'
import type { ErrorCode } from '../../../protocol/errors.ts'
import { formatUuid } from '../../../protocol/ids.ts'
import type { FillRandom } from '../../../protocol/ids.ts'
import type { Message } from '../../../protocol/message.ts'
import { failureOf } from '../../system-actor.ts'

export const ASSERTIONS = 'auth-assertions'

/** That there is one; what it knows is in its marks. */
export type AssertionsState = Readonly<Record<string, never>>

/** Stored for good: only added to at its end. */
const SHAPES = recordShapes<{ readonly t: 'begun' }>([{ id: 1, t: 'begun', members: [] }])

export const assertionsBehaviour: Behaviour<AssertionsState> = {
  type: ASSERTIONS,
  home: 'shards',
  isInternal: true,
  messageTypes: ['take'],
  creates: ['take'],
  isRead: () => false,
  check: ({ type }) =>
    type === 'take'
      ? null
      : [errorItem('INVALID_MESSAGE_BODY', `a client's assertions have no message "${type}"`)],
  chosenKey: () => null,
  mayTake: () => [],
  decide,
  shapes: SHAPES,
  evolve: () => ({}),
  isDeleted: () => false,
  keys: () => [],
  naturalKeys: () => [],
  toSnapshot: (state) => state,
  fromSnapshot: (snapshot) => snapshot as AssertionsState,
  nodeTypes: [],
  touched: () => [],
  project: () => null,
  nodes: () => [],
  history: () => [],
}

/** It comes here once for each assertion: what bears a known name is answered before a turn. */
function* decide(
  before: AssertionsState | null,
  _message: Message,
): Generator<RuntimeCall, Decision<AssertionsState>, unknown> {
  return { ok: true, records: before === null ? [{ t: 'begun' }] : [], state: {} }
}

/** A UUID of version 8 (RFC 9562 5.8): the same for a client, wherever it is made. */
function placeOf(clientId: string): string {
  const bytes = createHash('sha256').update(`assertions of ${clientId}`).digest()
  bytes[6] = (bytes[6]! & 0x0f) | 0x80
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return formatUuid(bytes)
}

export class AssertionPlace {
  readonly #actorSystem: Pick<ActorSystem, 'ask'>
  readonly #random: FillRandom

  constructor(actorSystem: Pick<ActorSystem, 'ask'>, random: FillRandom) {
    this.#actorSystem = actorSystem
    this.#random = random
  }

  /**
   * Whether it is taken now, and never was before; durable when it returns. Throws RequestError
   * when it can't be told (429, 503, 504): then it may be taken, and should be signed anew.
   */
  async take(clientId: string, jti: string): Promise<boolean> {
    // Of each showing another: only the copies of one and the same are answered alike.
    const showing = new Uint8Array(16)
    this.#random(showing)
    const reply = await this.#actorSystem.ask({
      ...{ type: ASSERTIONS, id: placeOf(clientId) },
      messages: [{ type: 'take', body: {} }],
      idempotencyKey: createHash('sha256').update(jti).digest('base64url'),
      bodyHash: Buffer.from(showing).toString('base64url'),
      ...{ by: clientId, preview: false, trace: 'client-assertion' },
      budgetMs: LIMITS.sharding.requestBudgetMs,
    })
    const error = failureOf(reply)
    if (error === null) return true
    if (error.code === 'IDEMPOTENCY_MISMATCH') return false
    throw new RequestError(error.code as ErrorCode, error.message, error.details)
  }
}
