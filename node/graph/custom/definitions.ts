// Custom fields and edges as the registry defines them, checked against the nodes that are there,
// and the node types with them. Pure. Source: CONTRACT 1.1 "Custom fields", "Custom edges".

import { LIMITS } from '../../../config/limits.ts'
import { FieldMistake, resolveField } from '../../../protocol/graph/filter/fields.ts'
import { SyntaxMistake } from '../../../protocol/graph/filter/lexer.ts'
import { parsePath, type PathExpr } from '../../../protocol/graph/filter/parser.ts'
import type {
  Dimensions,
  EdgeDef,
  FieldDef,
  FieldType,
  NodeType,
} from '../../../protocol/graph/node-type.ts'
import { edgeMistake, type GraphNode, type GraphSchema } from '../../../protocol/graph/schema.ts'
import { suggestion } from '../../../protocol/near-names.ts'

/** A definition in the registry; its value has the form that well-known.ts checks. */
export interface Definition {
  readonly key: string
  readonly value: unknown
}

/** Why a definition can't be: what is wrong, and in which member of its value (`key`: its key). */
export interface DefinitionFault {
  readonly message: string
  readonly member: string
}

/** What is offered for an enum field: `values` is its definition's source word. */
export type Offered = (place: {
  readonly node: string
  readonly field: string
  readonly values: string | null
}) => readonly string[]

/** Node types with what is defined for them, and the definitions that can't be. */
export interface CustomTypes {
  readonly types: readonly NodeType[]
  readonly refused: readonly { readonly key: string; readonly reason: string }[]
}

interface FieldValue {
  readonly type: FieldType
  readonly source: string
  readonly dimensions?: Dimensions['names']
  readonly enumDefinition?: string
  readonly values?: string
}

interface EdgeValue {
  readonly field: string
  readonly relatedSet: string
  readonly relatedField?: string
  readonly cardinality: 'single' | 'many'
}

interface Place {
  readonly node: string
  readonly kind: 'fields' | 'edges'
  readonly name: string
}

/** Under which all definitions are. */
export const DEFINITIONS = 'graph/'

const KEY = /^graph\/([^/]+)\/(fields|edges)\/([^/]+)$/

/** Null: the key is of no custom field or edge. */
export function placeOf(key: string): Place | null {
  const [, node, kind, name] = KEY.exec(key) ?? []
  if (name === undefined) return null
  return { node: node!, kind: kind as Place['kind'], name }
}

const fault = (member: string, message: string): DefinitionFault => ({ member, message })

/** Why the definition can't be beside those that are in `types`; null: it can. */
export function definitionFault(
  { key, value }: Definition,
  types: readonly NodeType[],
): DefinitionFault | null {
  const place = placeOf(key)
  if (place === null) return null
  if (typeof value !== 'object' || value === null) {
    return fault('', 'a definition is an object that everybody may read, no secret')
  }
  const byName = new Map(types.map((type) => [type.name, type]))
  const node = byName.get(place.node)
  if (node === undefined) {
    const near = suggestion(place.node, [...byName.keys()])
    return fault('key', `there is no node "${place.node}"${near}`)
  }
  if (place.kind === 'edges' && node.storage.kind !== 'row') {
    return fault('key', `${node.name} is kept within other nodes: no edge of its own leaves it`)
  }
  const wrong = nameFault(place, node, types)
  if (wrong !== null) return wrong
  return place.kind === 'fields'
    ? fieldFault(value as FieldValue, node)
    : edgeFault({ ...(value as EdgeValue), name: place.name }, node, types)
}

/** Words of the filter language, members of every object, and what an index keeps for itself. */
const RESERVED = new Set(
  (
    'and or not anyof allof in contains startswith endswith now true false nothing null ' +
    '__proto__ constructor prototype kontor id'
  ).split(' '),
)

/** Engines don't tell capitals from small letters in names of columns. */
const folded = (name: string): string => name.toLowerCase()

function nameFault(
  { name, kind }: Place,
  node: NodeType,
  types: readonly NodeType[],
): DefinitionFault | null {
  const { customNameCharsMax, customFieldsMax, customEdgesMax } = LIMITS.graph
  if (name.length > customNameCharsMax) {
    return fault('key', `a name has at most ${customNameCharsMax} characters`)
  }
  if (RESERVED.has(folded(name))) return fault('key', `"${name}" has a meaning of its own`)
  const taken = [...namesOf(node, types)].find((one) => folded(one) === folded(name))
  if (taken !== undefined) return fault('key', `${node.name} has ${taken} already`)
  const max = kind === 'fields' ? customFieldsMax : customEdgesMax
  const count = node[kind].filter(({ custom }) => custom).length
  if (count >= max) return fault('key', `${node.name} has ${max} custom ${kind}, that is the most`)
  return null
}

/** Names of its fields and edges, and of all else that its documents hold. */
function* namesOf(node: NodeType, types: readonly NodeType[]): Generator<string> {
  for (const { name } of node.fields) yield name
  for (const { name } of node.edges) yield name
  if (node.position !== undefined) yield node.position
  for (const { name, edges, storage } of types) {
    if (storage.kind === 'embedded' && storage.node === node.name) yield storage.member
    for (const { from, to, node: target, through } of edges) {
      if (name === node.name) yield from
      if (target === node.name) yield to
      if (through?.node !== node.name) continue
      yield through.from
      yield through.to
    }
  }
}

const TEXTS: ReadonlySet<string> = new Set(['text', 'enum', 'uuid', 'date', 'instant'])

function fieldFault(value: FieldValue, node: NodeType): DefinitionFault | null {
  const { type, source, dimensions = [], enumDefinition, values } = value
  if (type !== 'enum' && (enumDefinition ?? values) !== undefined) {
    const member = values === undefined ? 'enumDefinition' : 'values'
    return fault(member, `only an enum has values, this is of the type ${type}`)
  }
  if (enumDefinition !== undefined && values !== undefined) {
    return fault('enumDefinition', 'values and enumDefinition exclude each other')
  }
  if (values !== undefined && !SOURCE_WORD.test(values)) {
    const words = 'channels, inventories, currencies, countries or definitions/<name>'
    return fault('values', `values is one of ${words}, not "${values}"`)
  }
  const read = readSource(source, node)
  if ('message' in read) return read
  const from = read.type
  if (from === 'member') return null
  if (dimensions.length > 0) {
    const right = `values by ${dimensions.join(' and ')} are in a member of a dynamic field`
    return fault('dimensions', `${source} of ${node.name} is one value: ${right}`)
  }
  if (from === type) return null
  // What is text as it is kept may be shown as text.
  if ((type === 'text' || type === 'enum') && TEXTS.has(from)) return null
  return fault('type', `${source} of ${node.name} is of the type ${from}, which is never a ${type}`)
}

const SOURCE_WORD = /^(channels|inventories|currencies|countries|definitions\/[A-Za-z_][\w-]*)$/

type Source = { readonly type: string; readonly path: readonly string[] }

/** A path of the filter language that leads to one value of the node's own, not a custom one. */
function readSource(source: string, node: NodeType): Source | DefinitionFault {
  try {
    const expr = parsePath(source)
    const own = node.fields.filter(({ custom }) => !custom)
    const found = resolveField(expr, nodeOf({ ...node, fields: own }), () => true)
    if (found.type !== 'object' && found.type !== 'dynamic' && found.type !== 'value') {
      return { type: found.type, path: pathOf(expr) }
    }
    return fault('source', `${source} holds many values: name one, as in dynamic->'season'`)
  } catch (mistake) {
    if (mistake instanceof FieldMistake || mistake instanceof SyntaxMistake) {
      return fault('source', mistake.message)
    }
    throw mistake
  }
}

const pathOf = ({ names, members }: PathExpr): string[] => [...names, ...members]

function nodeOf(type: NodeType): GraphNode {
  return { type, fields: new Map(type.fields.map((f) => [f.name, f])), edges: new Map() }
}

function edgeFault(
  { field, relatedSet, relatedField, ...edge }: EdgeValue & { readonly name: string },
  node: NodeType,
  types: readonly NodeType[],
): DefinitionFault | null {
  const target = types.find(({ set }) => set === relatedSet)
  if (target === undefined) {
    const near = suggestion(
      relatedSet,
      Array.from(types, ({ set }) => set),
    )
    return fault('relatedSet', `there is no base set "${relatedSet}"${near}`)
  }
  if (target.storage.kind !== 'row') {
    return fault('relatedSet', `${relatedSet} are kept within other nodes: no edge leads to them`)
  }
  const ends = [
    ['field', node, field],
    ['relatedField', target, relatedField ?? target.idField],
  ] as const
  for (const [member, { name, fields }, path] of ends) {
    if (fields.some((one) => one.name === path)) continue
    const near = suggestion(
      path,
      Array.from(fields, (one) => one.name),
    )
    const inside = /[.>]/.test(path) ? ' (define a custom field for what is inside of one)' : ''
    return fault(member, `${name} has no field ${path}${near}${inside}`)
  }
  const made = edgeOf({ field, relatedSet, relatedField, ...edge }, target)
  const mistake = edgeMistake(made, { from: node, to: target })
  return mistake === null ? null : fault('relatedField', mistake)
}

function edgeOf(
  value: Omit<EdgeValue, 'relatedField'> & {
    readonly name: string
    readonly relatedField?: string | undefined
  },
  target: NodeType,
): EdgeDef {
  const { name, field, relatedField, cardinality } = value
  const to = relatedField ?? target.idField
  const node = target.name
  return { name, node, cardinality, from: field, to, sameActor: false, custom: true }
}

/** The node types with all definitions that can be; the others are told, with the reason. */
export function customTypes(
  base: readonly NodeType[],
  definitions: Iterable<Definition>,
  offered: Offered,
): CustomTypes {
  const types = new Map(base.map((type) => [type.name, type]))
  const refused: { key: string; reason: string }[] = []
  const edges: Definition[] = []
  const add = (definition: Definition): void => {
    const wrong = definitionFault(definition, [...types.values()])
    if (wrong !== null) {
      refused.push({ key: definition.key, reason: wrong.message })
      return
    }
    const { node, kind, name } = placeOf(definition.key)!
    const type = types.get(node)!
    if (kind === 'fields') {
      const field = fieldOf(name, definition.value as FieldValue, { type, offered })
      types.set(node, { ...type, fields: [...type.fields, field] })
    } else {
      const value = definition.value as EdgeValue
      const target = [...types.values()].find(({ set }) => set === value.relatedSet)!
      types.set(node, { ...type, edges: [...type.edges, edgeOf({ ...value, name }, target)] })
    }
  }
  for (const definition of definitions) {
    const place = placeOf(definition.key)
    if (place?.kind === 'fields') add(definition)
    // They may go by fields that come behind them.
    else if (place !== null) edges.push(definition)
  }
  for (const edge of edges) add(edge)
  return { types: [...types.values()], refused }
}

function fieldOf(
  name: string,
  value: FieldValue,
  { type: node, offered }: { readonly type: NodeType; readonly offered: Offered },
): FieldDef {
  const { type, source, dimensions = [] } = value
  const own = { name, source: pathOf(parsePath(source)), custom: true }
  const field: FieldDef =
    dimensions.length === 0
      ? { ...own, type, indexed: true }
      : { ...own, type: 'dynamic', dimensions: { names: dimensions, of: type } }
  if (type !== 'enum') return field
  return { ...field, values: offered({ node: node.name, field: name, values: wordOf(value) }) }
}

/** Where the values of an enum come from; null: only what is defined for the field itself. */
export function wordOf(value: unknown): string | null {
  const { values, enumDefinition } = value as FieldValue
  return values ?? (enumDefinition === undefined ? null : `definitions/${enumDefinition}`)
}

/** The schema as it is checked against: without what the definition itself has put there. */
export function without(schema: GraphSchema, key: string): readonly NodeType[] {
  const place = placeOf(key)
  return Array.from(schema.nodes.values(), ({ type }) => {
    if (place?.node !== type.name) return type
    const isOther = ({ name, custom }: FieldDef | EdgeDef): boolean =>
      !custom || name !== place.name
    return place.kind === 'fields'
      ? { ...type, fields: type.fields.filter(isOther) }
      : { ...type, edges: type.edges.filter(isOther) }
  })
}
