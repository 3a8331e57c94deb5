// Naming and placing a request: the message id, the actor or key that it goes to, its shard. A
// create gets an id that lies where its natural key lies, so that both commit in one entry. Source:
// PROTOCOL 3.6 (edge 1), ARCHITECTURE 4, CONTRACT 0 "Idempotency".

import { createHash } from 'node:crypto'
import { errorItem } from '../../protocol/errors.ts'
import { SYSTEM_SHARD, placeOfActor, placeOfKey, shardOf, toUuid } from '../../protocol/ids.ts'
import type { Behaviour, NaturalKey } from '../../protocol/behaviour.ts'
import type { Address, Envelope, Message, MessageId, Reply } from '../../protocol/message.ts'
import type { ActorRequest } from '../actor-system.ts'

export interface PlacingOptions {
  readonly behaviours: ReadonlyMap<string, Behaviour>
  readonly shards: number
  readonly newUuid: (tail?: number, mask?: number) => string
  /** The shard that a new actor belongs in that may lie in any; null: no matter which. */
  readonly gather: () => number | null
}

export interface Placed {
  readonly envelope: Envelope
  readonly shard: number
}

/** The envelope of a request and its shard, or the refusal of what leads nowhere. */
export function place(options: PlacingOptions, request: ActorRequest): Placed | Reply {
  const { type, id, messages } = request
  const behaviour = options.behaviours.get(type)
  if (!behaviour) {
    return { outcome: 'refused', error: errorItem('NOT_FOUND', `there is no actor type ${type}`) }
  }
  const virtual = behaviour.home === 'shards' && id === 'new'
  const messageId = nameOf(options, request, virtual ? chosen(behaviour, request) : null)
  let to: Address
  if (behaviour.home === 'system') to = { type, key: id }
  else if (virtual) {
    if (!request.refused && !behaviour.creates.includes(messages[0]!.type)) {
      const text = `'new' is nobody yet: the first message must be ${behaviour.creates.join(' or ')}`
      return { outcome: 'refused', error: errorItem('NOT_FOUND', text) }
    }
    const tail = tailOf(behaviour, request, messageId)
    to = { type, id: tail === undefined ? gatheredId(options) : options.newUuid(tail) }
  } else {
    const uuid = toUuid(id)
    to = uuid === null ? { type, key: id } : { type, id: uuid }
  }
  const envelope: Envelope = {
    messageId,
    to,
    virtual,
    copy: 0,
    messages: request.refused ? withoutRefused(behaviour, request) : messages,
    ...(messageId.kind === 'caller' ? placesOf(behaviour, messages) : null),
    ...(request.refused ? { refused: request.refused } : null),
    bodyHash: request.idempotencyKey === null ? '' : request.bodyHash,
    budgetMs: request.budgetMs,
    by: request.by,
    ...(request.session === undefined ? null : { session: request.session }),
    ...(request.graphAces ? { graphAces: request.graphAces } : null),
    ...(request.graphAttributes ? { graphAttributes: request.graphAttributes } : null),
    preview: request.preview,
    crashes: 0,
    trace: request.trace,
    // Nobody else can know an id that was made here, as long as the first copy stays here.
    ...(virtual ? FRESH : null),
  }
  return { envelope, shard: shardOfAddress(options, to) }
}

/** A new actor's id in the shard where new actors gather: no way over the wire, one append. */
function gatheredId({ newUuid, shards, gather }: PlacingOptions): string {
  const shard = gather()
  // The upper bits of the place stay random: by them a shard would be split (PROTOCOL 3.9).
  return shard === null ? newUuid() : newUuid(shard, shards - 1)
}

const FRESH = { fresh: true } as const

export function shardOfAddress(options: PlacingOptions, to: Address): number {
  if (options.behaviours.get(to.type)?.home === 'system') return SYSTEM_SHARD
  const at = 'id' in to ? placeOfActor(to.id) : placeOfKey(to.type, to.key)
  return shardOf(at, options.shards)
}

/** What is not run has no body at its owner, and no type but that of a read. */
function withoutRefused(
  behaviour: Behaviour,
  { messages, refused }: ActorRequest,
): readonly Message[] {
  return messages.map((message, i) => {
    if (refused![i] === null) return message
    return { type: behaviour.isRead(message.type) ? message.type : '', body: undefined }
  })
}

/**
 * Messages are numbered among those that may commit, so that the first of those has the key's own
 * id, whatever is read before it: by that one another body is told.
 */
function placesOf(
  behaviour: Behaviour,
  messages: readonly Message[],
): { readonly places: readonly number[] } | null {
  const writes = messages.map(({ type }) => !behaviour.isRead(type))
  if (!writes.includes(false)) return null
  let next = 0
  return { places: writes.map((is, i) => (is ? next++ : messages.length + i)) }
}

/** The scope of a key: caller, type, and for `new` the number in the body (CONTRACT 0). */
function nameOf(options: PlacingOptions, request: ActorRequest, created: string | null): MessageId {
  if (request.idempotencyKey === null || request.preview) {
    return { id: options.newUuid().replaceAll('-', ''), kind: 'edge' }
  }
  const scope = [request.by, request.type, created ?? '', request.idempotencyKey]
  const id = createHash('sha256').update(scope.join('\0')).digest('hex').slice(0, 32)
  return { id, kind: 'caller' }
}

/** Last two bytes of a new actor's UUID: where its number, else its create's key lies. */
function tailOf(
  behaviour: Behaviour,
  request: ActorRequest,
  messageId: MessageId,
): number | undefined {
  const key = chosenBy(behaviour, request)
  if (key) return placeOfKey(key.keyType, key.key)
  if (messageId.kind === 'edge') return undefined
  return placeOfKey(`${behaviour.type}!key`, messageId.id)
}

function chosen(behaviour: Behaviour, request: ActorRequest): string {
  return chosenBy(behaviour, request)?.key ?? 'new'
}

/** The natural key that the first message that makes an actor asks for, run or refused. */
function chosenBy(behaviour: Behaviour, { messages }: ActorRequest): NaturalKey | null {
  const making = messages.find(({ type }) => behaviour.creates.includes(type))
  return making ? behaviour.chosenKey(making) : null
}
