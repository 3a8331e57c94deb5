// The states of a shard: which may follow which.

import t from 'tap'
import type { ShardState } from './core.ts'
import { transition } from './states.ts'

const ALL: readonly ShardState[] = ['claiming', 'serving', 'sealed', 'stopped']
const ALLOWED = new Set([
  'claiming serving',
  'claiming stopped',
  'serving sealed',
  'serving stopped',
  'sealed serving',
  'sealed stopped',
])

t.test('a shard goes only where its states lead, and from its end nowhere', async (t) => {
  for (const from of ALL) {
    for (const to of ALL) {
      if (ALLOWED.has(`${from} ${to}`)) t.equal(transition(from, to), to)
      else t.throws(() => transition(from, to), /where its states lead/, `${from} ${to}`)
    }
  }
})
