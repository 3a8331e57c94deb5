// Seeds hold, as many as the time allows and never fewer than a floor, and some of them have the
// same trace in two runs. A failing one is named with the command line that runs it again. More of
// them by number: `npm run simulate -- --seeds 1000`.

import t from 'tap'
import { simulate } from './testing/simulate.ts'

/** No other seed is begun after this. */
const SECONDS = 40
/** Of each process: a slow machine runs so many whatever the time. */
const SEEDS_MIN = 60
/** The seeds that the processes begin at, farther apart than any machine comes. */
const FIRST = [1, 100_001]
/** A run that depends on anything but its seed shows it in most seeds. */
const SEEDS_RUN_TWICE = 20
const WITHIN_MS = 560_000

t.setTimeout(WITHIN_MS + 20_000)

t.test(`seeds hold: ${SECONDS} s of them, ${FIRST.length * SEEDS_MIN} at least`, async (t) => {
  const args = ['--once', '--within', String(SECONDS), '--seeds', String(SEEDS_MIN)]
  const runs = FIRST.map((first) => simulate([...args, '--first', String(first)], WITHIN_MS))
  for (const { code, said } of await Promise.all(runs)) {
    t.equal(code, 0, said)
    t.match(said, /all hold/)
    const counted =
      /([\d,]+) operations over (\d+) seeds in \d+ s, ([\d,]+) looks at the graph, ([\d,]+) changes/.exec(
        said,
      )!
    const [operations, seeds, looks, heard] = counted
      .slice(1)
      .map((n) => Number(n.replaceAll(',', '')))
    t.comment(`told: simulation: ${counted[0]} heard`)
    t.ok(seeds! >= SEEDS_MIN, said)
    // Checkers that are shown nothing find nothing.
    t.ok(operations! > seeds! * 50, said)
    t.ok(looks! > seeds! * 2, said)
    t.ok(heard! > seeds! * 2, said)
  }
})

t.test(`${SEEDS_RUN_TWICE} seeds have the same trace again`, async (t) => {
  const { code, said } = await simulate(['--seeds', String(SEEDS_RUN_TWICE)], WITHIN_MS)
  t.equal(code, 0, said)
})
