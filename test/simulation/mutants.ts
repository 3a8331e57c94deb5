// The mutants: one rule of the protocol taken out each, as patches of the sources. A checker that
// catches none of them would prove nothing. Each is caught by seeds, or by a directed schedule of
// its own (directed/). Source: PROTOCOL 4.1; `why` says what goes wrong.

import { ANSWER_MUTANTS } from './mutants/answers.ts'
import { DERIVED_MUTANTS } from './mutants/derived.ts'
import { MEMBER_MUTANTS } from './mutants/members.ts'
import { STORE_MUTANTS } from './mutants/store.ts'

/** A place in a source that must be there exactly once, and what stands there instead. */
export interface Patch {
  readonly file: string
  readonly find: string
  readonly replace: string
}

export interface Mutant {
  readonly name: string
  readonly why: string
  readonly patches: readonly Patch[]
  /** Schedule that catches it; without one seeds do. */
  readonly directed?: string
}

export const MUTANTS: readonly Mutant[] = [
  ...STORE_MUTANTS,
  ...MEMBER_MUTANTS,
  ...ANSWER_MUTANTS,
  ...DERIVED_MUTANTS,
]
