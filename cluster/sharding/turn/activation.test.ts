// An activation by itself: its snapshots, when one is due and what it holds; what entries make of
// it, in whatever order they stand; what an operator is told of it.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { encodeEntry, type Entry } from '../../../protocol/entry/entry.ts'
import { ledger } from '../../testing/ledger.ts'
import { Activation, encodeSnapshot, restore } from './activation.ts'
import { load } from './loading.ts'

const ID = '019b76da-a800-7aea-8f20-3101f073f8bb'

function entry(n: number, v: number, r: Entry['r']): Entry {
  const a = { type: 'append', success: r.length > 0, errors: [] }
  return { y: 'ledger', p: ID, v, n, r, m: `m${n}`, l: 0, a, t: 0, c: 0, b: 'x' }
}

t.test('an actor that was never made has a snapshot only to spare loads many reads', async (t) => {
  const made = new Activation(ledger, ID, null)
  const never = new Activation(ledger, ID, null)
  const lost = new Activation(ledger, ID, null)
  made.replay(
    entry(1, 0, [{ t: 'opened', number: 'N1' }]),
    1,
    LIMITS.sharding.snapshotEntryBytesMin,
  )
  for (let n = 2; n <= LIMITS.sharding.snapshotEntriesMin; n++) made.replay(entry(n, 1, []), n, 1)
  const refuse = (activation: Activation, upTo: number): void => {
    for (let n = activation.n + 1; n <= upTo; n++) {
      activation.replay(entry(n, activation === lost && n === 7 ? 1 : 0, []), n, 1_000)
    }
  }
  t.ok(made.snapshotDue())
  refuse(never, LIMITS.sharding.unmadeSnapshotEntriesMin - 1)
  t.equal(never.snapshotDue(), null)
  refuse(never, LIMITS.sharding.unmadeSnapshotEntriesMin)
  const capture = never.snapshotDue()
  t.match(capture, { state: null, version: 0, n: LIMITS.sharding.unmadeSnapshotEntriesMin })
  refuse(lost, 2 * LIMITS.sharding.unmadeSnapshotEntriesMin)
  t.equal(lost.snapshotDue(), null, 'an entry says that it had records')
  const again = new Activation(ledger, ID, null)
  restore(again, encodeSnapshot(capture!, 0))
  t.equal(again.n, never.n)
  t.equal(again.state, null)
  t.equal(again.marks.find('m1024', 0)?.messageId, 'm1024')
})

t.test('a refusal read behind a later entry moves no relay back', async (t) => {
  const actor = new Activation(ledger, ID, null)
  actor.replay({ ...entry(1, 0, [{ t: 'opened', number: 'N1' }]), s: [7, 20, 1] }, 9, 1)
  actor.replay({ ...entry(2, 1, []), s: [7, 10, 0] }, 4, 1)
  actor.replay({ ...entry(3, 1, []), s: [8, 10, 0] }, 5, 1)
  t.same([...actor.relays], [[7, [20, 1]], [8, [10, 0]]]) // prettier-ignore
  t.equal(actor.newest, 9, 'nor the actor itself: answers wait for the newest')
  actor.replay({ ...entry(4, 1, []), t: 50 }, 10, 1)
  actor.replay({ ...entry(5, 1, []), t: 40 }, 6, 1)
  t.same([actor.newest, actor.lastTimeMs, actor.n], [10, 50, 5])
})

t.test('of an actor that can only be read an operator is told, strays or none', async (t) => {
  const told: string[] = []
  const body = encodeEntry(entry(1, 5, [{ t: 'appended', token: 'x' }]))
  const actor = new Activation(ledger, ID, null)
  await load(actor, {
    snapshot: () => null,
    entries: (_, after) => (after === 0 ? [{ n: 1, offset: 3, body: Buffer.from(body) }] : []),
    tail: () => [],
    lostBehind: -1,
    alarm: (id, what) => void told.push(`${id} ${what}`),
  })
  t.equal(told.length, 1)
  t.match(told[0], `${ID} an actor can only be read: `)
})

t.test('it weighs what its state does, however often it was changed', async (t) => {
  const actor = new Activation(ledger, ID, null)
  const bytes = 1_000
  actor.replay(entry(1, 0, [{ t: 'opened', number: 'N1' }]), 1, bytes)
  t.equal(actor.weight, 1_000 + bytes + actor.marks.bytes)
  const most = 1_000 + LIMITS.sharding.weighedAnewBytes + bytes
  for (let n = 2; n <= 200; n++) {
    actor.replay(entry(n, n - 1, [{ t: 'renumbered', number: `N${n}` }]), n, bytes)
    if (actor.weight - actor.marks.bytes > most) t.fail(`at ${n} it weighs ${actor.weight}`)
  }
  const capture = actor.snapshotDue()!
  const again = new Activation(ledger, ID, null)
  restore(again, encodeSnapshot(capture, 0))
  t.ok(again.weight >= again.snapshotBytes)
  t.ok(again.weight - again.marks.bytes <= most)
})
