// The bodies of requests to actors, for the OpenAPI document: the messages of all types that are
// served, as their behaviours describe them. What comes in is checked by actor-request.ts and the
// behaviours. Source: CONTRACT 0, 1.3.

import { LIMITS } from '../../config/limits.ts'
import { assert } from '../../protocol/errors.ts'
import type { Behaviour, MessageDescriptions } from '../../protocol/behaviour.ts'

export interface DescribedBodies {
  /** Body of a request to one actor. */
  readonly messages: object
  /** One line of bulk. */
  readonly line: object
  /** Schemas that both refer to. */
  readonly named: Readonly<Record<string, object>>
}

export function describeBodies(behaviours: Iterable<Behaviour>): DescribedBodies {
  const described: MessageDescriptions[] = []
  for (const { home, describe } of behaviours) {
    if (home === 'shards' && describe) described.push(describe())
  }
  const unions = described.map(({ union }) => ({ $ref: `#/components/schemas/${union}` }))
  const messages = {
    type: 'array',
    description: 'Messages to one actor, which are done in their order.',
    minItems: 1,
    maxItems: LIMITS.actors.messagesMax,
    items: unions.length === 1 ? unions[0] : { anyOf: unions },
  }
  const line = {
    type: 'object',
    description: 'One line of the body: messages to one actor.',
    additionalProperties: false,
    required: ['id', 'messages'],
    properties: {
      id: { type: 'string', description: 'A UUID, a number, or `new`' },
      messages,
      idempotencyKey: { type: ['string', 'null'], maxLength: LIMITS.actors.idempotencyKeyCharsMax },
    },
  }
  return { messages, line, named: together(described) }
}

/** The schemas of all types. Throws an AssertionError when two types call theirs the same. */
function together(described: readonly MessageDescriptions[]): Record<string, object> {
  const named: Record<string, object> = {}
  for (const { schemas } of described) {
    for (const [name, schema] of Object.entries(schemas)) {
      assert(named[name] === undefined, `${name} is the schema of one actor type`)
      named[name] = schema
    }
  }
  return named
}
