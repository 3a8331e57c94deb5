// Shape checks with messages a person can act on: TypeBox schemas compiled by ajv.

import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import formats from 'ajv-formats'
import type { TSchema } from '@sinclair/typebox'
import { instantMs, instantText } from '../graph/filter/instants.ts'
import { toUuid } from '../ids.ts'

/** Formats of our own, and what a value of each format is, for messages. */
const FORMATS: Readonly<Record<string, { is?: (text: string) => boolean; what: string }>> = {
  uuid: { is: (text) => toUuid(text) !== null, what: 'a UUID' },
  timestamp: {
    is: isTimestamp,
    what: 'an ISO 8601 timestamp with its zone, such as 2026-01-31T12:00:00.000Z',
  },
  /** A name that can stand in a path, a log line or an index. */
  key: { is: isKey, what: 'text without control characters or spaces at its ends' },
  /** The same where it stands beside UUIDs and virtual ids: an actor's natural key. */
  naturalKey: {
    is: (text) => isKey(text) && text !== 'new' && toUuid(text) === null,
    what: 'text without control characters or spaces at its ends, not "new" and not a UUID',
  },
  email: { what: 'an e-mail address' },
  date: { what: 'a date such as 2026-01-31' },
  uri: { what: 'a URI' },
}
function makeAjv(): Ajv {
  const made = new Ajv({
    allErrors: false,
    strict: true,
    allowUnionTypes: true,
    // An error knows the schema it is about: what would have been right is in there.
    verbose: true,
    // Schemas are ours and built by TypeBox; strict mode names what is unknown in them. To check
    // them against the schema of schemas would only delay the first request of a start.
    validateSchema: false,
    meta: false,
  })
  // The package's default export is typed for CommonJS callers.
  const addFormats = formats as unknown as (a: Ajv, names: string[]) => void
  addFormats(made, ['email', 'date', 'uri'])
  for (const [name, { is }] of Object.entries(FORMATS)) if (is) made.addFormat(name, is)
  return made
}

const shared = makeAjv()

/** A schema that names itself has a registry of its own: the name may stand in another one too. */
function compile(schema: TSchema): ValidateFunction {
  return (JSON.stringify(schema).includes('"$id"') ? makeAjv() : shared).compile(schema)
}

/** One that every store can keep: its zone can take it out of the years 0 to 9999. */
function isTimestamp(text: string): boolean {
  const ms = instantMs(text)
  return ms !== null && instantText(ms) !== null
}

function isKey(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- control characters are what is looked for
  return !/[\u0000-\u001f\u007f]/.test(text) && text.trim() === text
}

/** What is wrong with a value, or null. `member` is a dotted path from the checked value. */
export interface ShapeError {
  readonly member: string
  readonly message: string
}

export type ShapeCheck = (value: unknown) => ShapeError | null

/**
 * A check that is compiled when it is first used: there are some hundred, a start needs few of
 * them, and the worker threads none (a third of a start was spent here).
 */
export function compileShape(schema: TSchema): ShapeCheck {
  let validate: ValidateFunction | null = null
  return (value) => {
    validate ??= compile(schema)
    return validate(value) ? null : explain(validate.errors![0]!)
  }
}

function explain(error: ErrorObject): ShapeError {
  const path = error.instancePath.slice(1).replaceAll('/', '.').replaceAll('~1', '/')
  const params = error.params as Record<string, unknown>
  const at = (name: string): string => (path === '' ? name : `${path}.${name}`)
  switch (error.keyword) {
    case 'required':
      return { member: at(String(params['missingProperty'])), message: 'is missing' }
    case 'additionalProperties':
      return { member: at(String(params['additionalProperty'])), message: unknownHere(error) }
    case 'enum':
      return {
        member: path,
        message: `must be one of ${(params['allowedValues'] as unknown[]).join(', ')}`,
      }
    case 'format':
      return { member: path, message: `must be ${FORMATS[String(params['format'])]!.what}` }
    case 'const':
      return { member: path, message: `must be ${JSON.stringify(params['allowedValue'])}` }
    default:
      return { member: path, message: error.message ?? 'is not valid' }
  }
}

/** Known members that a message lists beside an unknown one; where there are more it lists none. */
const NAMES_SHOWN_MAX = 24

function unknownHere(error: ErrorObject): string {
  const { properties = {} } = (error.parentSchema ?? {}) as { properties?: object }
  const known = Object.keys(properties)
  if (known.length === 0 || known.length > NAMES_SHOWN_MAX) return 'is not known here'
  return `is not known here; known are ${known.join(', ')}`
}
