// Messages and commands of an actor type as JSON Schemas with names, for the OpenAPI document: made
// of the schemas that check them, so that the document can't say anything else. Format: OpenAPI
// 3.1, unions with a discriminator.

import type { MessageDescriptions } from '../../protocol/behaviour.ts'
import type { CommandShape } from './command.ts'

/** What is described of an actor type. */
export interface Described {
  /** Begins the names of all its schemas, for types may have commands of one name: `Order`. */
  readonly name: string
  /** For texts: `an order`. */
  readonly what: string
  /** Schemas of bodies by message type; `commands` in them is a list of commands. */
  readonly bodies: Readonly<Record<string, object>>
  readonly commands: ReadonlyMap<string, CommandShape>
  /** Commands that are known by name and not built yet. */
  readonly later: ReadonlySet<string>
  readonly bodyExamples: Readonly<Record<string, object>>
  /** The whole command. */
  readonly commandExample: (type: string) => object
}

export function describeMessages(of: Described): MessageDescriptions {
  const { name, what } = of
  const command = `${name}Command`
  const commands = [...of.commands.values()].map((shape) => ({
    type: shape.type,
    name: `${name}${capital(shape.type)}Command`,
    schema: withType(shape, of.commandExample(shape.type)),
  }))
  const messages = Object.entries(of.bodies).map(([type, body]) => ({
    type,
    name: `${name}${capital(type)}Message`,
    schema: messageOf(type, body as Schema, { example: of.bodyExamples[type], command }),
  }))
  const later = [...of.later].join(', ')
  return {
    union: `${name}Message`,
    schemas: {
      [`${name}Message`]: unionOf(messages, `A message to ${what}, told by its \`type\`.`),
      [command]: unionOf(
        commands,
        `A command of \`create\` or \`applyCommands\`, told by its \`type\`. Later: ${later}.`,
      ),
      ...Object.fromEntries([...messages, ...commands].map((it) => [it.name, it.schema])),
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
function withType({ type, schema }: CommandShape, example: object): Schema {
  return {
    ...schema,
    properties: { ...schema.properties, type: { const: type } },
    examples: [example],
  }
}

/** A message of that type; its commands are checked one by one, by their own schemas. */
function messageOf(
  type: string,
  body: Schema,
  { example, command }: { readonly example: object | undefined; readonly command: string },
): Schema {
  const { commands, ...others } = (body['properties'] ?? {}) as Record<string, Schema>
  const list = commands && { commands: { ...commands, items: { $ref: refOf(command) } } }
  const shown = list ? { ...body, properties: { ...others, ...list } } : body
  const { required } = body as { readonly required?: readonly string[] }
  return {
    type: 'object',
    additionalProperties: false,
    required: required === undefined ? ['type'] : ['type', 'body'],
    properties: { type: { const: type }, body: shown },
    examples: [{ type, body: example }],
  }
}
