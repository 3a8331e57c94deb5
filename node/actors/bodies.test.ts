// What the OpenAPI document says of several actor types: each keeps its own messages and commands,
// also where another has some of the same names.

import { Type } from '@sinclair/typebox'
import t from 'tap'
import type { CommandShape } from '../../commerce/actor/command.ts'
import { describeMessages } from '../../commerce/actor/described.ts'
import { describeOrderMessages } from '../../commerce/order/messages/described.ts'
import type { Behaviour, MessageDescriptions } from '../../protocol/behaviour.ts'
import { describeBodies } from './bodies.ts'

/** A type that is not built; it has messages and a command of the same names as an order. */
function describeParcels(name: string): MessageDescriptions {
  const schema = Type.Object({ type: Type.String(), weightGrams: Type.Integer() })
  const weigh = { type: 'setExternalReference', schema } as unknown as CommandShape
  return describeMessages({
    name,
    what: 'a parcel',
    bodies: { create: Type.Object({ commands: Type.Array(Type.Object({})) }) },
    commands: new Map([[weigh.type, weigh]]),
    later: new Set(),
    bodyExamples: { create: { commands: [] } },
    commandExample: (type) => ({ type, weightGrams: 5 }),
  })
}

function behaviours(...types: readonly (() => MessageDescriptions)[]): Behaviour[] {
  return types.map((describe) => ({ home: 'shards', describe }) as unknown as Behaviour)
}

t.test('two types have a command of one name, and each shows its own', async (t) => {
  const alone = describeBodies(behaviours(describeOrderMessages)).named
  const { messages, line, named } = describeBodies(
    behaviours(describeOrderMessages, () => describeParcels('Parcel')),
  )
  const { ParcelSetExternalReferenceCommand: own, ...others } = named
  t.match(own, { properties: { type: { const: 'setExternalReference' }, weightGrams: {} } })
  t.match(alone['OrderSetExternalReferenceCommand'], {
    properties: { type: { const: 'setExternalReference' }, weightGrams: undefined },
  })
  for (const [name, schema] of Object.entries(alone)) t.strictSame(others[name], schema, name)
  t.strictSame(
    Object.keys(others).filter((name) => !(name in alone)),
    ['ParcelMessage', 'ParcelCommand', 'ParcelCreateMessage'],
  )
  t.match(messages, {
    items: {
      anyOf: [
        { $ref: '#/components/schemas/OrderMessage' },
        { $ref: '#/components/schemas/ParcelMessage' },
      ],
    },
  })
  const text = JSON.stringify([messages, line, named])
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
    t.ok(named[name!], `${name} is there`)
  }
})

t.test('two types that call a schema the same are a mistake of ours', async (t) => {
  const alike = behaviours(describeOrderMessages, () => describeParcels('Order'))
  t.throws(() => describeBodies(alike), /is the schema of one actor type/)
})
