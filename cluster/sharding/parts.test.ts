// The small parts of a shard, each against its rule: gate, marks, keys.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import type { Entry } from '../../protocol/entry/entry.ts'
import { errorItem } from '../../protocol/errors.ts'
import type { WireReply } from '../../protocol/message.ts'
import { memoryJournal } from '../../storage/memory/journal.ts'
import { OutputGate } from './commit/output-gate.ts'
import type { OpenEntry } from './commit/output-gate.ts'
import { KeyTable, holderOf, idOf } from './keys/keys.ts'
import { Marks, fewestToSpill, markOf } from './turn/marks.ts'
import type { Mark } from './turn/marks.ts'

const ENTRY: Entry = {
  y: 'ledger',
  p: 'a',
  v: 0,
  n: 1,
  r: [],
  m: 'm',
  l: 0,
  a: { type: 'x', success: true },
  t: 0,
  c: 0,
  b: 'me',
}

function open(offset: number, size = 10): OpenEntry {
  return {
    entry: ENTRY,
    bytes: new Uint8Array(size),
    offset,
    activation: null,
    aliases: [],
    spilled: [],
    snapshot: null,
    waiters: null,
    state: undefined,
    stateBytes: 0,
  }
}

t.test(
  'gate: an answer leaves when its entry is committed, not before, and only once',
  async (t) => {
    const gate = new OutputGate(5)
    const out: string[] = []
    gate.join(open(6))
    gate.join(open(7))
    gate.wait(5, () => out.push('5'))
    gate.wait(6, (lost) => out.push(lost ? 'lost' : '6'))
    t.same(out, ['5'])
    t.equal(gate.take().length, 2)
    gate.join(open(8))
    gate.wait(8, (lost) => out.push(lost ? 'lost' : '8'))
    t.same(out, ['5'])
    gate.committed()
    t.same(out, ['5'])
    gate.release()
    t.same(out, ['5', '6'])
    t.equal(gate.head, 7)
    gate.drop({ outcome: 'moved', shard: 0 } satisfies WireReply)
    t.same(out, ['5', '6', 'lost'])
    t.equal(gate.newest, 7)
  },
)

t.test('gate: groups keep to their bounds, a larger entry goes alone', async (t) => {
  const gate = new OutputGate(0)
  for (let i = 1; i <= LIMITS.storage.groupEntriesMax + 1; i++) gate.join(open(i))
  t.equal(gate.take().length, LIMITS.storage.groupEntriesMax)
  gate.committed()
  gate.join(open(gate.newest + 1, LIMITS.storage.groupBytesMax * 2))
  t.equal(gate.take().length, 1)
  gate.committed()
  t.equal(gate.take().length, 1, 'the large one')
})

function mark(n: number, clock: number, bytes = 100, kind: 0 | 1 = 1): Mark {
  const result = { type: 'x', success: true as const }
  return { messageId: `m${n}`, kind, bodyHash: '', result, n, offset: n, clock, keys: [], bytes }
}

t.test('marks: the window is bounded, what leaves it early is handed out', async (t) => {
  const marks = new Marks()
  const spilled: Mark[] = []
  for (let n = 0; n < 2_500; n++) spilled.push(...marks.add(mark(n, n)))
  t.equal(marks.size, LIMITS.sharding.marksMax)
  t.equal(spilled.length, 1_500)
  t.equal(marks.find('m2499', 2_500)?.n, 2_499)
  t.equal(marks.find('m10', 2_500), null)
  t.ok(marks.spilled)
  for (let n = 0; n < 10; n++) marks.add(mark(9_000 + n, 2_500, LIMITS.sharding.marksBytesMax / 4))
  t.ok(marks.size <= 4)
})

function largest(n: number): Mark {
  const errors = [errorItem('INVALID_STATE', 'x')]
  const spare = LIMITS.sharding.markAnswerBytesMax - JSON.stringify(errors).length
  errors[0] = errorItem('INVALID_STATE', 'x'.repeat(1 + spare))
  const base = { y: 'ledger', p: 'a', v: 0, r: [], l: 1, t: 0, c: 0, b: 'x' } as const
  const a = { type: 'append', success: false, errors } as const
  return markOf({ ...base, n, m: `m${n}`, a }, n, [
    'k'.repeat(LIMITS.sharding.markKeysBytesMax - 4),
  ])
}

t.test('marks: as few as are said can fill the window, and no fewer', async (t) => {
  const marks = new Marks()
  const few = fewestToSpill()
  for (let n = 1; n < few; n++) t.same(marks.add(largest(n)), [])
  t.same(
    marks.add(largest(few)).map((mark) => mark.n),
    [1],
  )
})

t.test('marks: a mark weighs what a snapshot holds of it, in bytes', async (t) => {
  const base = { y: 'ledger', p: 'a', v: 9e6, r: [], l: 1, t: 0, c: 9e9, b: 'x' } as const
  const h = 'f'.repeat(64)
  const m = `${'f'.repeat(32)}#999`
  for (const text of ['x', 'ж', '漢', '😀', '"', '\u0001'].map((c) => c.repeat(120))) {
    const a = { type: 'applyCommands', success: true, data: { text } } as const
    const mark = markOf({ ...base, n: 9e6, m, h, a }, 9e12, [text.slice(0, 60)])
    t.ok(mark.bytes >= Buffer.byteLength(JSON.stringify(mark)), text.slice(0, 2))
  }
  const long = {
    type: 'x',
    success: true,
    data: 'ж'.repeat(LIMITS.sharding.markAnswerBytesMax / 2),
  } as const
  t.equal(markOf({ ...base, n: 1, m, a: long }, 1, []).result, null, 'read from its entry')
  const keys = ['ж'.repeat(LIMITS.sharding.markKeysBytesMax)]
  t.same(markOf({ ...base, n: 1, m, a: { type: 'x', success: true } }, 1, keys).keys, [])
})

t.test('marks: each kind lives as long as it must', async (t) => {
  const marks = new Marks()
  marks.add(mark(1, 0, 100, 0))
  marks.add(mark(2, 0, 100, 1))
  t.ok(marks.find('m1', LIMITS.storage.edgeMarkMs - 1))
  t.equal(marks.find('m1', LIMITS.storage.edgeMarkMs), null)
  t.ok(marks.find('m2', LIMITS.storage.callerMarkMs - 1))
  t.equal(marks.find('m2', LIMITS.storage.callerMarkMs), null)
})

t.test('keys: newest row first, dropped entries never happened', async (t) => {
  const journal = memoryJournal({ shards: 1, generation: 'g' })
  const keys = new KeyTable(journal.derived)
  const id = idOf('order', 'A')
  const take = (offset: number, actorId: string): void => {
    const entry = {
      ...ENTRY,
      k: [{ keyType: 'order', key: 'A', change: 'take' as const, actorId }],
    }
    keys.apply(entry, offset, new Map([[id, null]]))
  }
  take(1, 'first')
  take(2, 'second')
  const holder = async (): Promise<string | undefined> =>
    holderOf(await keys.lookup('order', 'A', (row) => row), 0)?.actorId
  t.equal(await holder(), 'second')
  keys.dropAbove(1)
  t.equal(await holder(), 'first')
  keys.dropAbove(0)
  t.equal(await holder(), undefined)
})

t.test('keys: a create is forgotten after a day, a number never', async (t) => {
  const claims = [{ actorId: 'a', messageId: 'm', confirmed: true, clock: 0 }]
  const late = LIMITS.storage.callerMarkMs
  t.equal(holderOf({ keyType: 'order!key', key: 'k', claims }, late), null)
  t.equal(holderOf({ keyType: 'order', key: 'k', claims }, late)?.actorId, 'a')
})
