// The audit of a shard's entries finds a relayed message that was taken twice. Source: PROTOCOL 3.6
// "Outbox", 4.1 (K4).

import t from 'tap'
import { LIMITS } from '../config/limits.ts'
import { decodeEntry, encodeEntry, ERASED_ENTRY, LOSS_JUMP } from '../protocol/entry/entry.ts'
import type { Entry } from '../protocol/entry/entry.ts'
import { EntryAudit } from './entry-audit.ts'

/** What the audit says of an actor that has taken these, one after the other. */
function saysOf(...relays: readonly Entry['s'][]): string[] {
  const said: string[] = []
  const audit = new EntryAudit((what) => said.push(what))
  for (const [i, s] of relays.entries()) {
    const a = { type: 'append', success: false, errors: [] } as Entry['a']
    const entry = {
      y: 'ledger',
      p: 'actor',
      v: 0,
      n: i + 1,
      r: [],
      m: `m${i}`,
      l: 0,
      a,
      t: 0,
      c: i,
    }
    audit.next(i + 1, { ...entry, b: 'x', ...(s && { s }) } as Entry)
  }
  return said
}

t.test('a relayed message comes once', (t) => {
  t.same(saysOf([7, 1, 0], [7, 1, 1], [7, 2, 0], [8, 1, 0]), [])
  t.same(saysOf([7, 1, 0, 0], [7, 1, 0, 1], [7, 1, 0, 2]), [], 'messages of one effect')
  t.match(saysOf([7, 1, 0], [7, 1, 0]).join(), /shard 7 relayed from offset 1 came twice/)
  t.match(saysOf([7, 1, 0, 1], [7, 1, 0, 1]).join(), /came twice/)
  t.match(saysOf([7, 2, 0], [7, 1, 5]).join(), /came twice/)
  t.match(saysOf([7, 2, 1], [7, 2, 0]).join(), /came twice/)
  t.end()
})

t.test('no other entry has the number of one with records', (t) => {
  const says = (...entries: readonly (readonly [n: number, v: number, records: number])[]) => {
    const said: string[] = []
    const audit = new EntryAudit((what) => said.push(what))
    for (const [i, [n, v, records]] of entries.entries()) {
      const r = Array.from({ length: records }, () => ({ t: 'appended' }))
      const a = { type: 'append', success: true } as Entry['a']
      const fixed = { y: 'ledger', p: 'actor', l: 0, t: 0, b: 'x' } as const
      audit.next(i + 1, { ...fixed, v, n, r, m: `m${i}`, a, c: i })
    }
    return said
  }
  t.same(says([1, 0, 1], [2, 1, 0], [2, 1, 1], [3, 2, 0]), [], 'that of a refusal may be')
  t.match(says([1, 0, 1], [1, 1, 1]).join(), /entry 1 behind 1/)
  t.match(says([1, 0, 1], [2, 1, 1], [3, 2, 0], [2, 2, 1]).join(), /entry 2 behind 3/)
  t.end()
})

t.test('an id may come again when its time is over, not a moment before', async (t) => {
  const says = (kind: 0 | 1, c: number) => {
    const said: string[] = []
    const audit = new EntryAudit((what) => said.push(what))
    const fixed = { y: 'ledger', p: 'actor', v: 0, r: [], m: 'm', l: kind, t: 0, b: 'x' } as const
    const a = { type: 'append', success: false, errors: [] } as Entry['a']
    audit.next(1, { ...fixed, n: 1, a, c: 5 })
    audit.next(2, { ...fixed, n: 2, a, c })
    return said.join()
  }
  for (const [kind, markTtlMs] of [
    [0, LIMITS.storage.edgeMarkMs],
    [1, LIMITS.storage.callerMarkMs],
  ] as const) {
    t.match(says(kind, 5 + markTtlMs - 1), /message m was taken at 1 already/)
    t.equal(says(kind, 5 + markTtlMs), '')
  }
})

t.test('behind an accepted loss versions go on higher, by an entry without records, too', (t) => {
  const saysAt = (version: number): string => {
    const said: string[] = []
    const audit = new EntryAudit((what) => said.push(what))
    const fixed = { y: 'ledger', p: 'actor', l: 0, t: 0, c: 0, b: 'x' } as const
    const a = { type: 'append', success: true } as Entry['a']
    for (const [n, v, records] of [
      [1, 0, 1],
      [2 + LOSS_JUMP, 1 + LOSS_JUMP, 0],
      [3 + LOSS_JUMP, version, 1],
    ] as const) {
      const r = Array.from({ length: records }, () => ({ t: 'appended' }))
      audit.next(n, { ...fixed, v, n, r, m: `m${n}`, a })
    }
    return said.join()
  }
  t.equal(saysAt(1 + LOSS_JUMP), '')
  t.match(saysAt(1), /goes on from version 1, .*left out/)
  t.end()
})

t.test('numbers leave out as many as were given back, and no more', (t) => {
  const says = (n: number, erased: number): string => {
    const said: string[] = []
    const audit = new EntryAudit((what) => said.push(what))
    const a = { type: 'append', success: true, data: null } as Entry['a']
    const entry = { y: 'ledger', p: 'actor', r: ['r'], l: 0, a, t: 0, c: 0, b: 'x' }
    audit.next(1, { ...entry, n: 1, v: 0, m: 'a' } as unknown as Entry)
    for (let i = 0; i < erased; i++) audit.next(2 + i, decodeEntry(Buffer.from(ERASED_ENTRY)))
    audit.next(2 + erased, { ...entry, n, v: 1, m: 'b' } as unknown as Entry)
    return said.join()
  }
  t.equal(says(2, 0), '')
  t.equal(says(2, 3), '', 'they were those of others')
  t.equal(says(5, 3), '')
  t.match(says(6, 3), /entry 6 behind 1/)
  t.match(says(3, 0), /entry 3 behind 1/)
  t.end()
})

t.test("the shard's clock never falls, by whichever entry it is told", (t) => {
  const says = (...entries: readonly (readonly [n: number, c: number])[]): string[] => {
    const said: string[] = []
    const audit = new EntryAudit((what) => said.push(what))
    const a = { type: 'append', success: true } as Entry['a']
    for (const [i, [n, c]] of entries.entries()) {
      const fixed = { y: 'ledger', p: 'actor', l: 0, t: 0, b: 'x' } as const
      // An entry of a key alone has no number, and no version.
      const r = n === 0 ? [] : [{ t: 'appended' }]
      audit.next(i + 1, { ...fixed, v: Math.max(0, n - 1), n, r, m: `m${i}`, a, c })
    }
    return said
  }
  t.same(says([1, 5], [2, 5], [0, 7], [3, 7]), [])
  t.same(says([1, 5], [2, 4]), ["offset 2: the shard's clock falls from 5 to 4"])
  t.same(says([1, 5], [0, 9], [2, 8], [3, 8]), [
    "offset 3: the shard's clock falls from 9 to 8",
    "offset 4: the shard's clock falls from 9 to 8",
  ])
  t.same(says([0, 5], [0, 4]), ["offset 2: the shard's clock falls from 5 to 4"])
  t.end()
})

t.test('of many messages those are forgotten whose time is over, and no others', (t) => {
  const said: string[] = []
  const audit = new EntryAudit((what) => said.push(what))
  const a = { type: 'append', success: true } as Entry['a']
  let offset = 0
  const take = (m: string, c: number): void => {
    const n = ++offset
    const fixed = { y: 'ledger', p: 'actor', l: 0, t: 0, b: 'x' } as const
    audit.next(n, { ...fixed, v: n - 1, n, r: [{ t: 'appended' }], m, a, c })
  }
  const lateMs = LIMITS.storage.edgeMarkMs
  take('early', 0)
  take('kept', 1)
  for (let i = 0; i < 110_000; i++) take(`m${i}`, 2)
  take('early', lateMs)
  t.same(said, [])
  take('kept', lateMs)
  t.match(said, [/message kept was taken at 2 already/])
  take('m7', lateMs)
  t.match(said[1], /message m7 was taken at 10 already/)
  t.end()
})

t.test('before the end of an actor that is forgotten nothing is missed', (t) => {
  for (const [what, ends, expected] of [
    ['it ends', true, 0],
    ['it does not', false, 1],
  ] as const) {
    const said: string[] = []
    const audit = new EntryAudit((line) => said.push(line))
    const entry = (n: number, more: Partial<Entry> = {}) =>
      decodeEntry(
        encodeEntry({
          ...{ y: 'x', p: 'a1b2c3d4-0000-7000-8000-00000000000a', v: n - 1, n, r: [{ t: 'x' }] },
          ...{ m: `m${n}`, l: 0, a: { type: 'x', success: true }, t: 0, c: 0, b: 'x', ...more },
        }),
      )
    audit.next(1, entry(1))
    audit.next(2, decodeEntry(ERASED_ENTRY))
    audit.next(3, entry(3))
    audit.next(4, entry(4, ends ? { f: 0 } : {}))
    t.same(said, [], `${what}: not yet`)
    audit.end()
    t.equal(said.length, expected, what)
    // What is told to it when all of it has gone.
    if (ends) audit.next(5, entry(1, { v: 0, r: [], m: 'late', f: 0 }))
    t.equal(said.length, expected)
  }
  t.end()
})
