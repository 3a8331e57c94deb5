// The checkers can fail: each finds what is wrong in a history made by hand, and nothing in a good
// one. Source: PROTOCOL 4.1.

import t from 'tap'
import { OperationHistory, positionOf } from '../operation-history.ts'
import type { Operation, Shown } from '../operation-history.ts'
import { consistencyTokens } from '../../../node/graph/consistency.ts'
import { checkAnswers } from './answers.ts'
import { checkIndex } from './index.ts'
import { checkBatches, checkMarks } from './marks.ts'
import { checkTime } from './time.ts'

let now = 0
const shown = (marks: string[], orderTotal = marks.length): Shown => ({
  orderNumber: 'N',
  orderTotal,
  marks,
  lineTotals: marks.map(() => 1),
})
const end = (marks: string[] | null): ReadonlyMap<string, Shown | null> =>
  new Map([['N', marks && shown(marks)]])

/** A history of one order, in which every operation takes a millisecond after the last. */
function historyOf(...operations: Partial<Operation>[]): OperationHistory {
  now = 0
  const history = new OperationHistory(() => now)
  for (const change of operations) {
    now++
    const begun = history.begin({ process: 'c', op: 'mark', pid: 'P', orderNumber: 'N' })
    const { invokedAt } = begun
    Object.assign(begun, { outcome: 'ok', status: 200, answer: '200 {}' })
    Object.assign(begun, { returnedAt: invokedAt + 0.5 }, change)
  }
  return history
}

const mark = (...marks: string[]): Partial<Operation> => ({ op: 'mark', marks })
const read = (...marks: string[]): Partial<Operation> => ({ op: 'read', shown: shown(marks) })
const at = (offset: number, shard = 1): Partial<Operation> => ({
  offset,
  shard,
  token: `${shard}:${offset}`,
})

t.test('K1: marks', (t) => {
  const problem = (operation: Partial<Operation>, marks: string[] | null, words: RegExp): void => {
    t.match(checkMarks(historyOf(operation), end(marks)).join('\n'), words)
  }
  t.same(checkMarks(historyOf(mark('a'), mark('b')), end(['b', 'a'])), [])
  t.same(checkMarks(historyOf({ ...mark('a'), outcome: 'info' }), end(['a'])), [])
  t.same(checkMarks(historyOf({ ...mark('a'), outcome: 'info' }), end(null)), [])
  problem(mark('a'), [], /a of operation 0 \(mark\) was acknowledged and is lost/)
  problem(mark('a'), null, /acknowledged and is lost/)
  problem(mark('a'), ['a', 'a'], /a is there 2 times/)
  problem({ ...mark('a'), outcome: 'info' }, ['a', 'a'], /a is there 2 times/)
  problem({ ...mark('a'), outcome: 'fail' }, ['a'], /told: nothing was done/)
  problem({ ...mark('a'), rejected: true }, ['a'], /told: rejected/)
  problem({ ...mark('a'), op: 'preview' }, ['a'], /told: that it was a preview/)
  problem({ ...mark('a'), op: 'reject' }, ['a'], /told: that it was a reject/)
  problem({ ...mark('a'), op: 'other-body', outcome: 'info' }, ['a'], /was a other-body/)
  problem({ ...mark('a'), orderNumber: 'M' }, ['a'], /is in N, not in M/)
  problem({ ...mark('a'), outcome: 'info' }, ['x'], /nobody has sent x/)
  t.end()
})

t.test('K9: batches and sums', (t) => {
  const batch = mark('a', 'b')
  t.same(checkBatches(historyOf(batch, read('a', 'b'), read()), end(['a', 'b'])), [])
  t.match(checkMarks(historyOf(batch), end(['a'])).join(), /K9: of the batch a,b .* only a/)
  t.match(checkMarks(historyOf({ ...batch, outcome: 'info' }), end(['b'])).join(), /only b/)
  t.match(checkBatches(historyOf(batch, read('b')), end(null)).join(), /operation 1 .* b without a/)
  t.match(checkBatches(historyOf(batch), end(['a'])).join(), /the end was shown a without b/)
  const total = { op: 'read' as const, shown: shown(['a'], 2) }
  t.match(checkBatches(historyOf(total), end(null)).join(), /N at 2, its lines are 1/)
  const graph = (...marks: string[]) => historyOf(batch, { ...read(...marks), op: 'graph' })
  t.match(checkBatches(graph('b'), end(null)).join(), /operation 1 \(graph\) .* b without a/)
  t.same(checkBatches(graph('a', 'b'), end(null)), [])
  t.end()
})

t.test('K2: places in the log', (t) => {
  const placed = (...offsets: number[]): string =>
    checkTime(
      historyOf(...offsets.map((offset, i) => ({ ...mark(`m${i}`), ...at(offset) }))),
    ).join()
  t.equal(placed(1, 2, 5), '')
  t.match(placed(1, 5, 2), /K2: operation 1 had returned before 2 was invoked, and stands behind/)
  t.match(placed(1, 1), /K2: operations 0 and 1 stand in one place/)
  const slow = { ...mark('a'), ...at(3), returnedAt: 10 }
  t.same(checkTime(historyOf(slow, { ...mark('b'), ...at(2) })), [], 'they were at one time')
  const elsewhere = historyOf({ ...mark('a'), ...at(3) }, { ...mark('b'), ...at(2, 7) })
  t.same(checkTime(elsewhere), [], 'another shard')
  t.end()
})

t.test('K3: reads', (t) => {
  const told = (...operations: Partial<Operation>[]): string =>
    checkTime(historyOf(...operations)).join('\n')
  t.equal(told(read(), mark('a'), read('a'), mark('b', 'c'), read('a', 'b', 'c')), '')
  t.equal(told({ ...mark('a'), outcome: 'info', returnedAt: null }, read(), read('a')), '')
  t.match(told(mark('a'), read()), /K3: operation 1 was not shown a of 0, done before it/)
  t.match(told(read('a'), mark('a')), /K3: operation 0 was shown a before it was sent/)
  t.match(told(read('x')), /K3: operation 0 was shown x, never sent/)
  const open = { outcome: 'info' as const, returnedAt: null }
  const both = [
    { ...mark('a'), ...open },
    { ...mark('b'), ...open },
  ]
  t.match(told(...both, read('a'), read()), /shown less than 2, which had ended before/)
  t.match(told(...both, read('a'), read('b', 'a')), /operation 2 was shown a where .* was shown b/)
  t.end()
})

t.test('K7: who names a write sees it', (t) => {
  const graph = (offset: number, ...marks: string[]): Partial<Operation> => ({
    op: 'graph',
    token: `1:${offset}`,
    shown: shown(marks),
  })
  const writes = [
    { ...mark('a'), ...at(1) },
    { ...mark('b'), ...at(2) },
  ]
  const told = (request: Partial<Operation>): string =>
    checkTime(historyOf(...writes, request)).join()
  t.equal(told(graph(2, 'a', 'b')), '')
  t.equal(told(graph(1, 'a')), '')
  t.match(told(graph(2, 'b')), /K7: operation 2 named offset 2 and was not shown a of 0 at 1/)
  t.match(told({ ...graph(1), shown: null }), /was not shown a/)
  t.end()
})

t.test('F30, F31, F34: answers', (t) => {
  const told = (...operations: Partial<Operation>[]): string =>
    checkAnswers(historyOf(...operations)).join()
  const repeat = { op: 'repeat' as const, of: 0 }
  t.equal(told(mark('a'), repeat), '')
  t.match(
    told(mark('a'), { ...repeat, answer: '200 {"x":1}' }),
    /F30: operation 1 .*, not 200 \{\}/,
  )
  t.match(told({ ...mark('a'), otherAnswers: ['409 {}'] }), /F30: .* a repeat of it 409/)
  const mismatch = { status: 422, answer: '422 IDEMPOTENCY_MISMATCH', rejected: true }
  t.equal(told(mark('a'), { op: 'other-body', of: 0, ...mismatch }), '')
  t.match(told(mark('a'), { op: 'other-body', of: 0 }), /F30: operation 1 \(other-body\)/)
  t.equal(told({ op: 'reject', rejected: true, status: 404, answer: '404 NOT_FOUND' }), '')
  t.match(told({ op: 'reject' }), /F31/)
  t.match(told({ ...mark('a'), rejected: true, answer: '404' }), /K1: .* nothing was wrong with it/)
  const create = { op: 'create' as const }
  const taken = { ...create, rejected: true, status: 409, answer: '409 ALREADY_EXISTS' }
  t.equal(told(create, taken), '')
  t.equal(told({ ...create, outcome: 'info', returnedAt: null }, taken), '')
  t.match(told(create, create), /F34: 2 orders were made under N/)
  t.match(told(taken), /F34: nobody got N, which was refused to 0/)
  t.match(told({ ...create, outcome: 'fail' }, taken), /F34: nobody got N/)
  t.match(told(create, { ...taken, answer: '404' }), /F34: operation 1/)
  t.end()
})

t.test('K5: the index', (t) => {
  const one = end(['a', 'b'])
  t.same(checkIndex(one, end(['a', 'b']), { orders: 1, lines: 2 }), [])
  t.same(checkIndex(end(null), new Map(), { orders: 0, lines: 0 }), [])
  t.match(checkIndex(one, end(['a']), { orders: 1, lines: 2 }).join(), /K5: N is .*, the graph/)
  t.match(checkIndex(one, end(null), { orders: 1, lines: 2 }).join(), /the graph shows not there/)
  t.match(checkIndex(end(null), one, { orders: 0, lines: 0 }).join(), /K5: N is not there/)
  t.match(checkIndex(one, one, { orders: 2, lines: 2 }).join(), /1 orders, the graph has 2/)
  t.match(checkIndex(one, one, { orders: 1, lines: 3 }).join(), /2 lines, the graph has 3/)
  t.end()
})

t.test('a token says where its write stands', (t) => {
  const tokens = consistencyTokens({ format: 1, generation: 'g', shards: 32, secret: 's' })
  t.same(positionOf(tokens.encode([{ shard: 7, offset: 123 }])), { shard: 7, offset: 123 })
  t.same(positionOf(tokens.encode([{ shard: -1, offset: 4 }])), { shard: -1, offset: 4 })
  t.equal(positionOf('garbage'), null)
  t.end()
})
