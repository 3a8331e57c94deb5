// An activation's snapshots: when one is due, and for whom never.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { Entry } from '../../protocol/entry.ts'
import { ledger } from '../testing/ledger.ts'
import { Activation } from './activation.ts'

const ID = '019b76da-a800-7aea-8f20-3101f073f8bb'

function entry(n: number, v: number, r: Entry['r']): Entry {
  const a = { type: 'append', success: r.length > 0, errors: [] }
  return { y: 'ledger', p: ID, v, n, r, m: `m${n}`, l: 0, a, t: 0, c: 0, b: 'x' }
}

t.test('an actor that was never made has no snapshot, however often it was asked', async (t) => {
  const made = new Activation(ledger, ID, null)
  const never = new Activation(ledger, ID, null)
  made.replay(entry(1, 0, [{ t: 'opened', number: 'N1' }]), 1, LIMITS.snapshotEntryBytesMin)
  for (let n = 2; n <= LIMITS.snapshotEntriesMin; n++) made.replay(entry(n, 1, []), n, 1)
  for (let n = 1; n <= LIMITS.snapshotEntriesMin; n++) {
    never.replay(entry(n, 0, []), n, LIMITS.snapshotEntryBytesMin)
  }
  t.ok(made.snapshotDue())
  t.equal(never.snapshotDue(), null)
})
