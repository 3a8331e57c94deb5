// What callers send to the graph, as it stands in the body, and the check of its shape. Source:
// specification "Graph", CONTRACT 1.4.

import { Type, type TSchema } from '@sinclair/typebox'
import { compileShape } from '../json/validation.ts'

export interface NodeBody {
  readonly fields?: readonly string[]
  readonly navigate?: readonly NavigationBody[]
}

export interface NavigationBody {
  readonly edge: string
  readonly alias?: string
  readonly filter?: string
  readonly phrase?: string
  readonly orderBy?: string
  readonly limit?: number
  readonly cursor?: 'last' | 'each' | boolean
  readonly after?: string
  readonly count?: boolean
  readonly require?: 'any' | 'some' | 'none' | boolean
  readonly node?: NodeBody
}

const object = (members: Record<string, TSchema>): TSchema =>
  Type.Object(members, { additionalProperties: false })

const nodeOf = (navigation: TSchema): TSchema =>
  object({
    fields: Type.Optional(Type.Array(Type.String())),
    navigate: Type.Optional(Type.Array(navigation)),
  })

/** One navigation object, nested ones included: the form that the OpenAPI document shows. */
export const NavigationSchema: TSchema = Type.Recursive(
  (navigation) =>
    object({
      edge: Type.String({ description: 'Base set, or an edge of the parent node.' }),
      alias: Type.Optional(Type.String({ description: 'Letters, digits and _.' })),
      filter: Type.Optional(Type.String()),
      phrase: Type.Optional(Type.String()),
      orderBy: Type.Optional(Type.String()),
      limit: Type.Optional(Type.Integer({ minimum: 1 })),
      cursor: Type.Optional(
        Type.Union([Type.Boolean(), Type.String()], {
          description:
            'Of a base set: last (or true) adds <name>Cursor where there are more nodes, each adds ' +
            '<name>Cursors, one for each.',
        }),
      ),
      after: Type.Optional(
        Type.String({ description: 'A cursor of the same query: the nodes behind it.' }),
      ),
      count: Type.Optional(Type.Boolean()),
      require: Type.Optional(Type.Union([Type.Boolean(), Type.String()])),
      node: Type.Optional(nodeOf(navigation)),
    }),
  { $id: 'Navigation' },
)

/** Body of `POST /resources/graph`. */
export const NavigationsSchema: TSchema = Type.Array(NavigationSchema)

export const checkNavigations = compileShape(Type.Array(Type.Unknown()))
export const checkNavigation = compileShape(NavigationSchema)
export const checkNode = compileShape(nodeOf(Type.Unknown()))
