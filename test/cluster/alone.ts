// One cluster at a time on a machine, whatever number of test files run: leases and takeovers are
// measured in milliseconds.

import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withLock } from '../../tools/set-up/lock.mjs'

const LOCK = join(tmpdir(), `kontor-cluster-tests-${process.getuid?.() ?? 0}`)

export function aloneOnThisMachine<T>(work: () => Promise<T>): Promise<T> {
  return withLock(LOCK, work)
}
