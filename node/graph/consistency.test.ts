// Consistency tokens: what was handed out comes back, everything else is refused with 400.

import { deepStrictEqual } from 'node:assert'
import t from 'tap'
import fc from 'fast-check'
import { RequestError } from '../../protocol/errors.ts'
import type { Position } from '../../protocol/ids.ts'
import { consistencyTokens } from './consistency.ts'

const store = { format: 1, shards: 32, generation: 'a-generation', secret: 'a-secret' }
const tokens = consistencyTokens(store)
const anyHead = (_shard: number): number => Number.MAX_SAFE_INTEGER

const position: fc.Arbitrary<Position> = fc.record({
  shard: fc.integer({ min: -1, max: 31 }),
  offset: fc.nat(1e12),
})

/** The code of the refusal, or null when the token was taken. */
function refusal(token: string, headOf = anyHead): string | null {
  try {
    tokens.decode(token, headOf)
    return null
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return error.errors[0]!.code
  }
}

t.test('what is encoded is decoded, the highest offset of each shard', async () => {
  fc.assert(
    fc.property(fc.array(position, { minLength: 1, maxLength: 40 }), (positions) => {
      const highest = new Map<number, number>()
      for (const { shard, offset } of positions) {
        highest.set(shard, Math.max(offset, highest.get(shard) ?? -1))
      }
      const decoded = tokens.decode(tokens.encode(positions), anyHead)
      deepStrictEqual(new Map(decoded.map((p) => [p.shard, p.offset])), highest)
    }),
  )
})

t.test('several stand in one header, with commas between them', async (t) => {
  const [a, b] = [
    { shard: 3, offset: 41 },
    { shard: 5, offset: 7 },
  ]
  const [first, second] = [tokens.encode([a]), tokens.encode([b])]
  t.strictSame(tokens.decode(`${first}, ${second}`, anyHead), [a, b])
  t.strictSame(tokens.decode(`${first},${second}`, anyHead), [a, b])
  for (const bad of [`${first},`, `${first};${second}`, `${first}, x`, ',']) {
    t.equal(refusal(bad), 'INVALID_PARAMETERS', bad)
  }
})

t.test('pinned: tokens that callers hold stay good', async (t) => {
  t.equal(tokens.encode([{ shard: 3, offset: 41 }]), 'Mi56eHpwdHQuMzo0MS5Xa3VQYnd5R1kxV1JtTTMy')
  const two = [
    { shard: -1, offset: 1e12 },
    { shard: 31, offset: 0 },
  ]
  t.equal(tokens.encode(two), 'Mi56eHpwdHQuLTE6MTAwMDAwMDAwMDAwMCwzMTowLlpxUk8yYWxMYzV1bGNFWWk')
})

t.test('is opaque and fits into a header', async (t) => {
  const all = Array.from({ length: 33 }, (_, i) => ({ shard: i - 1, offset: 1e12 }))
  t.match(tokens.encode(all), /^[A-Za-z0-9_-]{1,1000}$/)
  t.notMatch(tokens.encode(all), 'generation')
})

t.test('anything else is refused', async () => {
  const real = tokens.encode([{ shard: 3, offset: 41 }])
  const changed = fc
    .tuple(
      fc.nat(real.length - 1),
      fc.constantFrom('A', 'z', '0', '9', '-', '_', '=', '.', ' ', 'é'),
    )
    .map(([at, c]) => real.slice(0, at) + c + real.slice(at + 1))
  const cut = fc.nat(real.length - 1).map((length) => real.slice(0, length))
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.base64String(), changed, cut), (token) => {
      if (token === real) return
      if (refusal(token) !== 'INVALID_PARAMETERS') throw new Error(`taken: ${token}`)
    }),
    { numRuns: 2_000 },
  )
})

t.test('a token of another store, generation or shape is refused', async (t) => {
  const at = [{ shard: 3, offset: 41 }]
  for (const other of [
    { ...store, generation: 'restored' },
    { ...store, format: 2 },
    { ...store, secret: 'of another' },
  ]) {
    t.equal(refusal(consistencyTokens(other).encode(at)), 'INVALID_PARAMETERS')
  }
  t.equal(refusal(tokens.encode([{ shard: 32, offset: 1 }])), 'INVALID_PARAMETERS')
  t.equal(refusal(tokens.encode([])), 'INVALID_PARAMETERS')
  t.equal(refusal(real().repeat(500)), 'INVALID_PARAMETERS')
})

t.test('an offset above the head was never handed out', async (t) => {
  const head = (shard: number): number => (shard === 3 ? 41 : 0)
  t.equal(refusal(real(), head), null)
  t.equal(refusal(tokens.encode([{ shard: 3, offset: 42 }]), head), 'INVALID_PARAMETERS')
})

function real(): string {
  return tokens.encode([{ shard: 3, offset: 41 }])
}
