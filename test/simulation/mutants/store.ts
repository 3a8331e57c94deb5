// Mutants of the log: the conditions of its statements, the fence of a claim, unknown outcomes,
// rolls and trims. Source: PROTOCOL 3.1, 3.2, 3.5.

import type { Mutant } from '../mutants.ts'

const STATEMENTS = 'storage/memory/statements.ts'

export const STORE_MUTANTS: readonly Mutant[] = [
  {
    name: 'no-epoch',
    why: 'an owner that was fenced still appends: its answers leave, and reads elsewhere miss them',
    patches: [
      {
        file: STATEMENTS,
        find: 'if (!found || found.epoch !== epoch || found.head !== head || found.sealed)',
        replace: 'if (!found || found.head !== head || found.sealed)',
      },
    ],
  },
  {
    name: 'no-head',
    why: 'a batch that lands late, or twice, is appended over what was committed meanwhile',
    patches: [
      {
        file: STATEMENTS,
        find: 'if (!found || found.epoch !== epoch || found.head !== head || found.sealed)',
        replace: 'if (!found || found.epoch !== epoch || found.sealed)',
      },
    ],
  },
]
