// Suites that run twice: on the twin, always, and on a real Cassandra where this machine has one.

import type { Test } from 'tap'
import { testCassandra } from './test-store.ts'
import { TwinCassandra, type TestCassandra } from './twin.ts'

/** Of all tests of a suite together; some fill stores on a disk. */
const WITHIN_MS = 180_000
/** Both of them, and the start of the engine. */
const BOTH_WITHIN_MS = 600_000

/** Resolves when both are begun. */
export async function onBoth(
  t: Pick<Test, 'test' | 'setTimeout'>,
  name: string,
  suite: (t: Test, cassandra: TestCassandra) => Promise<void>,
): Promise<void> {
  t.setTimeout(BOTH_WITHIN_MS)
  const timeout = WITHIN_MS
  void t.test(`${name}, on the twin`, { timeout }, (s) => suite(s, new TwinCassandra(s)))
  const real = await testCassandra()
  const skip = 'skipped' in real ? real.skipped : false
  void t.test(`${name}, on Cassandra`, { skip, timeout }, async (s) => {
    if (!('skipped' in real)) await suite(s, real)
  })
}
