// Derived rows on a server come one behind the other: what counts as done, what waits, what failed
// rows are carried along by.

import fc from 'fast-check'
import t from 'tap'
import type { DerivedRow } from '../../journal.ts'
import { WriteOrder } from './write-order.ts'

const row = (offset: number): DerivedRow => ({ kind: 'consumer', consumer: 'flush', offset })
const offsetsOf = (rows: readonly DerivedRow[]) => rows.map(({ offset }) => offset)

interface Sent {
  readonly stage: 'first' | 'second'
  readonly offsets: readonly number[]
  readonly end: (isDurable: boolean) => void
  readonly fail: (error: Error) => void
}

/** An engine that answers when it is told to. */
function scene(aside = Promise.resolve(true)) {
  const sent: Sent[] = []
  let nowMs = 0
  const send = (stage: Sent['stage'], rows: readonly DerivedRow[]) => () =>
    new Promise<boolean>((end, fail) => sent.push({ stage, offsets: offsetsOf(rows), end, fail }))
  const order = new WriteOrder({
    begin: (_, rows) => ({
      first: send('first', rows),
      second: send('second', rows),
      aside: () => aside,
    }),
    now: () => nowMs,
  })
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve))
  return {
    order,
    /** What is under way now, and what it is made of. */
    underway: () => sent.map(({ stage, offsets }) => [stage, ...offsets]),
    async end(index: number, isDurable: boolean) {
      sent.splice(index, 1)[0]!.end(isDurable)
      await settle()
    },
    async fail(index: number) {
      sent.splice(index, 1)[0]!.fail(new Error('a mistake'))
      await settle()
    },
    later(ms: number) {
      nowMs += ms
    },
  }
}

void t.test('second stages go one behind the other, whatever comes first', async (t) => {
  const { order, underway, end } = scene()
  const a = order.write(0, 1, [row(1)])
  const b = order.write(0, 1, [row(2)])
  t.same(underway(), [
    ['first', 1],
    ['first', 2],
  ])
  await end(1, true)
  t.same(underway(), [['first', 1]], 'b waits for a')
  await end(0, true)
  t.same(underway(), [['second', 1]])
  await end(0, true)
  t.equal(await a, true)
  t.same(underway(), [['second', 2]])
  await end(0, true)
  t.equal(await b, true)
  await order.settled()
})

void t.test('what failed is carried along by the next write', async (t) => {
  const { order, underway, end } = scene()
  const rows = [row(1)]
  const a = order.write(0, 1, rows)
  const b = order.write(0, 1, [row(2)])
  await end(0, false)
  await end(0, true)
  t.same([await a, await b], [false, false], 'b may be in, but what is before it may not')
  const c = order.write(0, 1, [row(3)])
  t.same(underway(), [['first', 1, 2, 3]])
  const again = order.write(0, 1, rows)
  t.equal(underway().length, 1, 'the same rows once more are under way already')
  await end(0, true)
  await end(0, true)
  t.same([await again, await c], [true, true])
  const d = order.write(0, 1, [row(4)])
  t.same(underway(), [['first', 4]], 'and nothing is owed any more')
  await end(0, true)
  await end(0, true)
  t.equal(await d, true)
})

void t.test('a failed second stage is carried along, too', async (t) => {
  const { order, underway, end } = scene()
  const rows = [row(1)]
  const a = order.write(0, 1, rows)
  await end(0, true)
  await end(0, false)
  t.equal(await a, false)
  const again = order.write(0, 1, rows)
  t.same(underway(), [['first', 1]])
  await end(0, true)
  await end(0, true)
  t.equal(await again, true)
})

void t.test('a new tenure owes nothing of an older one, which goes its own way', async (t) => {
  const { order, underway, end } = scene()
  const a = order.write(0, 1, [row(1)])
  await end(0, false)
  t.equal(await a, false)
  const b = order.write(0, 2, [row(2)])
  const late = order.write(0, 1, [row(3)])
  t.same(underway(), [
    ['first', 2],
    ['first', 3],
  ])
  const other = order.write(1, 1, [row(9)])
  t.equal(underway().length, 3, 'other shards wait for nobody')
  for (let i = 0; i < 6; i++) await end(0, true)
  t.same(await Promise.all([b, late, other]), [true, true, true])
})

void t.test('rows that nobody writes again are forgotten', async (t) => {
  const { order, underway, end, later } = scene()
  const a = order.write(0, 1, [row(1)])
  await end(0, false)
  t.equal(await a, false)
  later(60_001)
  void order.write(1, 1, [row(5)])
  void order.write(0, 1, [row(2)])
  t.same(underway().at(-1), ['first', 2])
})

void t.test('a write that hangs is not forgotten: what comes later waits for it', async (t) => {
  const { order, underway, end, later } = scene()
  const a = order.write(0, 1, [row(1)])
  later(120_000)
  const b = order.write(0, 1, [row(2)])
  await end(1, true)
  t.same(underway(), [['first', 1]])
  await end(0, false)
  t.same([await a, await b], [false, false])
})

void t.test('a snapshot that is refused for good fails its own write alone', async (t) => {
  const wrote: string[] = []
  const order = new WriteOrder({
    begin: (_, rows) => ({
      first: async () => true,
      async second() {
        for (const row of rows) if (row.kind === 'consumer') wrote.push(`consumer ${row.offset}`)
        return true
      },
      async aside() {
        const all = rows.filter(({ kind }) => kind === 'snapshot')
        for (const { offset } of all) wrote.push(`snapshot ${offset}`)
        return all.every(({ offset }) => offset !== 9)
      },
    }),
    now: () => 0,
  })
  const snapshot = (offset: number): DerivedRow[] => [
    { kind: 'snapshot', actorId: `a${offset}`, offset, body: Buffer.of(1) },
  ]
  for (let offset = 10; offset < 13; offset++) {
    const refused = order.write(0, 1, snapshot(9))
    const other = order.write(0, 1, [row(offset)])
    t.equal(await other, true, 'a register of the same shard, at the same time')
    t.equal(await refused, false)
    t.equal(await order.write(0, 1, [row(offset)]), true, 'and after it')
    t.equal(await order.write(0, 1, snapshot(offset)), true, 'another snapshot')
  }
  t.equal(wrote.filter((text) => text === 'snapshot 9').length, 3, 'nobody else carries it')
  await order.settled()
})

void t.test('a snapshot waits for all that was written before it', async (t) => {
  let end: (isDurable: boolean) => void = () => undefined
  let asides = 0
  const order = new WriteOrder({
    begin: (_, rows) => ({
      first: () =>
        rows[0]!.kind === 'snapshot'
          ? Promise.resolve(true)
          : new Promise<boolean>((resolve) => (end = resolve)),
      second: () => Promise.resolve(true),
      aside: () => Promise.resolve(rows[0]!.kind !== 'snapshot' || ++asides > 0),
    }),
    now: () => 0,
  })
  const entry = order.write(0, 1, [row(1)])
  const snapshot = order.write(0, 1, [
    { kind: 'snapshot', actorId: 'a', offset: 1, body: Buffer.of(1) },
  ])
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(asides, 0)
  end(false)
  t.same([await entry, await snapshot], [false, false])
  t.equal(asides, 0)
})

void t.test('a mistake of ours is heard by everybody who waits', async (t) => {
  const order = new WriteOrder({
    begin: () => ({
      first: () => Promise.reject(new TypeError('no number')),
      second: async () => true,
      aside: async () => true,
    }),
    now: () => 0,
  })
  await t.rejects(order.write(0, 1, [row(1)]), { message: 'no number' })
})

interface Step {
  readonly kind: 'write' | 'end' | 'again'
  readonly at: number
  readonly isDurable: boolean
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('write', 'write', 'end', 'end', 'again'),
  at: fc.nat(),
  isDurable: fc.oneof(
    { weight: 3, arbitrary: fc.constant(true) },
    { arbitrary: fc.constant(false), weight: 1 },
  ),
})

void t.test('true means that everything up to here was written, in both stages', async (t) => {
  let answered = 0
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 20, maxLength: 60 }),
    async (steps) => {
      const durable = { first: new Set<number>(), second: new Set<number>() }
      const sent: (Omit<Sent, 'fail'> & { readonly done: () => void })[] = []
      let isWrong = false
      const send = (stage: 'first' | 'second', rows: readonly DerivedRow[]) => () =>
        new Promise<boolean>((end) => {
          const offsets = offsetsOf(rows)
          // What overtakes: a second stage while a first one below it isn't in.
          const highest = stage === 'second' ? Math.max(...offsets) : 0
          const below = Array.from({ length: highest }, (_, at) => at + 1)
          if (!below.every((offset) => durable.first.has(offset))) isWrong = true
          const done = () => offsets.forEach((offset) => durable[stage].add(offset))
          sent.push({ stage, offsets, end, done })
        })
      const order = new WriteOrder({
        begin: (_, rows) => ({
          first: send('first', rows),
          second: send('second', rows),
          aside: () => Promise.resolve(true),
        }),
        now: () => 0,
      })
      let written = 0
      const failed: (readonly DerivedRow[])[] = []
      const write = (rows: readonly DerivedRow[]) => {
        const { offset } = rows[0]!
        void order.write(0, 1, rows).then((isDurable) => {
          if (!isDurable) return void failed.push(rows)
          answered++
          for (let i = 1; i <= offset; i++) {
            if (!durable.first.has(i) || !durable.second.has(i)) isWrong = true
          }
        })
      }
      for (const { kind, at, isDurable } of steps) {
        if (kind === 'write') write([row(++written)])
        else if (kind === 'again' && failed.length > 0)
          write(failed.splice(at % failed.length, 1)[0]!)
        else if (sent.length > 0) {
          const [one] = sent.splice(at % sent.length, 1)
          // A write that failed may be in all the same.
          if (isDurable || at % 2 === 0) one!.done()
          one!.end(isDurable)
        }
        await new Promise<void>((resolve) => setImmediate(resolve))
      }
      // The engine is well again: what failed is written once more, and all of it is in.
      while (sent.length > 0 || failed.length > 0) {
        for (const rows of failed.splice(0)) write(rows)
        for (const { done, end } of sent.splice(0)) {
          done()
          end(true)
        }
        await new Promise<void>((resolve) => setImmediate(resolve))
      }
      return !isWrong && durable.first.size === written && durable.second.size === written
    },
  )
  await fc.assert(property, { numRuns: 200 })
  t.ok(answered > 500, `${answered} answers`)
})

void t.test('what an older tenure still writes leaves the newer one what it owes', async (t) => {
  const { order, underway, end } = scene()
  const rows = [row(2)]
  const failed = order.write(0, 2, rows)
  await end(0, false)
  t.equal(await failed, false)
  void order.write(0, 1, [row(1)])
  t.same(underway(), [['first', 1]])
  void order.write(0, 2, [row(3)])
  t.same(underway()[1], ['first', 2, 3])
})

void t.test('who has written a snapshot waits for it, whatever is beside it', async (t) => {
  let written: (isDurable: boolean) => void = () => undefined
  const { order, end } = scene(new Promise((resolve) => (written = resolve)))
  const snapshot = { kind: 'snapshot', actorId: 'a', offset: 1, body: Buffer.of(1) } as const
  const said: (readonly [string, boolean])[] = []
  const hear = (name: string, is: Promise<boolean>) => void is.then((one) => said.push([name, one]))
  hear('both', order.write(0, 1, [row(1), snapshot]))
  hear('snapshot', order.write(0, 1, [snapshot]))
  hear('row', order.write(0, 1, [row(2)]))
  for (let left = 6; left > 0; left--) await end(0, true)
  t.same(said, [['row', true]])
  written(true)
  await order.settled()
  t.same(
    said
      .slice(1)
      .map(([name]) => name)
      .toSorted(),
    ['both', 'snapshot'],
  )
})

void t.test('what was owed behind a mistake is carried along like any other', async (t) => {
  const { order, underway, end, fail } = scene()
  const rows = [row(1)]
  const failed = order.write(0, 1, rows)
  await fail(0)
  await t.rejects(failed, { message: 'a mistake' })
  const next = order.write(0, 1, [row(2)])
  t.same(underway(), [['first', 1, 2]])
  await end(0, true)
  await end(0, true)
  t.equal(await next, true)
  t.same(underway(), [])
})

void t.test('a shard that is written now and then owes what it owed', async (t) => {
  const { order, underway, end, later } = scene()
  const first = order.write(0, 1, [row(1)])
  for (let offset = 2; offset < 6; offset++) {
    await end(0, false)
    later(40_000)
    void order.write(0, 1, [row(offset)])
  }
  t.equal(await first, false)
  t.same(underway(), [['first', 1, 2, 3, 4, 5]])
})
