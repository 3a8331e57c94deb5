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

t.test('no seed is begun when the time is over, but for the least number', async (t) => {
  const over = await simulate(['--once', '--within', '0', '--seeds', '3'], WITHIN_MS)
  t.equal(over.code, 0, over.said)
  t.match(over.said, /^3 seeds from 1: all hold$/m)
  t.match(
    over.said,
    /^[\d,]+ operations over 3 seeds in \d+ s, \d+ looks at the graph, \d+ changes heard$/m,
  )
  // The third seed is the first that shows it.
  const hasTime = await simulate(['--once', '--within', '3600', '--mutant', 'no-head'], WITHIN_MS)
  t.equal(hasTime.code, 1, 'it goes on beyond the least number while there is time')
})

t.test('what there is not is no finding', async (t) => {
  for (const args of [
    ['--mutant', 'nobody'],
    ['--seeds', 'many'],
    ['--within', 'soon'],
    ['--nonsense'],
  ]) {
    const { code, said } = await simulate(args, WITHIN_MS)
    t.equal(code, 2, said)
  }
})
