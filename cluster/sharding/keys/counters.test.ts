// Counters of numbers between the log and their rows: which of both counts, how long one is
// remembered, and which are forgotten first.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { COUNTER_SUFFIX } from '../../../storage/journal.ts'
import type { AliasRow } from '../../../storage/journal.ts'
import { seeded } from '../../testing/harness.ts'
import { Numbers, seriesOf } from './numbers.ts'
import { latch } from '../testing/scene.ts'

const SERIES = seriesOf('ledger', 'L')
const { counter } = SERIES

function rowWith(n: number): AliasRow {
  const claim = { actorId: '', messageId: String(n), confirmed: true, clock: 0 }
  return { keyType: `ledger${COUNTER_SUFFIX}`, key: '0/L', claims: [claim] }
}

function numbersOn(row: AliasRow | null): Numbers {
  return new Numbers({ shard: 0, shards: 1, derived: { alias: () => row }, random: seeded(7) })
}

t.test('a counter of a tail counts only beside its row: whichever is higher', async (t) => {
  for (const [inTail, inRow] of [
    [20, 50],
    [50, 20],
  ] as const) {
    const numbers = numbersOn(rowWith(inRow))
    numbers.replayed({ [counter]: inTail }, 3)
    t.notOk(numbers.isSettled([counter]))
    await numbers.ready(SERIES)
    t.equal(numbers.next(SERIES).n, 51)
    t.ok(numbers.isSettled([counter]))
    t.same(numbers.rowOf(counter).claims, rowWith(50).claims.map(nobodys))
  }
})

function nobodys(claim: AliasRow['claims'][number]): AliasRow['claims'][number] {
  return { ...claim, actorId: '00000000-0000-0000-0000-000000000000' }
}

t.test('a counter is remembered until its row is durable, and no longer', (t) => {
  const numbers = numbersOn(null)
  numbers.heard({ [counter]: 5 }, 8)
  numbers.flushed([counter], 7)
  t.ok(numbers.rowOf(counter))
  numbers.heard({ [counter]: 6 }, 9)
  numbers.flushed([counter], 8)
  t.equal(numbers.rowOf(counter).claims[0]!.messageId, '6', 'it has moved on')
  numbers.flushed([counter], 9)
  t.throws(() => numbers.rowOf(counter))
  t.end()
})

t.test('a lower one that comes later moves nothing back', (t) => {
  const numbers = numbersOn(null)
  numbers.heard({ [counter]: 6 }, 1)
  numbers.heard({ [counter]: 5 }, 2)
  t.equal(numbers.rowOf(counter).claims[0]!.messageId, '6')
  t.same(numbers.told().counters, { [counter]: 6 })
  t.end()
})

t.test('an older version is told of as many as there is room for, and of one once', (t) => {
  const numbers = numbersOn(null)
  const told = (): number => Object.keys(numbers.told().counters).length
  for (let i = 0; i < LIMITS.sharding.countersToldMax; i++)
    numbers.heard({ [`ledger/${i}`]: 1 }, i + 1)
  t.equal(told(), LIMITS.sharding.countersToldMax)
  numbers.heard({ 'ledger/3': 2 }, 90)
  t.equal(told(), LIMITS.sharding.countersToldMax, 'one that moves on takes nobody’s place')
  t.match(numbers.told().counters, { 'ledger/0': 1, 'ledger/3': 2 })
  numbers.heard({ 'ledger/new': 1 }, 91)
  t.equal(told(), LIMITS.sharding.countersToldMax)
  t.notOk('ledger/0' in numbers.told().counters)
  t.end()
})

t.test('what is searched for or was just read is not forgotten', async (t) => {
  t.teardown(overrideLimits({ 'sharding.countersKnownMax': 1 }))
  const numbers = numbersOn(rowWith(40))
  await numbers.ready(SERIES)
  const looked = latch()
  const search = numbers.skip(SERIES, () => looked.opened.then(() => false))
  const other = seriesOf('ledger', 'M')
  await numbers.ready(other)
  t.equal(numbers.next(other).n, 41, 'the one just read')
  t.equal(numbers.peek(SERIES).n, 41, 'the one that is searched for')
  looked.open()
  await search
  t.equal(numbers.next(SERIES).n, 41)
})

t.test('a search that could not look is begun anew by who asks next', async (t) => {
  const numbers = numbersOn(rowWith(40))
  await numbers.ready(SERIES)
  await t.rejects(
    numbers.skip(SERIES, () => Promise.reject(new Error('the store is away'))),
    { message: 'the store is away' },
  )
  await numbers.skip(SERIES, () => false)
  await numbers.ready(SERIES)
  t.equal(numbers.next(SERIES).n, 41)
})
