// History nodes: journal and activity entries, which are read from an actor's records and never
// indexed. node/graph reads the journal for them. Source: ARCHITECTURE 5, CONTRACT 1.4.

import type { NodeDoc } from '../behaviour.ts'
import type { Condition } from './plan.ts'

/** Reads history nodes; given to executions by node/graph. */
export interface HistorySource {
  /**
   * Nodes of type `node` of an actor, newest first, none for an actor that isn't there or is
   * deleted. Read lazily: the caller stops when it has enough, so an implementation should fetch
   * records in small pages.
   */
  read(actorId: string, node: string): Iterable<NodeDoc>
}

/** A piece of an actor's history, newest first. */
export interface HistoryPiece {
  readonly nodes: readonly NodeDoc[]
  /** What the next piece goes on from; null: there are no more. */
  readonly rest: unknown
}

/** The same where records have to be waited for: history is read piece by piece. */
export interface RemoteHistory {
  /** The newest piece (`rest` null), or the one that goes on from another's rest. */
  read(actorId: string, node: string, rest: unknown): Promise<HistoryPiece>
}

/** A piece of a history that a plan needs. */
export interface HistoryRequest {
  readonly actorId: string
  readonly node: string
  readonly rest: unknown
  /** Actors whose history is read next: worth reading ahead. */
  readonly ahead: readonly string[]
}

/** Reads the first pieces of the histories that come next while one is looked at. */
export class ReadAhead {
  readonly #history: RemoteHistory
  readonly #pieces = new Map<string, Promise<HistoryPiece>>()

  constructor(history: RemoteHistory) {
    this.#history = history
  }

  read({ actorId, node, rest, ahead }: HistoryRequest): Promise<HistoryPiece> {
    if (rest !== null) return this.#history.read(actorId, node, rest)
    const piece = this.#first(actorId, node)
    this.#pieces.delete(`${node} ${actorId}`)
    for (const next of ahead) void this.#first(next, node)
    return piece
  }

  #first(actorId: string, node: string): Promise<HistoryPiece> {
    const key = `${node} ${actorId}`
    const piece = this.#pieces.get(key) ?? this.#history.read(actorId, node, null)
    this.#pieces.set(key, piece)
    // Whoever asks for it hears of it; it may be that nobody does any more.
    void piece.catch(() => undefined)
    return piece
  }
}

/** A source for places without a journal. */
export const NO_HISTORY: HistorySource = { read: () => [] }

/**
 * Actors that a filter confines history nodes to, by `parentField == id` or `parentField in [...]`
 * in its outermost `and`; null when it doesn't.
 */
export function historyActors(
  filter: Condition | null,
  parentField: string,
): readonly string[] | null {
  if (filter === null) return null
  if (filter.kind === 'and') {
    for (const part of filter.of) {
      const actors = historyActors(part, parentField)
      if (actors !== null) return actors
    }
    return null
  }
  if (filter.kind === 'in') {
    const { operand, values } = filter
    return isField(operand, parentField) ? (values as readonly string[]) : null
  }
  if (filter.kind !== 'compare' || filter.operator !== '==') return null
  const { left, right } = filter
  if (isField(left, parentField) && right.kind === 'value') return [String(right.value)]
  if (isField(right, parentField) && left.kind === 'value') return [String(left.value)]
  return null
}

function isField(operand: Extract<Condition, { kind: 'in' }>['operand'], field: string): boolean {
  return operand.kind === 'field' && operand.path.length === 1 && operand.path[0] === field
}
