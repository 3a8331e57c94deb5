// The planner: makes the plan of a graph request from the JSON a caller sent, applying every rule
// of the contract on the way: names, bounds, permissions, filters, order. Source: specification
// "Graph", "Scopes and ACEs"; CONTRACT 1.4, Appendix A.

import { RequestError } from '../errors.ts'
import type { ShapeCheck } from '../json/validation.ts'
import { resolveField } from './filter/fields.ts'
import {
  type NavigationBody,
  type NodeBody,
  checkNavigation,
  checkNavigations,
  checkNode,
} from './navigation-body.ts'
import { followedEdges } from './followed.ts'
import { suggestion } from '../near-names.ts'
import { parsePath } from './filter/parser.ts'
import type { NodeType } from './node-type.ts'
import type { FieldPath, GraphPlan, NodePlan, Step } from './plan.ts'
import { planPhrase } from './search/plan-phrase.ts'
import type { GraphNode, GraphSchema } from './schema.ts'
import {
  type GraphAccess,
  type PlanOptions,
  type Planning,
  type Place,
  type Spot,
  type StepSpot,
  forbidden,
  hidden,
  attempt,
  mayNameOf,
  invalid,
  under,
  at,
  shownName,
} from './planning.ts'
import { planCursor, planFilter, planHistory, planLimit, planOrder } from './plan-selection.ts'
import { both, seenNodes, seenParents } from './seen.ts'

const ALIAS = /^[A-Za-z_]\w{0,99}$/

/**
 * The plan of a graph request. Throws RequestError: 400 INVALID_QUERY, INVALID_FILTER (with
 * `details.position`), DUPLICATE_ALIAS, 403 FORBIDDEN_NODE, FORBIDDEN_FIELD; each with
 * `details.path`, the place in the body.
 */
export function planNavigations(
  body: unknown,
  schema: GraphSchema,
  access: GraphAccess,
  options: PlanOptions,
): GraphPlan {
  const planning: Planning = { schema, access, options, navigations: 0, filterChars: 0 }
  checkShape(checkNavigations, body, '')
  // Deep bodies are refused before anything walks them without a bound.
  countNavigations(body, planning, 1)
  for (const [i, one] of (body as unknown[]).entries()) checkShape(checkNavigation, one, String(i))
  const steps = (body as readonly NavigationBody[]).map((navigation, i) => {
    const node = schema.sets.get(navigation.edge)
    const place = String(i)
    if (node) return planStep(navigation, { node, place, depth: 1, parent: null }, planning)
    throw invalid(
      place,
      `there is no base set ${shownName(navigation.edge)}` +
        suggestion(navigation.edge, toldSets(planning)),
    )
  })
  checkNames([], steps, '')
  return { steps }
}

/**
 * The plan of a `query` message: a `node` object `{fields, navigate}` asked of an actor's own node
 * of type `node` (CONTRACT 1.3). Throws as planNavigations. Whether the caller sees this one node
 * is asked of it (`GraphAccess.sees`), not of the plan.
 */
export function planNode(
  body: unknown,
  node: string,
  schema: GraphSchema,
  { access, ...options }: PlanOptions & { readonly access: GraphAccess },
): NodePlan {
  const planning: Planning = { schema, access, options, navigations: 0, filterChars: 0 }
  checkShape(checkNode, body, '')
  const { navigate = [] } = body as NodeBody
  countNavigations(navigate, planning, 2)
  for (const [i, one] of navigate.entries()) checkShape(checkNavigation, one, `navigate/${i}`)
  const root = schema.nodes.get(node)!
  if (access.sees(root.type) === false) throw hidden(root, '')
  return planFields(body as NodeBody, { node: root, place: '', depth: 1 }, planning)
}

function checkShape(check: ShapeCheck, body: unknown, place: Place): void {
  const error = check(body)
  if (!error) return
  const member = error.member.replaceAll('.', '/')
  const path = [place, member].filter((part) => part !== '').join('/')
  throw invalid(path, error.message)
}

/** Counts all navigations, also of bodies whose shape is not checked yet. */
function countNavigations(list: unknown, planning: Planning, depth: number): void {
  if (!Array.isArray(list)) return
  const { navigationsMax, navigationDepthMax } = planning.options.limits
  planning.navigations += list.length
  if (planning.navigations > navigationsMax) {
    throw new RequestError('INVALID_QUERY', `The query has more than ${navigationsMax} navigations`)
  }
  if (list.length > 0 && depth > navigationDepthMax) {
    throw new RequestError(
      'INVALID_QUERY',
      `The query nests deeper than ${navigationDepthMax} levels`,
    )
  }
  for (const one of list) {
    const node = (one as NavigationBody | null)?.node
    countNavigations(node?.navigate, planning, depth + 1)
  }
}

function planStep(body: NavigationBody, spot: StepSpot, planning: Planning): Step {
  const { node, place, parent } = spot
  const { type } = node
  checkAlias(body.alias, place)
  const seen = seenNodes(node, place, planning)
  const parents = seenParents(spot, planning)
  const phrase = planPhrase(body, spot, planning)
  const require = planRequire(body.require, spot)
  const asked = planFilter(body.filter, node, place, planning)
  const allowed = both(seen, parents.condition)
  const filter = both(asked, allowed)
  const returned = planReturns(body, require)
  const plan: NodePlan =
    returned === 'nodes' || returned === 'both'
      ? planFields(body.node ?? {}, { ...spot, place: under(place, 'node') }, planning)
      : { node: type.name, fields: [], steps: [] }
  const returns = isBare(plan) ? returnsOfBare(returned, require) : returned
  const orderBy = planOrder(body.orderBy, node, place, planning)
  // The first is all that is shown.
  const isOne = parent?.edge.cardinality === 'single'
  const step: Step = {
    name: body.alias ?? body.edge,
    source: edgeSource(spot, planning),
    storage: type.storage,
    idField: type.idField,
    position: type.position ?? null,
    cardinality: parent === null ? 'many' : parent.edge.cardinality,
    plan,
    filter,
    phrase,
    orderBy,
    limit: isOne && returns !== 'both' ? 1 : planLimit(body.limit, spot, planning),
    returns,
    require,
    historyOf: parent === null ? planHistory(type.storage, filter, place) : null,
    historySeen: parents.lookUp,
    ...historyFields(type),
    ...planCursor(
      body,
      spot,
      { allowed: [allowed, parents.lookUp?.filter, phrase], orderBy },
      planning,
    ),
  }
  planning.options.notes?.set(step, { spot, asked, allowed })
  return step
}

function historyFields({ storage, fields }: NodeType): Pick<Step, 'historyFields'> {
  const custom = storage.kind === 'history' ? fields.filter((field) => field.custom) : []
  return custom.length === 0 ? {} : { historyFields: custom }
}

function edgeSource(spot: StepSpot, planning: Planning): Step['source'] {
  const { node, parent, place } = spot
  if (parent === null) return { kind: 'set' }
  const { edge } = parent
  const { name, from, to, sameActor, through } = edge
  const own = {
    kind: 'edge',
    edge: name,
    parent: parent.node.type.name,
    from,
    to,
    sameActor,
  } as const
  const mayGoBy = (of: GraphNode, member: string): void => {
    if (planning.access.mayFilter(of.type.name, [member])) return
    throw forbidden(of, [member], `/${place}`)
  }
  if (edge.custom || through) {
    mayGoBy(parent.node, from)
    mayGoBy(node, to)
  }
  if (through === undefined) return own
  const link = planning.schema.nodes.get(through.node)!
  mayGoBy(link, through.from)
  mayGoBy(link, through.to)
  const filter = seenNodes(link, place, planning)
  return { ...own, through: { ...through, idField: link.type.idField, filter } }
}

function checkAlias(alias: string | undefined, place: Place): void {
  if (alias === undefined || (ALIAS.test(alias) && alias !== '__proto__')) return
  throw invalid(place, `alias must be letters, digits and _, found ${shownName(alias)}`)
}

function planRequire(require: NavigationBody['require'], spot: StepSpot): Step['require'] {
  const asked = require === true ? 'some' : require === false ? 'any' : (require ?? 'any')
  if (asked !== 'any' && asked !== 'some' && asked !== 'none') {
    throw invalid(spot.place, `require must be any, some or none, found ${shownName(asked)}`)
  }
  if (asked === 'any') return asked
  if (spot.parent === null) {
    throw invalid(
      spot.place,
      `require ${asked} belongs to a nested navigation: it filters the parent`,
    )
  }
  if (spot.node.type.storage.kind === 'history') {
    throw invalid(
      spot.place,
      `${spot.parent.edge.name} can't filter its parent: they are read from its records, not indexed`,
    )
  }
  return asked
}

/** A semi-join without `node` and `count` brings nothing into the answer. */
function planReturns(body: NavigationBody, require: Step['require']): Step['returns'] {
  if (body.count) return body.node ? 'both' : 'count'
  return require === 'any' || body.node ? 'nodes' : 'nothing'
}

/**
 * A `node` that asks for nothing but semi-joins below it: a semi-join with such a node is a mere
 * semi-join too.
 */
function isBare(plan: NodePlan): boolean {
  return plan.fields.length === 0 && plan.steps.every((step) => step.returns === 'nothing')
}

/** What a navigation brings whose node shows nothing: a count is the number alone. */
function returnsOfBare(returned: Step['returns'], require: Step['require']): Step['returns'] {
  if (returned === 'both') return 'count'
  return require !== 'any' && returned === 'nodes' ? 'nothing' : returned
}

function planFields(body: NodeBody, spot: Spot, planning: Planning): NodePlan {
  const { node, place, depth } = spot
  const { name, idField } = node.type
  const { fieldsMax } = planning.options.limits
  const asked = body.fields ?? (body.navigate ? [] : [idField])
  if (asked.length > fieldsMax) {
    throw invalid(place, `at most ${fieldsMax} fields can be asked for, found ${asked.length}`)
  }
  const fields = asked.map((text, i) =>
    planField(text, node, under(place, `fields/${i}`), planning),
  )
  for (const [i, path] of fields.entries()) {
    if (planning.access.mayField(name, path)) continue
    throw forbidden(node, path, `/${under(place, `fields/${i}`)}`)
  }
  const steps = (body.navigate ?? []).map((navigation, i) => {
    const edge = node.edges.get(navigation.edge)
    const below = under(place, `navigate/${i}`)
    if (!edge) {
      throw invalid(
        below,
        `${name} has no edge ${shownName(navigation.edge)}` +
          suggestion(navigation.edge, toldEdges(node, planning)),
      )
    }
    const target = planning.schema.nodes.get(edge.node)!
    const parent = { node, edge }
    return planStep(navigation, { node: target, place: below, depth: depth + 1, parent }, planning)
  })
  checkNames(fields, steps, place)
  return { node: name, fields: withoutParts(fields), steps }
}

/** Base sets that the metadata shows the caller. */
function toldSets({ schema, access }: Planning): string[] {
  const seen = [...schema.sets.values()].filter(({ type }) => access.sees(type) !== false)
  return seen.map(({ type }) => type.set)
}

function toldEdges(node: GraphNode, { schema, access }: Planning): string[] {
  return followedEdges(node, schema, access).map(({ name }) => name)
}

function planField(text: string, node: GraphNode, place: Place, { access }: Planning): FieldPath {
  const mayName = mayNameOf(node, access)
  return attempt(place, () => resolveField(parsePath(text), node, mayName).path)
}

/** Every member of the answer has one meaning: no field or navigation twice, no `HasMore` taken. */
function checkNames(fields: readonly FieldPath[], steps: readonly Step[], place: Place): void {
  const paths = new Set<string>()
  const members = new Set<string>()
  const duplicate = (name: string): RequestError =>
    new RequestError(
      'DUPLICATE_ALIAS',
      `${name} would be in the answer twice ${at(place)}; give one of them an alias`,
      { name, path: `/${place}` },
    )
  for (const path of fields) {
    const key = JSON.stringify(path)
    if (paths.has(key)) throw duplicate(path.join('.'))
    paths.add(key)
    members.add(path[0]!)
  }
  for (const { name, returns } of steps) {
    if (returns === 'nothing') continue
    if (members.has(name)) throw duplicate(name)
    members.add(name)
  }
  for (const { name, cursor } of steps) {
    const beside = cursor === undefined ? ['HasMore'] : ['HasMore', 'Cursor', 'Cursors']
    const taken = beside.find((suffix) => members.has(name + suffix))
    if (taken !== undefined) throw duplicate(name + taken)
  }
}

/** Paths that are not inside another one: `invoiceAddress` brings `invoiceAddress.name` along. */
function withoutParts(fields: readonly FieldPath[]): FieldPath[] {
  const whole = new Set(fields.map((path) => JSON.stringify(path)))
  return fields.filter(
    (path) => !path.some((_, i) => i > 0 && whole.has(JSON.stringify(path.slice(0, i)))),
  )
}
