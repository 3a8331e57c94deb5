// State machines as tables, and the functions that refuse what is not in them.

import { invalidState } from './refuse.ts'

/** From a state to those that may follow it. */
export type Moves<S extends string> = Readonly<Record<S, readonly S[]>>

/** One move by its name: the states that it takes, and the one that it leads to. */
export interface Transition<S extends string> {
  readonly from: readonly S[]
  readonly to: S
}

/** The state that follows, or a refusal. `what` names the thing: `delivery D1`. */
export function move<S extends string>(what: string, from: S, transition: Transition<S>): S {
  if (transition.from.includes(from)) return transition.to
  return invalidTransition(what, from, transition.to, transition.from)
}

/** The state asked for, or a refusal. */
export function moveTo<S extends string>(what: string, from: S, to: S, moves: Moves<S>): S {
  if (moves[from].includes(to)) return to
  const sources = (Object.keys(moves) as S[]).filter((state) => moves[state].includes(to))
  return invalidTransition(what, from, to, sources)
}

function invalidTransition(
  what: string,
  from: string,
  to: string,
  sources: readonly string[],
): never {
  invalidState(
    `${what} is ${from} and can't become ${to}: that takes one that is ${sources.join(' or ')}`,
  )
}
