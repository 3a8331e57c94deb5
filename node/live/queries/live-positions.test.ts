// Positions of live queries: what went in comes out, of the same store alone, and a client reads
// nothing in one.

import fc from 'fast-check'
import t from 'tap'
import { livePositions } from './live-positions.ts'
import { countingChance } from './testing/counting-chance.ts'

const STORE = { format: 1, generation: 'g', secret: 's', shards: 4 }

const offsetsOf = fc
  .uniqueArray(
    fc.tuple(
      fc.nat(1_023),
      fc.maxSafeNat().map((n) => n % 36 ** 7),
    ),
    {
      selector: ([shard]) => shard,
      maxLength: 20,
    },
  )
  .map((pairs) => new Map(pairs))

t.test('what went in comes out, and nothing of another store or another text', async (t) => {
  const positions = livePositions(STORE, countingChance())
  const others = [{ secret: 'x' }, { generation: 'h' }].map((other) =>
    livePositions({ ...STORE, ...other }, countingChance()),
  )
  fc.assert(
    fc.property(
      offsetsOf,
      fc.nat().map((n) => n.toString(36)),
      fc.nat(),
      (offsets, digest, n) => {
        const text = positions.encode({ offsets, digest })
        t.strictSame(positions.decode(text), { offsets, digest })
        for (const other of others) t.equal(other.decode(text), null)
        const at = n % text.length
        const changed = text.slice(0, at) + (text[at] === 'A' ? 'B' : 'A') + text.slice(at + 1)
        t.equal(positions.decode(changed), null, `${text}, changed at ${at}`)
      },
    ),
    { numRuns: 50 },
  )
  for (const strange of ['', '.', '2', '2.x.y.z', 'A'.repeat(100_000)]) {
    t.equal(positions.decode(strange), null)
  }
})

t.test('neither says where shards are, nor by its length how much was written', async (t) => {
  const positions = livePositions(STORE, countingChance())
  const at = (offset: number): string =>
    positions.encode({ offsets: new Map([[0, offset]]), digest: '-' })
  const [first, second] = [at(1), at(60_466_175)]
  t.equal(first.length, second.length)
  const again = at(1)
  t.not(again, first, 'nor whether anything was written between two of them')
  t.strictSame(positions.decode(again), positions.decode(first))
  for (const part of second.split('.')) {
    t.notMatch(part + Buffer.from(part, 'base64url').toString('latin1'), /zzzzz|60466175/)
  }
})
