// How long silence is normal, against the rule reckoned from the whole list of answers.

import t from 'tap'
import fc from 'fast-check'
import { Silence } from './silence.ts'

const LATELY = 512
const LOOK_EVERY = 128

/** Four times the p99 of the last 512 answers, from one second to five. */
function byRule(tookMs: readonly number[]): number {
  const known = tookMs.slice(-LATELY).toSorted((a, b) => a - b)
  const p99 = known[Math.floor(known.length * 0.99)]!
  return Math.min(5_000, Math.max(1_000, 4 * p99))
}

t.test('a second until it is known better, and behind each copy twice as long', async (t) => {
  const silence = new Silence()
  for (let i = 1; i < LOOK_EVERY; i++) {
    silence.answered(4_000)
    t.equal(silence.resendMs, 1_000)
  }
  t.same(
    [1, 2, 3, 4, 5, 60].map((copies) => silence.againMs(copies)),
    [1_000, 2_000, 4_000, 5_000, 5_000, 5_000],
  )
  silence.answered(4_000)
  t.equal(silence.resendMs, 5_000, 'with the 128th it is known')
})

t.test('the second slowest of the first 128 counts, wherever it stands', async (t) => {
  for (const [one, other] of [
    [0, 1],
    [0, 127],
    [126, 127],
  ] as const) {
    const silence = new Silence()
    for (let i = 0; i < LOOK_EVERY; i++) silence.answered(i === one || i === other ? 900 : 10)
    t.equal(silence.resendMs, 3_600)
  }
})

t.test('four times the p99 of the last 512, looked at after each 128', async () => {
  const took = fc.oneof(
    { weight: 3, arbitrary: fc.integer({ min: 1, max: 300 }) },
    { weight: 2, arbitrary: fc.integer({ min: 200, max: 1_300 }) },
    fc.integer({ min: 1, max: 20_000 }),
  )
  const phase = fc.record({ took, rare: took, count: fc.integer({ min: 1, max: 400 }) })
  fc.assert(
    fc.property(fc.array(phase, { minLength: 1, maxLength: 8 }), (phases) => {
      const silence = new Silence()
      const all: number[] = []
      let looked = 0
      let wanted = 1_000
      for (const { took, rare, count } of phases) {
        for (let i = 0; i < count; i++) {
          const ms = i % 70 === 69 ? rare : took + (i % 7)
          silence.answered(ms)
          all.push(ms)
          if (all.length - looked >= LOOK_EVERY) {
            looked = all.length
            wanted = byRule(all)
          }
          if (silence.resendMs !== wanted) return false
        }
        if (silence.againMs(2) !== Math.min(5_000, wanted * 2)) return false
      }
      return true
    }),
    { numRuns: 60 },
  )
})
