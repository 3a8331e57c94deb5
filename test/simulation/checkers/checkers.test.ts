// Every checker with a history that it must let pass, and with one for each thing that it must
// find.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { Engine } from '../engines/engine.ts'
import { KIND } from '../nastiness.ts'
import { Scheduler } from '../scheduler/scheduler.ts'
import { LEDGER, OPEN, OPENED, READ, append, appended, done, entry } from '../testing/scene.ts'
import { historyOf, logOf, putRow, rejected, rowsOf, shown } from '../testing/scene.ts'
import { Trace } from '../scheduler/trace.ts'
import type { AppliedRow } from '../witness.ts'
import { foldLog } from './fold.ts'
import { checkKeyRows, checkKeys } from './keys.ts'
import { checkLinearizable } from './linearizable.ts'
import { checkMismatches } from './mismatches.ts'
import { checkOrder } from './order.ts'
import { checkStore } from './store.ts'
import { AT_LAST, checkBatches, checkLastReads, checkRelays } from './tokens.ts'
import { checkTokens, placesOf } from './tokens.ts'

const A = append('a')
const B = append('b')
const PLACES = placesOf(logOf(entry(1, 0, [OPENED]), entry(2, 1, [appended('a')])))

t.test('K1: a token that was acknowledged is there', async (t) => {
  const ok = historyOf({ messages: [A], at: [0, 1], results: [done('append', 1)] })
  t.strictSame(checkTokens(ok, PLACES), [])
  const lost = historyOf({ messages: [B], at: [0, 1], results: [done('append', 1)] })
  t.match(checkTokens(lost, PLACES).join(), /K1: b of operation 0 was acknowledged and is lost/)
})

t.test('K1: what failed, was rejected or previewed is not there', async (t) => {
  const failed = historyOf({ messages: [A], at: [0, 1], outcome: 'fail', results: [null] })
  t.match(checkTokens(failed, PLACES).join(), /K1: a of operation 0 is there.*fail/)
  const no = rejected('append', 'INVALID_STATE', 'no')
  const refused = historyOf({ messages: [A], at: [0, 1], results: [no] })
  t.match(checkTokens(refused, PLACES).join(), /K1: a of operation 0 is there.*rejected/)
  const results = [done('append', 1)]
  const preview = historyOf({ messages: [A], at: [0, 1], preview: true, results })
  t.match(checkTokens(preview, PLACES).join(), /K1: a of operation 0 is there.*preview/)
})

t.test('K1: what nobody knows of may be there, once', async (t) => {
  const info = historyOf({ messages: [A], at: [0, 1], outcome: 'info', results: [null] })
  t.strictSame(checkTokens(info, PLACES), [])
  t.strictSame(checkTokens(info, new Map()), [])
  const twice = new Map([['a', [LEDGER, LEDGER]]])
  t.match(checkTokens(info, twice).join(), /K1: a is there 2 times/)
  t.match(checkTokens(historyOf(), PLACES).join(), /nobody has ever sent a/)
  const ok = historyOf({ messages: [A], at: [0, 1], results: [done('append', 1)] })
  t.match(
    checkTokens(ok, new Map([['a', ['another']]])).join(),
    /K1: a of operation 0 is in another/,
  )
})

t.test('K9: a batch is there whole or not at all', async (t) => {
  const batch = append('a', { marks: 3 })
  const history = historyOf({ messages: [batch], at: [0, 1], outcome: 'info', results: [null] })
  const parts = new Map([['a.0', [LEDGER]]])
  t.match(checkTokens(history, parts).join(), /K9: of the batch a.0,a.1,a.2 only a.0/)
  const reading = (...tokens: string[]) =>
    historyOf(
      { messages: [batch], at: [0, 1], outcome: 'info', results: [null] },
      { messages: [READ], at: [2, 3], results: [shown(...tokens)] },
    )
  t.strictSame(checkBatches(reading('x', 'a.0', 'a.1', 'a.2', 'y')), [])
  t.strictSame(checkBatches(reading('x')), [])
  t.match(checkBatches(reading('x', 'a.0', 'a.1')).join(), /K9: operation 1 .* batch a in parts/)
  t.match(checkBatches(reading('a.0', 'x', 'a.1', 'a.2')).join(), /K9/)
})

t.test('K1: what is sent on comes there once', async (t) => {
  const effect = { to: { type: 'ledger', id: LEDGER }, messages: [A] }
  const sent = entry(2, 1, [appended('a')], { e: [effect] })
  const taken = entry(3, 2, [appended('b')], { s: [0, 2, 0] })
  t.strictSame(checkRelays(logOf(entry(1, 0, [OPENED]), sent, taken)), [])
  t.match(
    checkRelays(logOf(entry(1, 0, [OPENED]), sent)).join(),
    /of the 1 messages of effect 0\/2\/0 0 were taken/,
  )
  const again = { ...taken, n: 4, v: 3 }
  const twice = checkRelays(logOf(entry(1, 0, [OPENED]), sent, taken, again))
  t.match(twice.join(), /of the 1 messages of effect 0\/2\/0 2 were taken/)
  const phantom = entry(2, 1, [appended('b')], { s: [3, 9, 0] })
  const never = checkRelays(logOf(entry(1, 0, [OPENED]), phantom))
  t.match(never.join(), /what 0\/2 took of 3\/9\/0 was never sent/)
})

t.test('K1: all messages of one effect come, and by a number perhaps none', async (t) => {
  const opened = entry(1, 0, [OPENED])
  const taken = entry(3, 2, [appended('b')], { s: [0, 2, 0] })
  const to = (address: object) => {
    const effect = { to: { type: 'ledger', ...address }, messages: [A, B] }
    return entry(2, 1, [appended('a')], { e: [effect] })
  }
  const half = checkRelays(logOf(opened, to({ id: LEDGER }), taken))
  t.match(half.join(), /of the 2 messages of effect 0\/2\/0 1 were taken/)
  t.strictSame(checkRelays(logOf(opened, to({ key: 'N7' }))), [])
  t.match(checkRelays(logOf(opened, to({ key: 'N7' }), taken)).join(), /1 were taken/)
})

t.test('K1: what is read at last is what the log says', async (t) => {
  const log = logOf(
    entry(1, 0, [OPENED]),
    entry(2, 1, [appended('a')]),
    entry(3, 2, [appended('b')]),
  )
  const read = (...tokens: string[]) => {
    const attempts = [{ member: 'a', sentMs: 0, reply: null }]
    const told = { messages: [READ], results: [shown(...tokens)], client: AT_LAST, attempts }
    return historyOf({ ...told, at: [0, 1] })
  }
  t.strictSame(checkLastReads(read('a', 'b'), log), [])
  t.match(checkLastReads(read('a'), log).join(), /shows 1 tokens of 2: a, not a,b/)
})

t.test('K2: nobody is refused for a body that somebody else has sent', async (t) => {
  const no = rejected('append', 'IDEMPOTENCY_MISMATCH', 'another body')
  const reply = { outcome: 'answered', actorId: LEDGER, keys: [], results: [no], position: null }
  const attempts = [{ member: 'a', sentMs: 0, reply: reply as never }]
  const refused = { messages: [A], at: [2, 3] as const, key: 'k', results: [no], attempts }
  const first = { messages: [B], at: [0, 1] as const, key: 'k', results: [done('append', 1)] }
  t.strictSame(checkMismatches(historyOf(first, refused)), [])
  t.match(checkMismatches(historyOf({ ...first, client: 'other' }, refused)).join(), /nobody has/)
  t.match(checkMismatches(historyOf({ ...first, key: 'l' }, refused)).join(), /nobody has sent/)
})

t.test('K4: what a number leads to has it', async (t) => {
  const log = logOf(entry(1, 0, [OPENED]))
  const engine = engineWith(rowsOf([]))
  const claim = { actorId: LEDGER, messageId: 'm', confirmed: true, clock: 0 }
  const put = (key: string, claims: readonly (typeof claim)[]): void =>
    putRow(engine, { kind: 'alias', offset: 1, row: { keyType: 'ledger', key, claims } })
  put('N1', [claim])
  put('N2', [{ ...claim, confirmed: false }])
  put('N3', [])
  t.strictSame(checkKeyRows(engine, log), [])
  put('N4', [claim])
  t.match(checkKeyRows(engine, log).join(), /the number N4 leads to .*, whose number is N1/)
})

t.test('K2: places in the log agree with time and with what was answered', async (t) => {
  const log = logOf(
    entry(1, 0, [OPENED]),
    entry(2, 1, [appended('a')], { a: done('append', 1) }),
    entry(3, 2, [appended('b')], { a: done('append', 2) }),
  )
  const at = (offset: number) => ({ position: { shard: 0, offset } })
  const one = { messages: [A], results: [done('append', 1)], ...at(2) }
  const two = { messages: [B], results: [done('append', 2)], ...at(3) }
  t.strictSame(checkOrder(historyOf({ ...one, at: [0, 1] }, { ...two, at: [2, 3] }), log), [])
  const turned = checkOrder(historyOf({ ...one, at: [2, 3] }, { ...two, at: [0, 1] }), log)
  t.match(turned.join(), /K2: operation 1 had returned before 0 was invoked/)
  const shared = checkOrder(historyOf({ ...one, at: [0, 5] }, { ...one, at: [0, 5] }), log)
  t.match(shared.join(), /K2: operations 0 and 1 stand in one place/)
  const nowhere = checkOrder(historyOf({ ...one, ...at(9), at: [0, 1] }), log)
  t.match(nowhere.join(), /K2: operation 0 at 0\/9 is not in the log/)
  const otherwise = { ...one, results: [done('append', 7)] }
  t.match(checkOrder(historyOf({ ...otherwise, at: [0, 1] }), log).join(), /K2: .* was answered/)
  const repeated = historyOf({ ...one, at: [0, 1], otherReplies: ['message 0: {}'] })
  t.match(checkOrder(repeated, log).join(), /K2: operation 0 was answered otherwise when repeated/)
})

t.test(
  'K2: an answer that the state does not allow is found, though it was recorded',
  async (t) => {
    const log = logOf(entry(1, 0, [OPENED]), entry(2, 1, [appended('a')], { a: done('append', 5) }))
    const position = { shard: 0, offset: 2 }
    const told = historyOf({ messages: [A], at: [0, 1], results: [done('append', 5)], position })
    t.match(checkOrder(told, log).join(), /K2: .* was answered .*5.*, not .*1/)
  },
)

t.test('K2: a message was given up before it came, under a key that is used again', async (t) => {
  const no = rejected('!void', 'VOID', 'too late')
  const log = logOf(
    entry(1, 0, [OPENED]),
    entry(2, 1, [], { a: no }),
    entry(3, 1, [appended('b')], { a: done('append', 1) }),
  )
  const b = { messages: [B], at: [0, 1] as const, results: [done('append', 1)] }
  const late = { messages: [A], at: [2, 3] as const, results: [no] }
  const at = (offset: number) => ({ position: { shard: 0, offset } })
  t.strictSame(checkOrder(historyOf({ ...b, ...at(3) }, { ...late, ...at(2) }), log), [])
  t.match(
    checkOrder(historyOf({ ...b, ...at(3) }, { ...late, ...at(3) }), log).join(),
    /K2: operation 1 at 0\/3 was answered .*VOID.*, recorded/,
  )
})

t.test('K2: a message that was given up is told so, whatever the state is', async (t) => {
  const no = rejected('append', 'POISONED', 'each time its process ended')
  const at = (offset: number) => ({ position: { shard: 0, offset } })
  const told = { messages: [A], at: [2, 3] as const, results: [no] }
  for (const records of [[OPENED], []]) {
    const log = logOf(entry(1, 0, records), entry(2, records.length, [], { a: no }))
    t.strictSame(checkOrder(historyOf({ ...told, ...at(2) }), log), [])
    t.match(
      checkOrder(historyOf({ ...told, ...at(1) }), log).join(),
      /K2: operation 0 at 0\/1 was answered .*POISONED.*, recorded/,
    )
  }
})

t.test('K3: an order that agrees with time explains every answer', async (t) => {
  const opened = { messages: [OPEN], at: [0, 1] as const, results: [done('open', {})] }
  const a = { messages: [A], results: [done('append', 1)] }
  const b = { messages: [B], results: [done('append', 2)] }
  const fine = historyOf(
    opened,
    { ...b, at: [2, 9] },
    { ...a, at: [3, 4] },
    { messages: [READ], at: [5, 6], results: [shown('a')] },
    { messages: [READ], at: [10, 11], results: [shown('a', 'b')] },
  )
  t.strictSame(checkLinearizable(fine), [])
  const early = historyOf(opened, { ...b, at: [2, 3] }, { ...a, at: [4, 5] })
  t.match(checkLinearizable(early).join(), /K3: .* no order explains/)
  const stale = historyOf(
    opened,
    { ...a, at: [2, 3] },
    { messages: [READ], at: [4, 5], results: [shown()] },
  )
  t.match(checkLinearizable(stale).join(), /K3: .* no order explains/)
  const back = historyOf(
    opened,
    { ...a, at: [2, 20] },
    { messages: [READ], at: [4, 5], results: [shown('a')] },
    { messages: [READ], at: [6, 7], results: [shown()] },
  )
  t.match(checkLinearizable(back).join(), /K3: .* no order explains/)
})

t.test('K3: what nobody was shown may have happened all the same', async (t) => {
  const opened = { messages: [OPEN], at: [0, 1] as const, results: [done('open', {})] }
  const unknown = { messages: [A], at: [2, 3] as const, outcome: 'info' as const, results: [null] }
  const counted = { messages: [B], at: [4, 5] as const, results: [done('append', 2)] }
  t.strictSame(checkLinearizable(historyOf(opened, unknown, counted)), [])
  const read = { messages: [READ], at: [6, 7] as const, results: [shown('b')] }
  const gone = checkLinearizable(historyOf(opened, unknown, counted, read))
  t.match(gone.join(), /K3: .* no order explains/)
})

t.test('K3: what nobody knows of may have happened at any later time, or never', async (t) => {
  const opened = { messages: [OPEN], at: [0, 1] as const, results: [done('open', {})] }
  const unknown = { messages: [A], at: [2, 3] as const, outcome: 'info' as const, results: [null] }
  const seen = (at: readonly [number, number], ...tokens: string[]) => ({
    messages: [READ],
    at,
    results: [shown(...tokens)],
  })
  t.strictSame(checkLinearizable(historyOf(opened, unknown, seen([4, 5]))), [])
  const later = historyOf(opened, unknown, seen([4, 5]), seen([6, 7], 'a'))
  t.strictSame(checkLinearizable(later), [])
  const gone = historyOf(opened, unknown, seen([4, 5], 'a'), seen([6, 7]))
  t.match(checkLinearizable(gone).join(), /K3/)
})

t.test('K3: of two messages whose answers were lost the second alone took effect', async (t) => {
  // The first was too large, which leaves no entry.
  const both = { messages: [A, B], at: [4, 5] as const, outcome: 'info' as const }
  const unknown = { ...both, results: [null, null] }
  const opened = { messages: [OPEN], at: [2, 3] as const, results: [done('open', {})] }
  const read = { messages: [READ], at: [6, 7] as const, results: [shown('b')] }
  t.strictSame(checkLinearizable(historyOf(opened, unknown, read)), [])
  const refused = rejected('delete', 'NOT_FOUND', 'is not open')
  const early = {
    messages: [{ type: 'delete', body: {} }],
    at: [0, 1] as const,
    results: [refused],
  }
  t.strictSame(checkLinearizable(historyOf(early, opened, unknown, read)), [])
})

t.test('K3: an opening without a token, of which nobody knows, brings none', async (t) => {
  const unknown = {
    messages: [OPEN],
    at: [0, 1] as const,
    outcome: 'info' as const,
    results: [null],
  }
  const history = historyOf(
    unknown,
    { messages: [A], at: [2, 3], results: [done('append', 1)] },
    { messages: [READ], at: [4, 5], results: [shown('a')] },
  )
  t.strictSame(checkLinearizable(history), [])
})

t.test('K3: reads that show different orders can not both be', async (t) => {
  const opened = { messages: [OPEN], at: [0, 1] as const, results: [done('open', {})] }
  const unknown = (token: string) => ({
    messages: [append(token)],
    at: [2, 3] as const,
    outcome: 'info' as const,
    results: [null],
  })
  const history = historyOf(
    opened,
    unknown('a'),
    unknown('b'),
    { messages: [READ], at: [4, 5], results: [shown('a', 'b')] },
    { messages: [READ], at: [4, 5], results: [shown('b')] },
  )
  t.match(checkLinearizable(history).join(), /K3: .* show different orders/)
})

function engineWith(rows: Map<number, AppliedRow[]>): Engine {
  const engine = new Engine(new Scheduler(1, new Trace()), 4, KIND)
  for (const [shard, list] of rows) engine.witness.rows.set(shard, list)
  return engine
}

const ENTRIES = [entry(1, 0, [OPENED]), entry(2, 1, [appended('a')]), entry(3, 2, [appended('b')])]

function auditOf(rows: Map<number, AppliedRow[]>): string {
  return checkStore(engineWith(rows), foldLog(rows)).join('\n')
}

t.test('K4: the log is one dense chain of owners whose epochs never fall', async (t) => {
  t.equal(auditOf(rowsOf(ENTRIES)), '')
  t.match(auditOf(rowsOf(ENTRIES, (_, i) => (i === 2 ? { offset: 4 } : {}))), /begins behind 3/)
  t.match(auditOf(rowsOf(ENTRIES, (_, i) => (i === 2 ? { offset: 2 } : {}))), /begins behind 1/)
  t.match(auditOf(rowsOf(ENTRIES, (_, i) => ({ epoch: 9 - i }))), /has epoch 8 after 9/)
  t.match(auditOf(rowsOf(ENTRIES, () => ({ commitId: 'one' }))), /was committed before/)
  t.match(auditOf(rowsOf(ENTRIES, (_, i) => ({ segment: 3 - i }))), /is in segment 2, not 3/)
})

t.test("K4: a shard's clock never falls", async (t) => {
  const clocks = (...cs: number[]) => rowsOf(ENTRIES.map((one, i) => ({ ...one, c: cs[i]! })))
  t.equal(auditOf(clocks(1, 1, 7)), '')
  t.match(auditOf(clocks(1, 9, 7)), /its clock falls from 9 to 7 at 3/)
})

t.test('K4: a segment begins where the one before it was sealed', async (t) => {
  const engine = engineWith(rowsOf([]))
  await engine.segments.open({ shard: 0, segment: 2 }, { epoch: 1, head: 0 })
  t.match(checkStore(engine, logOf()).join(), /0\/2 was opened over one that is not sealed/)
  await engine.segments.seal({ shard: 0, segment: 1 }, { epoch: 0, head: 0 })
  t.strictSame(checkStore(engine, logOf()), [])
  await engine.segments.seal({ shard: 1, segment: 1 }, { epoch: 0, head: 0 })
  await engine.segments.open({ shard: 1, segment: 2 }, { epoch: 1, head: 7 })
  t.match(checkStore(engine, logOf()).join(), /1\/2 begins at 7, the one before ends at 0/)
})

t.test('K4: an actor has dense versions, and each message once', async (t) => {
  const [first, second, third] = ENTRIES as [
    (typeof ENTRIES)[0],
    (typeof ENTRIES)[0],
    (typeof ENTRIES)[0],
  ]
  t.match(auditOf(rowsOf([first, third])), /has number 3, not 2/)
  t.match(auditOf(rowsOf([first, { ...second, v: 5 }])), /is on version 5, not 1/)
  t.match(auditOf(rowsOf([first, second, { ...third, m: second.m }])), /repeats the message/)
  const key = { m: 'key', l: 1 } as const
  const again = (clock: number, atMs: number): string => {
    const rows = [first, { ...second, ...key }, { ...third, ...key, c: clock }]
    return auditOf(rowsOf(rows, (_, i) => ({ atMs: i === 2 ? atMs : 0 })))
  }
  const { callerMarkMs: lifeMs } = LIMITS.storage
  t.match(again(lifeMs - 1, lifeMs), /repeats the message/)
  t.equal(again(lifeMs, lifeMs), '', 'its life is over')
  t.match(auditOf(rowsOf([entry(1, 0, [appended('a')])])), /can't be folded/)
})

t.test('K4: the rows of an actor are what the log says', async (t) => {
  const rows = rowsOf(ENTRIES)
  const log = foldLog(rows)
  const engine = engineWith(rows)
  const put = (n: number, offset: number, i: number): void => {
    const { bytes } = log.actors.get(LEDGER)!.entries[i]!
    putRow(engine, { kind: 'entry', actorId: LEDGER, n, offset, body: bytes })
  }
  put(1, 1, 0)
  putRow(engine, { kind: 'consumer', consumer: 'flush', offset: 1 })
  t.strictSame(checkStore(engine, log), [])
  putRow(engine, { kind: 'consumer', consumer: 'flush', offset: 2 })
  t.match(checkStore(engine, log).join(), /entry 2 .* is not among its rows, flush is 2/)
  put(2, 3, 2)
  t.match(checkStore(engine, log).join(), /entry 2 .* stands there as message-/)
  put(2, 4, 1)
  put(7, 9, 0)
  t.match(checkStore(engine, log).join(), /entry 7 .* is in no log/)
})

t.test('K4: a number leads to the one ledger that has it', async (t) => {
  const log = logOf(entry(1, 0, [OPENED]))
  const engine = engineWith(rowsOf([]))
  t.match(checkKeys(engine, log).join(), /the number N1 leads to null/)
  const claim = { actorId: LEDGER, messageId: 'm', confirmed: true, clock: 0 }
  const alias = { keyType: 'ledger', key: 'N1', claims: [claim] }
  putRow(engine, { kind: 'alias', offset: 1, row: alias })
  t.strictSame(checkKeys(engine, log), [])
  const other = { ...OPENED, id: 'other' }
  const two = logOf(entry(1, 0, [OPENED]), entry(1, 0, [other], { p: 'other' }))
  t.match(checkKeys(engine, two).join(), /the number N1 is held by/)
})
