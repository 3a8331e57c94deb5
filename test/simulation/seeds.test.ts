// Three hundred seeds hold, each with the same trace in both of its runs. A failing one is named
// with the command line that runs it again.

import t from 'tap'
import { simulate } from './testing/simulate.ts'

const SEEDS = 300
const PROCESSES = 2
const WITHIN_MS = 560_000

t.setTimeout(WITHIN_MS + 20_000)

t.test(`${SEEDS} seeds hold`, async (t) => {
  const each = SEEDS / PROCESSES
  const runs = Array.from({ length: PROCESSES }, (_, i) =>
    simulate(['--seeds', String(each), '--first', String(1 + i * each)], WITHIN_MS),
  )
  for (const { code, said } of await Promise.all(runs)) {
    t.equal(code, 0, said)
    t.match(said, /all hold/)
    // Checkers that are shown nothing find nothing.
    const [, operations, looks] = /(\d+) operations were answered, (\d+) looks/.exec(said)!
    t.ok(Number(operations) > each * 50, said)
    t.ok(Number(looks) > each * 2, said)
  }
})
