// Well-known registry keys: what other parts of the platform read from the registry, checked when
// it is written, so that a mistake shows at once and where it was made. Keys that are not listed
// hold any JSON value. Source: CONTRACT 1.1 "Well-known keys" and the rows below it.

import { Type } from '@sinclair/typebox'
import { LIMITS } from '../../config/limits.ts'
import { isCurrency } from '../../protocol/money.ts'
import { compileShape } from '../../protocol/json/validation.ts'
import type { ShapeError } from '../../protocol/json/validation.ts'

type Check = (value: Record<string, unknown>) => ShapeError | null

/** What one segment of a key looks like. */
interface Form {
  readonly form: RegExp
  readonly words: string
}

interface WellKnown {
  /** Segments; `<name>` stands for one of any content. */
  readonly pattern: readonly string[]
  /** What its values are called in messages. */
  readonly what: string
  /** Form of the last segment, when it has one. */
  readonly name?: Form
  /** Of its values; null: they are a text, a number or a boolean, and no object. */
  readonly check: Check | null
}

const text = Type.String({ minLength: 1, maxLength: LIMITS.commerce.textCharsMax })
const path = Type.String({
  maxLength: LIMITS.commerce.textCharsMax,
  pattern: String.raw`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*( *-> *('[^']+'|"[^"]+"))*$`,
})
const searchFields = Type.Array(
  Type.Object(
    { field: path, keyword: Type.Optional(Type.Boolean()) },
    { additionalProperties: false },
  ),
)

const CHANNEL = compileShape(
  Type.Object({
    currencyCode: Type.String(),
    taxIncluded: Type.Boolean(),
    inventories: Type.Optional(Type.Array(text, { uniqueItems: true })),
    countries: Type.Optional(Type.Record(Type.String(), Type.Object({}))),
  }),
)

const FIELD = compileShape(
  Type.Object({
    type: Type.Union(
      ['text', 'number', 'boolean', 'instant', 'date', 'uuid', 'enum', '[text]'].map((type) =>
        Type.Literal(type),
      ),
    ),
    source: path,
    dimensions: Type.Optional(
      Type.Array(Type.Union([Type.Literal('locale'), Type.Literal('channel')]), {
        uniqueItems: true,
      }),
    ),
    enumDefinition: Type.Optional(text),
    values: Type.Optional(text),
  }),
)

const EDGE = compileShape(
  Type.Object(
    {
      field: path,
      relatedSet: text,
      relatedField: Type.Optional(path),
      cardinality: Type.Union([Type.Literal('many'), Type.Literal('single')]),
    },
    { additionalProperties: false },
  ),
)

const ENUM_VALUE = compileShape(
  Type.Object({
    hue: Type.Optional(Type.Number({ minimum: 0, maximum: 360 })),
    setKey: Type.Optional(text),
  }),
)

const SEARCH = compileShape(
  Type.Object(
    {
      fields: searchFields,
      edges: Type.Optional(
        Type.Array(
          Type.Object({ edge: text, fields: searchFields }, { additionalProperties: false }),
        ),
      ),
    },
    { additionalProperties: false },
  ),
)

const ACTOR_TYPE = compileShape(
  Type.Object({
    graphSetName: Type.Optional(Type.String({ pattern: String.raw`^[A-Za-z_]\w*$` })),
  }),
)

const INVENTORY = compileShape(Type.Object({ dynamic: Type.Optional(Type.Object({})) }))

const KEY = { form: /^[a-z_][a-z0-9_]*$/, words: 'lower-case letters, digits and _' }
const NAME = { form: /^[A-Za-z_]\w*$/, words: 'letters, digits and _, no digit first' }

const WELL_KNOWN: readonly WellKnown[] = [
  { pattern: split('channels/<key>'), what: 'a channel', name: KEY, check: checkChannel },
  {
    pattern: split('graph/<node>/fields/<name>'),
    what: 'a custom field',
    name: NAME,
    check: FIELD,
  },
  { pattern: split('graph/<node>/edges/<name>'), what: 'a custom edge', name: NAME, check: EDGE },
  {
    pattern: split('enums/definitions/<name>/values/<key>'),
    what: 'an enum value',
    check: both(ENUM_VALUE, checkLabel),
  },
  {
    pattern: split('enums/graph/<node>/<field>/values/<key>'),
    what: 'an enum value',
    check: both(ENUM_VALUE, checkLabel),
  },
  { pattern: split('system/graph/<node>/search'), what: 'a search index', check: SEARCH },
  {
    pattern: split('actors/asset/types/<typeKey>'),
    what: 'an asset type',
    name: NAME,
    check: both(ACTOR_TYPE, checkLabel),
  },
  {
    pattern: split('actors/ticket/types/<typeKey>'),
    what: 'a ticket type',
    name: NAME,
    check: both(ACTOR_TYPE, checkLabel),
  },
  {
    pattern: split('apps/<appId>/settings/<name>'),
    what: "an app's setting",
    name: NAME,
    check: null,
  },
  { pattern: split('inventories/<key>'), what: 'an inventory', check: both(INVENTORY, checkLabel) },
]

/** What is wrong with a value under a well-known key. */
export interface ValueFault {
  readonly message: string
  /** Dotted path from the value; `key` when the key itself is at fault. */
  readonly member: string
}

/** null: the key is free for any value, or the value is as it should be. */
export function checkValue(key: string, value: unknown): ValueFault | null {
  const segments = key.split('/')
  const known = WELL_KNOWN.find((one) => fits(one.pattern, segments))
  if (known === undefined) return null
  const name = segments.at(-1)!
  if (known.name !== undefined && !known.name.form.test(name)) {
    const message = `${known.what} has a key of ${known.name.words}; "${name}" is none`
    return { message, member: 'key' }
  }
  if (known.check === null) {
    if (['string', 'number', 'boolean'].includes(typeof value)) return null
    return { message: `${known.what} is a text, a number or a boolean`, member: '' }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { message: `${known.what} is an object`, member: '' }
  }
  const wrong = known.check(value as Record<string, unknown>)
  if (wrong === null) return null
  const where = wrong.member === '' ? 'it' : wrong.member
  return { message: `not ${known.what}: ${where} ${wrong.message}`, member: wrong.member }
}

function split(pattern: string): readonly string[] {
  return pattern.split('/')
}

function fits(pattern: readonly string[], segments: readonly string[]): boolean {
  return (
    pattern.length === segments.length &&
    pattern.every((part, i) => part.startsWith('<') || part === segments[i])
  )
}

function both(first: Check, second: Check): Check {
  return (value) => first(value) ?? second(value)
}

/** A label is a text, or a text by locale with a `default`. */
function checkLabel({ label }: Record<string, unknown>): ShapeError | null {
  if (label === undefined || typeof label === 'string') return null
  if (typeof label !== 'object' || label === null || Array.isArray(label)) {
    return { member: 'label', message: 'must be a text, or texts by locale' }
  }
  const texts = label as Record<string, unknown>
  if (!Object.hasOwn(texts, 'default')) return { member: 'label.default', message: 'is missing' }
  const odd = Object.keys(texts).find((locale) => typeof texts[locale] !== 'string')
  return odd === undefined ? null : { member: `label.${odd}`, message: 'must be a text' }
}

function checkChannel(channel: Record<string, unknown>): ShapeError | null {
  const wrong = CHANNEL(channel) ?? checkLabel(channel)
  if (wrong !== null) return wrong
  if (!isCurrency(channel['currencyCode'] as string)) {
    return { member: 'currencyCode', message: 'must be an ISO 4217 code, for example EUR' }
  }
  const odd = Object.keys((channel['countries'] as object | undefined) ?? {}).find(
    (country) => !/^[A-Z]{2}$/.test(country),
  )
  if (odd === undefined) return null
  return { member: `countries.${odd}`, message: 'must be an ISO 3166 code of two capitals' }
}
