// The mutants: one rule of the protocol taken out each, as patches of the sources. A checker that
// catches none of them would prove nothing. Each is caught by seeds, by a directed schedule of its
// own (directed/), or by a unit test where no simulated cluster comes, or so rarely that seeds
// would be many. Source: PROTOCOL 4.1; `why` says what goes wrong.

import { ANSWER_MUTANTS } from './mutants/answers.ts'
import { DERIVED_MUTANTS } from './mutants/derived.ts'
import { FORGOTTEN_MUTANTS } from './mutants/forgotten.ts'
import { GRAPH_MUTANTS } from './mutants/graph.ts'
import type { Mutant } from './mutants/mutant.ts'
import { EXPIRY_MUTANTS } from './mutants/expiry.ts'
import { MEMBER_MUTANTS } from './mutants/members.ts'
import { MENDED_MUTANTS } from './mutants/mended.ts'
import { STORE_MUTANTS } from './mutants/store.ts'

export const MUTANTS: readonly Mutant[] = [
  ...STORE_MUTANTS,
  ...MEMBER_MUTANTS,
  ...ANSWER_MUTANTS,
  ...DERIVED_MUTANTS,
  ...GRAPH_MUTANTS,
  ...MENDED_MUTANTS,
  ...EXPIRY_MUTANTS,
  ...FORGOTTEN_MUTANTS,
]
