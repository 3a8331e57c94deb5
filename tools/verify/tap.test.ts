// What is read out of tap's output: counts, the files that failed, what was skipped.

import t from 'tap'
import { readTap } from './tap.mjs'

const OUTPUT = `TAP version 14
1..3
# Subtest: a/good.test.ts
    # Subtest: one
        # told: 31 seeds in 60 s
        ok 1 - fine
        1..1
    ok 1 - one # time=1ms
    1..1
ok 1 - a/good.test.ts # time=10ms

a line of standard error
# Subtest: a/bad.test.ts
    ok 1 - fine too
    not ok 2 - wrong
      ---
      diff: |
        -1
        +2
      ...
    ok 3 - elsewhere # SKIP no IPv6 here
    ok 4 - later # TODO
    1..4
not ok 2 - a/bad.test.ts # time=20ms
  ---
  exitCode: 1
  ...

not ok 3 - a/none.test.ts # no tests found

# { total: 6, pass: 2, fail: 2, todo: 1, skip: 1 }
# time=800ms
`

t.test('counts come from the summary; a test to be written counts as skipped', async (t) => {
  t.match(readTap(OUTPUT), { passed: 2, failed: 2, skipped: 2 })
  t.match(readTap('# { total: 5, pass: 5 }'), { passed: 5, failed: 0, skipped: 0, failures: [] })
  t.match(readTap('tap: bad option'), { passed: 0, failed: 0 })
})

t.test('failed files are shown without the assertions that passed', async (t) => {
  const { failures } = readTap(OUTPUT)
  t.equal(failures.length, 2)
  t.match(failures[0], /^# Subtest: a\/bad\.test\.ts\n {4}not ok 2 - wrong\n[^]*\+2[^]*exitCode: 1/)
  t.notMatch(failures[0], /fine too|good\.test/)
  t.match(failures[1], /^not ok 3 - a\/none\.test\.ts # no tests found/)
})

t.test('skipped tests are named', async (t) => {
  const skips = ['ok 3 - elsewhere # SKIP no IPv6 here', 'ok 4 - later # TODO']
  t.strictSame(readTap(OUTPUT).skips, skips)
})

t.test('what a test tells is kept, whether it passes or not', async (t) => {
  t.strictSame(readTap(OUTPUT).told, ['31 seeds in 60 s'])
})
