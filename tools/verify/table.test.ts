// The table at the end of a run: its columns, and the line that runs a failed step alone.

import t from 'tap'
import { table } from './table.mjs'

t.test('a line for each step, and one more for each that failed', async (t) => {
  const lines = table([
    { name: 'lint', seconds: '8.4', counts: { passed: 1, failed: 0, skipped: 0 } },
    { name: 'tests', seconds: '912.0', counts: { passed: 30_000, failed: 2, skipped: 1 } },
    { name: 'faults', seconds: '-', counts: { passed: 0, failed: 0, skipped: 1 } },
  ]).split('\n')
  t.strictSame(lines, [
    '',
    'step          time   tests',
    'lint         8.4 s       1',
    'tests      912.0 s   30003',
    'faults           -       1',
    'tests failed; alone: node tools/verify.mjs tests',
    '',
  ])
})
