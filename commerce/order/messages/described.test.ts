// Messages and commands as the OpenAPI document shows them: all of them, as they are checked, each
// with an example that is taken.

import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { compileShape } from '../../../protocol/json/validation.ts'
import { COMMANDS } from '../command-table.ts'
import { OrderDriver } from '../testing/order-driver.ts'
import { BODIES, checkCommand, checkMessage } from './check.ts'
import { describeOrderMessages } from './described.ts'
import { BODY_EXAMPLES, COMMAND_EXAMPLES, commandExample } from './examples.ts'

interface Described {
  readonly examples: readonly [unknown]
  readonly properties: Readonly<Record<string, object>>
}

interface Union {
  readonly oneOf: readonly { readonly $ref: string }[]
  readonly discriminator: { readonly mapping: Readonly<Record<string, string>> }
}

const { schemas, union } = describeOrderMessages()
const nameOf = (ref: string): string => ref.split('/').at(-1)!

/** Members of a union by their `type`. */
function membersOf(name: string): Map<string, Described> {
  const { oneOf, discriminator } = schemas[name] as Union
  const byType = Object.entries(discriminator.mapping)
  t.strictSame(
    byType.map(([, ref]) => ref),
    oneOf.map(({ $ref }) => $ref),
    `${name}: the mapping names what the union holds`,
  )
  return new Map(byType.map(([type, ref]) => [type, schemas[nameOf(ref)] as Described]))
}

// What a format means is told nowhere but in our own checks.
const ajv = new Ajv2020({ strict: false, validateFormats: false })
const shown = JSON.parse(JSON.stringify({ components: { schemas } })) as object
ajv.addSchema({ $id: 'document', ...shown })

/** A check against one of the schemas as a reader of the document would make it. */
function validatorOf(name: string): (value: unknown) => boolean {
  return ajv.compile({ $ref: `document#/components/schemas/${name}` })
}

t.test('every message and every command is there, and has an example', async (t) => {
  t.equal(union, 'OrderMessage')
  t.strictSame([...membersOf('OrderMessage').keys()], Object.keys(BODIES))
  t.strictSame([...membersOf('OrderCommand').keys()], [...COMMANDS.keys()])
  t.strictSame(Object.keys(COMMAND_EXAMPLES).sort(), [...COMMANDS.keys()].sort())
  t.strictSame(Object.keys(BODY_EXAMPLES), Object.keys(BODIES))
})

t.test('a command has the members by which it is checked', async (t) => {
  for (const [type, described] of membersOf('OrderCommand')) {
    const { schema } = COMMANDS.get(type)!
    const { examples: _, ...rest } = JSON.parse(JSON.stringify(described)) as Described
    const checked = JSON.parse(JSON.stringify(schema)) as Described
    t.strictSame(rest, { ...checked, properties: { ...checked.properties, type: { const: type } } })
  }
})

t.test('each example fits its schema, and no other of the union', async (t) => {
  for (const [name, check] of [
    ['OrderCommand', (one: unknown) => checkCommand(one, 0)],
    ['OrderMessage', (one: unknown) => checkMessage(one as never)],
  ] as const) {
    const fits = validatorOf(name)
    for (const [type, { examples }] of membersOf(name)) {
      t.equal(check(examples[0]), null, `${type} is checked`)
      t.ok(fits(examples[0]), `${type} fits`)
    }
    t.notOk(fits({ type: 'unheard' }))
  }
})

const STRANGE = [null, true, '', 'text', 0, -1, 1.5, {}, { a: 1 }, []]

t.test('whatever is sent, the document says what the check says of its shape', async () => {
  const cases = [...membersOf('OrderCommand')].map(([type, { properties, examples }]) => {
    const fits = validatorOf(
      nameOf((schemas['OrderCommand'] as Union).discriminator.mapping[type]!),
    )
    const shape = compileShape(COMMANDS.get(type)!.schema)
    return { example: examples[0] as object, members: Object.keys(properties), fits, shape }
  })
  fc.assert(
    fc.property(
      fc.constantFrom(...cases),
      fc.array(fc.tuple(fc.nat(20), fc.constantFrom(undefined, ...STRANGE)), { maxLength: 3 }),
      ({ example, members, fits, shape }, changes) => {
        const names = members.filter((name) => name !== 'type').concat('unheard')
        const value: Record<string, unknown> = { ...example }
        for (const [at, to] of changes) {
          const name = names[at % names.length]!
          if (to === undefined) delete value[name]
          else value[name] = to
        }
        // Formats are words in a document: what they refuse only the check knows.
        const problem = shape(value)
        if (problem === null) return fits(value)
        return !fits(value) || /UUID|control characters|date|timestamp/.test(problem.message)
      },
    ),
    { numRuns: 2_000 },
  )
})

/** What has to be so before an example. */
const CONFIRMED = [commandExample('setOrderState')]
const DELIVERED = [...CONFIRMED, commandExample('completeDelivery')]
const RETURNED = [...DELIVERED, commandExample('createReturn')]
const RELEASED = [commandExample('releaseOrderLineToInvoicing')]
const DISCOUNTED = [commandExample('createStaticOrderDiscount')]
const BEFORE: Readonly<Record<string, readonly object[]>> = {
  removeTag: [commandExample('addTag')],
  removeDeliveryTag: [commandExample('addDeliveryTag')],
  releaseDelivery: CONFIRMED,
  retractDelivery: [...CONFIRMED, commandExample('releaseDelivery')],
  completeDelivery: CONFIRMED,
  cancelDelivery: CONFIRMED,
  reopenDelivery: [...CONFIRMED, commandExample('cancelDelivery')],
  deleteDelivery: [commandExample('deleteOrderLine')],
  moveOrderLine: [{ type: 'createDelivery', deliveryId: '0198c0de-7000-7000-8000-0000000000d2' }],
  setStaticDiscountValue: DISCOUNTED,
  setDiscountDescription: DISCOUNTED,
  setDiscountDynamicFields: DISCOUNTED,
  deleteDiscount: DISCOUNTED,
  createReturn: DELIVERED,
  setReturnRefundFactor: RETURNED,
  setReturnDynamicFields: RETURNED,
  deleteReturn: RETURNED,
  retractOrderLineFromInvoicing: RELEASED,
  retractShippingFromInvoicing: [commandExample('releaseShippingToInvoicing')],
  releaseReturnToInvoicing: [...RETURNED, commandExample('retractReturnFromInvoicing')],
  retractReturnFromInvoicing: RETURNED,
  invoice: RELEASED,
  cancelInvoice: [...RELEASED, commandExample('invoice')],
}
const BARE: ReadonlySet<string> = new Set(['createDelivery', 'createOrderLine'])

/** An order as the example of `create` makes it, after what has to be so before the example. */
function orderBefore(type: string): OrderDriver {
  const order = new OrderDriver()
  const made = BARE.has(type) ? { currencyCode: 'EUR', taxIncluded: true } : BODY_EXAMPLES['create']
  const answer = order.send('create', made)
  if (!answer.ok) throw new Error(JSON.stringify(answer.errors))
  if (type === 'createOrderLine') order.do(commandExample('createDelivery'))
  for (const command of BEFORE[type] ?? []) order.do(command)
  return order
}

t.test('each command is taken by an order in a fitting state', async (t) => {
  for (const type of COMMANDS.keys()) {
    const order = orderBefore(type)
    // The id of an invoice is made when it is.
    const [invoice] = order.docs('invoice')
    const own = type === 'cancelInvoice' ? { invoiceId: invoice!['invoiceId'] } : null
    const answer = order.apply({ ...commandExample(type), ...own })
    t.match(answer, { ok: true }, `${type} ${JSON.stringify(answer)}`)
    if (answer.ok) t.ok(answer.records.length > 0, `${type} changes something`)
  }
})

t.test('each message is taken too', async (t) => {
  for (const [type, body] of Object.entries(BODY_EXAMPLES)) {
    const order = new OrderDriver()
    if (type !== 'create') order.send('create', BODY_EXAMPLES['create'])
    const own = type === 'rewind' ? { checkpointId: order.checkpoints()[0] } : null
    t.match(order.send(type, { ...body, ...own }), { ok: true }, type)
  }
})

t.test('the list of commands keeps its bounds', async (t) => {
  const { body } = membersOf('OrderMessage').get('applyCommands')!.properties as never as {
    body: { properties: { commands: object } }
  }
  const items = { $ref: '#/components/schemas/OrderCommand' }
  t.match(body.properties.commands, { minItems: 1, maxItems: LIMITS.order.commandsMax, items })
})
