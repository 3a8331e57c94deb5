// Which stored entry goes on from those before it, and where its reader stands behind it. Source:
// PROTOCOL 3.12 "Reading an actor", 3.16.

import t from 'tap'
import { LOSS_JUMP, type Entry } from './entry.ts'
import { moveOver, successionOf, type Standing } from './succession.ts'

function entry(v: number, records: number): Entry {
  return { v, r: Array.from({ length: records }, () => ({ t: 'x' })) } as unknown as Entry
}

interface Case {
  readonly name: string
  readonly entry: readonly [v: number, records: number, offset: number]
  readonly is: ReturnType<typeof successionOf>
  /** Version and offset of records behind it. */
  readonly stands: readonly [version: number, recordedAt: number]
}

const CASES: readonly Case[] = [
  { name: 'the next records', entry: [5, 2, 9], is: 'next', stands: [7, 9] },
  { name: 'a refusal', entry: [5, 0, 9], is: 'next', stands: [5, 8] },
  { name: 'a refusal of before', entry: [3, 0, 2], is: 'next', stands: [5, 8] },
  { name: 'a refusal that says more', entry: [6, 0, 9], is: 'next', stands: [5, 8] },
  {
    name: 'records behind a loss',
    entry: [5 + LOSS_JUMP, 1, 9],
    is: 'next',
    stands: [6 + LOSS_JUMP, 9],
  },
  {
    name: 'a refusal behind a loss',
    entry: [5 + LOSS_JUMP, 0, 9],
    is: 'next',
    stands: [5 + LOSS_JUMP, 8],
  },
  { name: 'records are missing', entry: [6, 1, 9], is: 'gap', stands: [7, 9] },
  { name: 'what is there says more than it', entry: [2, 1, 9], is: 'gap', stands: [5, 9] },
]

for (const one of CASES) {
  t.test(one.name, (t) => {
    const [v, records, offset] = one.entry
    const at: Standing = { version: 5, recordedAt: 8 }
    t.equal(successionOf(at, entry(v, records), offset), one.is)
    moveOver(at, entry(v, records), offset)
    t.same([at.version, at.recordedAt], one.stands)
    t.end()
  })
}

t.test('records of an offset that is not above those before them are leftovers', (t) => {
  const at: Standing = { version: 5, recordedAt: 8 }
  for (const v of [4, 5, 6, 5 + LOSS_JUMP]) {
    for (const offset of [7, 8]) t.equal(successionOf(at, entry(v, 1), offset), 'stray')
  }
  t.end()
})
