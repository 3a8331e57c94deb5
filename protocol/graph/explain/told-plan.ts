// The plan as it is told to who asks for it: the steps with their filters as they were understood,
// and what permissions added. Whoever explains a query learns no more than by asking it (CONTRACT
// 1.4 "Explain"):
//
// - Constants are those of the caller's own query; a constant that permissions added is "?".
// - A condition that permissions added is told where the caller may read each of its fields, else
//   that there is one.
// - Where permissions narrow a step, the engine's queries are left out: their numbers, and which
//   index they go by, tell of nodes that the caller doesn't see. So they are where a custom edge
//   goes by fields that the caller may not read: they name those fields.

import { fieldsOf } from '../filter/filter-fields.ts'
import type { Condition, FieldPath, SortKey, Step } from '../plan.ts'
import type { GraphAccess, PlanNotes } from '../planning.ts'
import type { GraphSchema } from '../schema.ts'
import { phraseText } from '../search/phrase.ts'
import { conditionText, cutText, pathText } from './condition-text.ts'
import { EXPLAIN_LIMITS, type ToldWork, eachStep } from './trace.ts'

export interface ToldStep {
  /** Place in the body. */
  readonly at: string
  readonly name: string
  readonly node: string
  /** Base set, or the edge that is followed, and by what. */
  readonly from: string
  /** Where its nodes are kept. */
  readonly kept: string
  readonly filter: string | null
  /** The words that are looked for; null: no phrase. */
  readonly phrase: string | null
  /** What permissions add; null: nothing. */
  readonly access: string | null
  readonly orderBy: readonly string[]
  readonly limit: number
  readonly returns: Step['returns']
  readonly require: Step['require']
  readonly fields: readonly string[]
}

export interface ToldTo {
  readonly notes: PlanNotes
  readonly schema: GraphSchema
  readonly access: GraphAccess
}

/** The plan's steps, each before those below it. */
export function toldPlan(steps: readonly Step[], to: ToldTo): ToldStep[] {
  const all: ToldStep[] = []
  eachStep(steps, (step, at) => all.push(toldStep(step, at, to)))
  return all
}

function toldStep(step: Step, at: string, to: ToldTo): ToldStep {
  const { name, plan, orderBy, limit, returns, require } = step
  const { asked } = to.notes.get(step)!
  return {
    at,
    name,
    node: plan.node,
    from: fromText(step, to),
    kept: keptText(step),
    filter: asked === null ? null : cut(conditionText(asked, 'shown')),
    phrase: step.phrase === null ? null : cut(phraseText(step.phrase.phrase)),
    access: accessText(step, to),
    orderBy: orderText(step, orderBy),
    limit,
    returns,
    require,
    fields: plan.fields.map(pathText),
  }
}

const cut = (text: string): string => cutText(text, EXPLAIN_LIMITS.explainCharsMax)

function fromText(step: Step, { notes, schema, access }: ToldTo): string {
  const { source } = step
  if (source.kind === 'set') return `base set ${schema.nodes.get(step.plan.node)!.type.set}`
  const { edge, parent, from, to, through, sameActor } = source
  const where = sameActor ? ' within the actor' : ''
  const ends: [string, string][] = [
    [parent, from],
    [step.plan.node, to],
  ]
  if (through !== undefined) ends.push([through.node, through.from], [through.node, through.to])
  const isPlain = notes.get(step)!.spot.parent!.edge.custom !== true
  const isTold = isPlain || ends.every(([node, member]) => access.mayField(node, [member]))
  if (!isTold) return `edge ${edge}${where}`
  const over =
    through === undefined
      ? ''
      : ` over ${through.node}.${through.from} and ${through.node}.${through.to}`
  return `edge ${edge}${where}, by ${parent}.${from} == ${step.plan.node}.${to}${over}`
}

function keptText({ storage }: Step): string {
  switch (storage.kind) {
    case 'row':
      return 'nodes of their own in the index'
    case 'embedded':
      return `part of each ${storage.node}`
    case 'history':
      return `records of each ${storage.parent}`
  }
}

function orderText({ source, phrase }: Step, orderBy: readonly SortKey[]): string[] {
  if (phrase !== null) return ['by rank', 'then by id']
  const keys = orderBy.map(({ path, direction, as }) => `${pathText(path)} ${direction} (as ${as})`)
  if (keys.length > 0) return [...keys, 'then by id']
  const isOwn = source.kind === 'edge' && source.sameActor
  return [isOwn ? "in the parent's order" : 'by id']
}

function accessText(step: Step, to: ToldTo): string | null {
  const parts = conditionsOf(step, to)
  if (parts.length === 0) return null
  if (!parts.every((part) => isReadable(part, to))) return 'narrowed, by fields that are hidden'
  const texts = parts.map(({ node, condition }) => `${node}: ${conditionText(condition, 'hidden')}`)
  return cut(texts.join('; '))
}

/** A condition that permissions added, and the node type whose fields it looks at. */
interface Added {
  readonly node: string
  readonly condition: Condition
}

function conditionsOf(step: Step, { notes }: ToldTo): Added[] {
  const { plan, source, historySeen } = step
  const through = source.kind === 'edge' ? source.through : undefined
  const all: [string, Condition | null | undefined][] = [
    [plan.node, notes.get(step)!.allowed],
    [through?.node ?? '', through?.filter],
    [historySeen?.plan.node ?? '', historySeen?.filter],
  ]
  return all.flatMap(([node, condition]) => (condition ? [{ node, condition }] : []))
}

const isReadable = ({ node, condition }: Added, { access }: ToldTo): boolean =>
  [...fieldsOf(condition)].every((path: FieldPath) => access.mayField(node, path))

/** What the engine did, as far as the caller may know it. */
export function toldWork(
  steps: readonly Step[],
  works: readonly ToldWork[],
  to: ToldTo,
): readonly (ToldWork | (Omit<ToldWork, 'queries'> & { readonly queries: 'hidden' }))[] {
  const byPlace = new Map<string, Step>()
  eachStep(steps, (step, at) => byPlace.set(at, step))
  return works.map((work) => {
    const step = byPlace.get(work.at)!
    return isHidden(step, to) ? { ...work, queries: 'hidden' } : work
  })
}

const isHidden = (step: Step, to: ToldTo): boolean =>
  conditionsOf(step, to).length > 0 ||
  !isEdgeReadable(step, to) ||
  gatesOf(step).some((gate) => isHidden(gate, to))

/** What the engine is asked together with the step. */
const gatesOf = ({ plan }: Step): readonly Step[] =>
  plan.steps.filter(({ require }) => require !== 'any')

function isEdgeReadable(step: Step, { notes, access }: ToldTo): boolean {
  const { source, plan } = step
  if (source.kind === 'set' || notes.get(step)!.spot.parent!.edge.custom !== true) return true
  const { parent, from, to } = source
  return access.mayField(parent, [from]) && access.mayField(plan.node, [to])
}
