// Messages and commands of an order as JSON Schemas with names, for the OpenAPI document: made of
// the schemas that check them, so that the document can't say anything else. It stands between
// check.ts and whoever describes the API. Format: OpenAPI 3.1, unions with a discriminator.

import type { TObject } from '@sinclair/typebox'
import type { MessageDescriptions } from '../../../protocol/behaviour.ts'
import { COMMANDS, LATER_COMMANDS } from '../command-table.ts'
import { BODIES } from './check.ts'
import { BODY_EXAMPLES, commandExample } from './examples.ts'

const COMMAND = 'OrderCommand'

/** What a body holds that has a schema of its own. */
const COMMAND_LIST = { $ref: refOf(COMMAND) }

export function describeOrderMessages(): MessageDescriptions {
  const commands = [...COMMANDS.values()].map(({ type, schema }) => ({
    type,
    name: `${capital(type)}Command`,
    schema: withType(schema, type),
  }))
  const messages = Object.entries(BODIES).map(([type, body]) => ({
    type,
    name: `Order${capital(type)}Message`,
    schema: messageOf(type, body as Schema),
  }))
  const later = [...LATER_COMMANDS].join(', ')
  return {
    union: 'OrderMessage',
    schemas: {
      OrderMessage: unionOf(messages, 'A message to an order, told by its `type`.'),
      [COMMAND]: unionOf(
        commands,
        `A command of \`create\` or \`applyCommands\`, told by its \`type\`. Later: ${later}.`,
      ),
      ...Object.fromEntries([...messages, ...commands].map(({ name, schema }) => [name, schema])),
    },
  }
}

type Schema = Readonly<Record<string, unknown>>

function capital(type: string): string {
  return type[0]!.toUpperCase() + type.slice(1)
}

function refOf(name: string): string {
  return `#/components/schemas/${name}`
}

function unionOf(
  members: readonly { readonly type: string; readonly name: string }[],
  description: string,
): Schema {
  return {
    description,
    oneOf: members.map(({ name }) => ({ $ref: refOf(name) })),
    discriminator: {
      propertyName: 'type',
      mapping: Object.fromEntries(members.map(({ type, name }) => [type, refOf(name)])),
    },
  }
}

/** The schema of a command, which the table finds by its type: here the type is in it. */
function withType(schema: TObject, type: string): Schema {
  return {
    ...schema,
    properties: { ...schema.properties, type: { const: type } },
    examples: [commandExample(type)],
  }
}

/** A message of that type; its commands are checked one by one, by their own schemas. */
function messageOf(type: string, body: Schema): Schema {
  const { commands, ...others } = (body['properties'] ?? {}) as Record<string, Schema>
  const list = commands && { commands: { ...commands, items: COMMAND_LIST } }
  const shown = list ? { ...body, properties: { ...others, ...list } } : body
  const { required } = body as { readonly required?: readonly string[] }
  return {
    type: 'object',
    additionalProperties: false,
    required: required === undefined ? ['type'] : ['type', 'body'],
    properties: { type: { const: type }, body: shown },
    examples: [{ type, body: BODY_EXAMPLES[type] }],
  }
}
