// Rows that wait for a transaction: taken in order and in bounded parts, told of once all of a call
// is in or one part is not, and counted, so that nothing waits for longer or swells.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { freshUuid } from '../conformance/journal-samples.ts'
import type { AppendOutcome, DerivedRow } from '../journal.ts'
import { WaitingRows, type TakenRows } from './waiting.ts'

const MIB = 1024 * 1024

/** Snapshots of about so many bytes. */
function rowsOf(count: number, bytes = 10): DerivedRow[] {
  return Array.from({ length: count }, (_, i) => {
    const body = Buffer.alloc(bytes)
    return { kind: 'snapshot', actorId: freshUuid(), body, offset: i + 1 } as unknown as DerivedRow
  })
}

interface Waiting {
  readonly waiting: WaitingRows
  /** How often it said that something is due. */
  readonly due: () => number
  readonly add: (shard: number, rows: readonly DerivedRow[]) => { outcome: AppendOutcome | null }
}

function make(): Waiting {
  let due = 0
  const waiting = new WaitingRows(() => void due++)
  t.teardown(() => waiting.refuse('unknown'))
  return {
    waiting,
    due: () => due,
    add(shard, rows) {
      const said: { outcome: AppendOutcome | null } = { outcome: null }
      void waiting.add(shard, 7, rows).then((outcome) => (said.outcome = outcome))
      return said
    },
  }
}

const shape = (taken: readonly TakenRows[]) => taken.map(({ shard, rows }) => [shard, rows.length])
const settled = () => new Promise(setImmediate)

void t.test('rows are taken in order, and a call ends with its last one', async (t) => {
  const { waiting, add } = make()
  const [one, two] = [rowsOf(3), rowsOf(4)]
  const said = [add(1, one), add(2, two)]
  const first = waiting.take(5)
  t.same(shape(first), [
    [1, 3],
    [2, 2],
  ])
  t.equal(first[0]!.rows, one, 'a whole call is not copied')
  t.same(first[1]!.rows, two.slice(0, 2))
  t.equal(first[1]!.epoch, 7)
  t.equal(waiting.size, 1)
  for (const taken of first) waiting.settle(taken, 'committed')
  await settled()
  t.same(said, [{ outcome: 'committed' }, { outcome: null }], 'half of it is in')
  const second = waiting.take(5)
  t.same(second[0]!.rows, two.slice(2))
  for (const taken of second) waiting.settle(taken, 'committed')
  await settled()
  t.same(said[1], { outcome: 'committed' })
  t.equal(waiting.size, 0)
  t.same(waiting.take(5), [])
})

void t.test('a part that fails ends its call, and no other', async (t) => {
  const { waiting, add } = make()
  const said = [add(1, rowsOf(4)), add(2, rowsOf(1))]
  const [taken] = waiting.take(2)
  t.same(shape([taken!]), [[1, 2]])
  waiting.settle(taken!, 'unknown')
  await settled()
  t.same(said, [{ outcome: 'unknown' }, { outcome: null }])
  t.equal(waiting.size, 1)
  t.same(shape(waiting.take(9)), [[2, 1]], 'the rest of it is gone')
})

void t.test('a transaction is bounded by rows and bytes, and takes at least one', async (t) => {
  const { waiting, add } = make()
  const large = LIMITS.lmdb.derivedTransactionBytesMax + 1
  add(1, rowsOf(2, large))
  t.same(shape(waiting.take(9)), [[1, 1]])
  t.same(shape(waiting.take(0)), [[1, 1]], 'without room for rows, too')
  add(1, rowsOf(9, 0.4 * MIB))
  add(2, rowsOf(1))
  t.same(shape(waiting.take(9)), [[1, 3]])
  t.same(shape(waiting.take(9)), [[1, 3]])
  t.same(shape(waiting.take(9)), [[1, 3]], 'the last row is the one that fills it')
  t.same(shape(waiting.take(9)), [[2, 1]])
})

void t.test('enough bytes are due at once, and what was taken counts no more', async (t) => {
  const { waiting, add, due } = make()
  const half = LIMITS.lmdb.derivedWaitBytes / 2
  add(1, rowsOf(1, half))
  t.equal(due(), 0)
  t.notOk(waiting.isDue)
  add(1, rowsOf(1, half))
  t.equal(due(), 1)
  t.ok(waiting.isDue)
  for (const taken of waiting.take(9)) waiting.settle(taken, 'committed')
  t.notOk(waiting.isDue)
  // What a failed part leaves out counts no more, either.
  add(1, rowsOf(2, half))
  t.equal(due(), 2)
  const [taken] = waiting.take(1)
  t.ok(waiting.isDue, 'what is left has waited')
  waiting.settle(taken!, 'fenced')
  waiting.take(9)
  t.notOk(waiting.isDue)
  add(1, rowsOf(1, half - 1_000))
  t.notOk(waiting.isDue)
})

void t.test('what is not enough is due in a while', async (t) => {
  let say = (): void => undefined
  const waiting = new WaitingRows(() => say())
  for (const round of ['first', 'next']) {
    const isDue = new Promise<void>((resolve) => (say = resolve))
    const written = waiting.add(1, 1, rowsOf(1))
    t.notOk(waiting.isDue, `the ${round} one has its own while`)
    await isDue
    t.ok(waiting.isDue)
    const [taken] = waiting.take(9)
    t.notOk(waiting.isDue)
    waiting.settle(taken!, 'committed')
    t.equal(await written, 'committed')
  }
})

void t.test('all that wait are refused, and nothing is left', async (t) => {
  const { waiting, add } = make()
  const said = [add(1, rowsOf(1)), add(2, rowsOf(1, LIMITS.lmdb.derivedWaitBytes))]
  waiting.refuse('fenced')
  await settled()
  t.same(said, [{ outcome: 'fenced' }, { outcome: 'fenced' }])
  t.equal(waiting.size, 0)
  t.notOk(waiting.isDue)
  t.same(waiting.take(9), [])
})
