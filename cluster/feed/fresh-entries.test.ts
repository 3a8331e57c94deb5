// What was committed a moment ago is at hand once per follower, whatever had no room, and takes no
// room any more once it was taken.

import fc from 'fast-check'
import t from 'tap'
import type { Entry } from '../../protocol/entry/entry.ts'
import type { CommittedEntry } from '../committed-entry.ts'
import { FreshEntries } from './fresh-entries.ts'

function group(first: number, count: number, stateBytes: number): CommittedEntry[] {
  return Array.from({ length: count }, (_, i) => {
    const entry = { n: first + i } as Entry
    return { entry, bytes: new Uint8Array(2), state: first + i, stateBytes }
  })
}

const STEP = fc.record({
  shard: fc.nat(1),
  count: fc.integer({ min: 1, max: 4 }),
  stateBytes: fc.integer({ min: 0, max: 20 }),
  /** So many of the entries that are there are taken. */
  taken: fc.nat(6),
  forgets: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
})

t.test('each entry is found at its offset, or nothing is, within the bound', (t) => {
  const BYTES_MAX = 100
  fc.assert(
    fc.property(fc.array(STEP, { maxLength: 60 }), (steps) => {
      const fresh = new FreshEntries(BYTES_MAX)
      const heads = [0, 0]
      const taken = [0, 0]
      for (const { shard, count, stateBytes, ...then } of steps) {
        const before = fresh.bytes
        const weight = count * (2 + stateBytes)
        const first = heads[shard]! + 1
        fresh.add(shard, first, group(first, count, stateBytes))
        heads[shard]! += count
        const has = before + weight <= BYTES_MAX
        if (fresh.bytes !== before + (has ? weight : 0)) throw new Error(`${fresh.bytes} bytes`)
        if ((fresh.find(shard, first) !== null) !== has) throw new Error('it is not what was added')
        for (let i = 0; i < then.taken && taken[shard]! < heads[shard]!; i++) {
          const offset = ++taken[shard]!
          const found = fresh.find(shard, offset)
          const again = fresh.find(shard, offset)
          if (found !== again) throw new Error('what could not be taken is found again')
          if (found !== null && found.state !== offset) throw new Error(`it is ${found.entry.n}`)
        }
        fresh.passed(shard, taken[shard]!)
        if (then.forgets) {
          fresh.forget(shard)
          if (fresh.find(shard, heads[shard]!) !== null) throw new Error('it is still known')
        }
      }
      for (const shard of [0, 1]) fresh.passed(shard, heads[shard]!)
      if (fresh.bytes !== 0) throw new Error(`${fresh.bytes} bytes are left`)
    }),
    { numRuns: 500 },
  )
  t.end()
})
