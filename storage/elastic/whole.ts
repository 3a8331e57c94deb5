// Actors as one document holds them: an actor's own node with all its others. Nodes are written one
// by one and come into sight one by one; what an answer shows of an actor below its own node is
// taken from that node's document, so that it is one state of the actor. Source: PROTOCOL 3.13.7,
// ARCHITECTURE 5.

import type { Budget, Found, GraphRow } from '../../protocol/graph/execute.ts'
import { MemoryFinder } from '../../protocol/graph/find-in-memory.ts'
import type { NodePlan, Step } from '../../protocol/graph/plan.ts'
import type { Own } from './document.ts'
import type { FoundRow } from './found-row.ts'

type Doc = Readonly<Record<string, unknown>>

/** One actor in one state. */
interface Whole {
  /** Its own node. */
  readonly own: GraphRow
  /** Node type of that. */
  readonly ownType: string
  /** The others' JSON by node type, as far as they were asked for. */
  readonly texts: Readonly<Record<string, string>>
  readonly read: Map<string, readonly GraphRow[]>
  /** Nodes that the actor has. */
  readonly count: number
}

/** What a plan needs of an actor's document for the steps that stay in the actor. */
export interface Inside {
  /** Node types that the document holds beside its own. */
  readonly types: ReadonlySet<string>
  /** Steps that lead to the own node again, or to elements that it holds. */
  readonly back: readonly Step[]
}

/**
 * True: the step and the semi-joins below it lead to nodes that the actor keeps as rows, or that
 * those hold.
 */
function staysInside({ source, storage, plan, phrase }: Step): boolean {
  if (source.kind === 'set' || !source.sameActor || storage.kind === 'history') return false
  // What the edges of its search lead to need not be at hand.
  if (phrase !== null && phrase.edges.length > 0) return false
  return plan.steps.every((step) => step.require === 'any' || staysInside(step))
}

export function insideOf(plan: NodePlan, ownType: string): Inside {
  const types = new Set<string>()
  const back: Step[] = []
  const visit = ({ steps }: NodePlan): void => {
    for (const step of steps) {
      if (!staysInside(step)) continue
      const { storage } = step
      const holder = storage.kind === 'embedded' ? storage.node : step.plan.node
      if (holder === ownType) back.push(step)
      else types.add(holder)
      visit(step.plan)
    }
  }
  visit(plan)
  return { types, back }
}

export class Wholes {
  readonly #of = new WeakMap<GraphRow, Whole>()
  readonly #inside = new Map<Step, boolean>()
  readonly #finder: MemoryFinder
  #current: Whole | null = null

  constructor(budget: Budget) {
    const rows = (node: string): readonly GraphRow[] => rowsOf(this.#current!, node)
    this.#finder = new MemoryFinder({ rows, count: () => this.#current!.count }, budget)
  }

  /** Takes up a row that was read with what its actor's document holds. */
  add(row: FoundRow, { nodes, whole = {} }: Own, ownType: string): void {
    if (nodes === undefined) return
    this.#of.set(row, { own: row, ownType, texts: whole, read: new Map(), count: nodes + 1 })
  }

  /** Nodes of the actor that a row of it leads to; null: they have to be searched for. */
  find(step: Step, parent: GraphRow): Found | null {
    const whole = this.#of.get(parent)
    if (whole === undefined || !this.#staysInside(step)) return null
    this.#current = whole
    const [found] = this.#finder.find(step, [parent])
    for (const row of found!.rows) this.#of.set(row, whole)
    return found!
  }

  #staysInside(step: Step): boolean {
    const known = this.#inside.get(step)
    if (known !== undefined) return known
    const is = staysInside(step)
    this.#inside.set(step, is)
    return is
  }
}

function rowsOf(whole: Whole, node: string): readonly GraphRow[] {
  const { own, ownType, texts, read } = whole
  if (node === ownType) return [own]
  const known = read.get(node)
  if (known !== undefined) return known
  const text = texts[node]
  const list = text === undefined ? [] : (JSON.parse(text) as readonly [string, Doc][])
  const rows = list.map(([id, doc]): GraphRow => ({ actorId: own.actorId, id, doc }))
  read.set(node, rows)
  return rows
}
