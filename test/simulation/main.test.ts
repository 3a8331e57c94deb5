// The simulation's command: what it prints, and with what it ends.

import t from 'tap'
import { MUTANTS } from './mutants.ts'
import { simulate } from './testing/simulate.ts'

const WITHIN_MS = 100_000

t.setTimeout(2 * WITHIN_MS)

t.test(
  'the same seed has the same trace in another process, another seed another one',
  async (t) => {
    const args = ['--seeds', '2', '--first', '5', '--trace-hash']
    const [one, other] = await Promise.all([simulate(args, WITHIN_MS), simulate(args, WITHIN_MS)])
    t.equal(one.said, other.said)
    const hashes = [...one.said.matchAll(/^seed \d+ trace ([0-9a-f]{64})$/gm)].map(
      ([, hash]) => hash,
    )
    t.equal(new Set(hashes).size, 2)
    t.equal(one.code, 0)
  },
)

t.test('mutants are listed, one a line', async (t) => {
  const { code, said } = await simulate(['--list-mutants'], WITHIN_MS)
  t.equal(code, 0)
  t.strictSame(
    said.trim().split('\n'),
    MUTANTS.map(({ name }) => name),
  )
})

t.test('a seed that fails is named with its command line', async (t) => {
  const { code, said } = await simulate(['--seeds', '9', '--mutant', 'no-dedup'], WITHIN_MS)
  t.equal(code, 1)
  t.match(said, /npm run simulate -- --seeds 1 --first \d+ --mutant no-dedup/)
})

t.test('what there is not is no finding', async (t) => {
  for (const args of [['--mutant', 'nobody'], ['--seeds', 'many'], ['--nonsense']]) {
    const { code, said } = await simulate(args, WITHIN_MS)
    t.equal(code, 2, said)
  }
})
