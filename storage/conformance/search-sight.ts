// Random callers for the conformance suite: which nodes of each type they see, as a condition of
// the plan and, once more, node by node. What isn't seen is as if it weren't there. Source:
// CONTRACT 1.4 "Which nodes are seen".

import fc from 'fast-check'
import type { FieldDef, NodeType } from '../../protocol/graph/node-type.ts'
import type { Condition, Scalar } from '../../protocol/graph/plan.ts'
import { FULL_ACCESS, type GraphAccess } from '../../protocol/graph/planning.ts'
import {
  actorIds,
  bookIds,
  CODES,
  type Doc,
  NODE_TYPES,
  NUMBERS,
  shelfIds,
  TEXTS,
} from './search-nodes.ts'

/** What opens nodes of one type. */
interface Opening {
  readonly condition: Condition
  readonly opens: (doc: Doc) => boolean
  /** Nodes are opened by their ids alone. */
  readonly isById: boolean
}

/** What a caller sees, by node type; all of a type that is not named. */
export type Sight = ReadonlyMap<string, Opening>

const VALUES: Readonly<Record<string, readonly Scalar[]>> = {
  text: [...TEXTS, ...CODES],
  uuid: [...actorIds, ...shelfIds],
  enum: ['small', 'large'],
  '[text]': TEXTS,
  number: NUMBERS,
  boolean: [true, false],
}

function oneOf(type: NodeType): fc.Arbitrary<Opening> {
  const fields = type.fields.filter((field) => field.type === 'dynamic' || VALUES[field.type])
  return fc.constantFrom(...fields).chain((field) => {
    const isId = field.name === type.idField
    const known = isId ? [...actorIds, ...shelfIds, ...bookIds] : (VALUES[field.type] ?? NUMBERS)
    // Many are seen, so that queries find something.
    const least = Math.ceil(known.length / 3)
    return fc
      .subarray([...known], { minLength: least })
      .map((values) => ({ ...opening(field, values), isById: isId }))
  })
}

function opening({ name, type }: FieldDef, values: readonly Scalar[]): Omit<Opening, 'isById'> {
  const isAny = (value: unknown): boolean => values.some((one) => one === value)
  if (type === '[text]') {
    const opens = (doc: Doc): boolean => ((doc[name] ?? []) as unknown[]).some(isAny)
    const list = { kind: 'array', operator: 'anyof', path: [name], as: 'text', values } as const
    return { condition: list, opens }
  }
  const as = typeof values[0] === 'string' ? 'text' : (typeof values[0] as 'number' | 'boolean')
  const isMember = type === 'dynamic'
  const path = isMember ? [name, 'x'] : [name]
  const operand = { kind: 'field', path, type: isMember ? type : as } as const
  return {
    condition: { kind: 'in', as, operand, values },
    opens: (doc) =>
      isAny(isMember ? (doc[name] as Record<string, unknown> | null)?.['x'] : doc[name]),
  }
}

function joined(kind: 'and' | 'or', parts: readonly Opening[]): Opening {
  if (parts.length === 1) return parts[0]!
  return {
    condition: { kind, of: parts.map(({ condition }) => condition) },
    opens: (doc) => parts[kind === 'or' ? 'some' : 'every'](({ opens }) => opens(doc)),
    isById: parts.every(({ isById }) => isById),
  }
}

/** Lists that must each open a node, which one of their entries does. */
function openingsOf(type: NodeType): fc.Arbitrary<Opening> {
  const list = fc.array(oneOf(type), { minLength: 1, maxLength: 3 }).map((of) => joined('or', of))
  const lists = fc.oneof(
    { weight: 4, arbitrary: fc.tuple(list) },
    { weight: 1, arbitrary: fc.tuple(list, list) },
  )
  return lists.map((of) => joined('and', of))
}

/** Callers who see some nodes of some types. */
export const randomSight: fc.Arbitrary<Sight> = fc
  .tuple(...NODE_TYPES.map((type) => fc.option(openingsOf(type), { freq: 2 })))
  .map((openings) => {
    const sight = new Map<string, Opening>()
    for (const [i, one] of openings.entries()) if (one !== null) sight.set(NODE_TYPES[i]!.name, one)
    return sight
  })

/** As the planner asks for it. */
export function accessOf(sight: Sight): GraphAccess {
  return { ...FULL_ACCESS, sees: ({ name }) => sight.get(name)?.condition ?? true }
}
