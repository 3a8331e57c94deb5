// What an outbox keeps of its effects: a queue for each actor and key that they go to, and for each
// type of actors a line, in which those wait whose actor is not known yet. It stands behind
// outbox.ts. Source: PROTOCOL 3.6 "Outbox".

import { LIMITS } from '../../../config/limits.ts'
import type { Effect } from '../../../protocol/behaviour.ts'
import type { Address } from '../../../protocol/message.ts'

export interface Item {
  readonly effect: Effect
  readonly offset: number
  readonly index: number
  readonly by: string
}

/** Effects behind one another; the first is under way while `busy`. */
export interface Queue {
  items: Item[]
  busy: boolean
  failures: number
}

/** Effects to actors of one type; it is looked through in rounds. */
export interface Line extends Queue {
  /** Queues of actors that have what has gone on from here. */
  readonly ahead: Set<string>
  /** Looked at in this round, and still here, in log order: they are before `items`. */
  staying: Item[]
  /** Queues of actors for which nothing goes past those that stay. */
  readonly held: Set<string>
  /** Of those in a row after which something stayed. */
  rounds: number
  round: 'open' | 'ends' | 'over'
}

/** Of the queue that has what goes there. */
export function nameOf(to: Address): string {
  return 'key' in to ? `${to.type}\0${to.key}` : `${to.type}/${to.id}`
}

export function isEarlier(a: Item, b: Item): boolean {
  return a.offset === b.offset ? a.index < b.index : a.offset < b.offset
}

export function newLine(): Line {
  return {
    items: [],
    busy: false,
    failures: 0,
    ahead: new Set(),
    staying: [],
    held: new Set(),
    rounds: 0,
    round: 'open',
  }
}

/** Another round: what stayed is looked at again, first. */
export function begin(line: Line): void {
  line.items = [...line.staying, ...line.items]
  line.staying = []
  line.held.clear()
  line.round = 'open'
}

/** How long to wait after so many failures, milliseconds. */
export function waitMs(failures: number): number {
  return Math.min(LIMITS.sharding.relayRetryMsMax, 50 * 2 ** Math.min(failures, 10))
}

export function placeOf({ offset, index }: Pick<Item, 'offset' | 'index'>): string {
  return `${offset}/${index}`
}

/** The same effect to the actor that its key was found to lead to. */
export function addressed(item: Item, actorId: string | undefined): Item {
  if (actorId === undefined) return item
  const { effect } = item
  return { ...item, effect: { ...effect, to: { type: effect.to.type, id: actorId } } }
}
