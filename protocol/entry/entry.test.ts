// Entries in their binary form: what was written is read, whatever a record holds besides what its
// kind declares; what a store may tell from the bytes alone; and what is refused.

import { deepStrictEqual, throws } from 'node:assert'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import type { ActorRecord } from '../behaviour.ts'
import {
  decodeEntry,
  decodeWholeEntry,
  encodeEntry,
  ENTRY_FORMAT,
  holdsRecords,
  joinEntries,
  recordsOf,
  splitEntries,
} from './entry.ts'
import type { Entry } from './entry.ts'
import { RecordShapes, shapeOf } from './record-shape.ts'

const REJECTED: Entry = {
  y: 'order',
  p: '00000000-0000-7000-8000-000000000001',
  v: 0,
  n: 1,
  r: [],
  m: 'm1',
  l: 1,
  a: { type: 'create', success: false, errors: [] },
  t: 1_000,
  c: 1,
  b: 'tester',
}
const CHANGED: Entry = { ...REJECTED, r: [{ t: 'orderCreated' }] }

const POINT = shapeOf<{ readonly x?: number; readonly y?: number }>(['x', 'y'])
const shapes = new RecordShapes([
  { id: 1, t: 'moved', members: ['by', ['from', POINT], ['to', POINT], 'why'] },
  { id: 2, t: 'gone', members: [] },
])

/** By the names of its members, as JSON has it. */
const named = (entry: Entry): unknown => JSON.parse(JSON.stringify(entry))

function readWhole(bytes: Uint8Array, of: RecordShapes): unknown {
  const entry = decodeWholeEntry(bytes)
  return { ...entry, r: recordsOf(entry, { shapes: of }) }
}

const anything = fc.jsonValue({ maxDepth: 3 })
const point = fc.oneof(
  fc.record({ x: fc.double(), y: fc.integer(), z: anything }, { requiredKeys: [] }),
  anything,
)
const points = fc.oneof(point, fc.array(point))
const optional = { requiredKeys: [] as [] }
const record = fc
  .tuple(
    fc.constantFrom('moved', 'gone', 'other'),
    fc.record(
      { by: anything, from: points, to: points, why: fc.option(fc.string()), else: anything },
      optional,
    ),
    fc.dictionary(fc.constantFrom('__proto__', 'by', 'x', '1', 'length'), anything),
  )
  .map(([t, members, more]): ActorRecord => {
    const own = Object.defineProperties({}, Object.getOwnPropertyDescriptors(more))
    return { ...members, ...own, t }
  })
const entries = fc
  .tuple(
    fc.array(record),
    fc.record(
      {
        q: fc.string(),
        h: fc.string(),
        g: fc.dictionary(fc.string(), fc.nat()),
        k: fc.array(fc.record({ keyType: fc.string(), key: fc.string(), by: anything })),
        e: fc.array(fc.record({ to: anything, messages: fc.array(anything) })),
        x: fc.record({ type: fc.string(), body: anything }),
        s: fc.array(fc.nat()),
        later: anything,
      },
      optional,
    ),
    anything,
  )
  .map(([r, more, data]): Entry => {
    const a = { type: 'create', success: true, data } as const
    return { ...REJECTED, ...(more as unknown as Partial<Entry>), r, a }
  })

t.test('an entry is read as it was written, with all that its kinds do not declare', async () => {
  fc.assert(
    fc.property(entries, fc.boolean(), (entry, isShaped) => {
      const bytes = encodeEntry(entry, isShaped ? shapes : undefined)
      deepStrictEqual(readWhole(bytes, shapes), named(entry))
      deepStrictEqual(holdsRecords(bytes), entry.r.length > 0)
      // Read again, and after the bytes were passed over.
      const again = decodeEntry(bytes)
      again.r.pass()
      deepStrictEqual(recordsOf(again, { shapes }), recordsOf(again, { shapes }))
    }),
    { numRuns: 300 },
  )
})

t.test('bytes that are cut, or were changed, are seldom an entry, and harm nobody', async () => {
  const change = fc.tuple(fc.nat(), fc.nat(255))
  fc.assert(
    fc.property(entries, change, (entry, [at, byte]) => {
      const bytes = Buffer.from(encodeEntry(entry, shapes))
      throws(() => decodeEntry(bytes.subarray(0, at % bytes.length)))
      bytes[at % bytes.length] = byte
      holdsRecords(bytes)
      try {
        JSON.stringify(readWhole(bytes, shapes))
      } catch (error) {
        if (!/not the bytes of an entry|doesn't know/.test(String(error))) throw error
      }
    }),
    { numRuns: 300 },
  )
})

t.test('members by position cost no names', async (t) => {
  const moved = { t: 'moved', by: 'ada', from: { x: 1, y: 2 }, to: { y: 3 } }
  const text = encodeEntry({ ...CHANGED, r: [moved] }, shapes).toString('latin1')
  t.notMatch(text, /moved|from|to/)
  t.match(encodeEntry({ ...CHANGED, r: [moved] }).toString('latin1'), /movedbyada/)
})

t.test('an older record is read by a newer version, a newer one is refused', async (t) => {
  const newer = new RecordShapes([
    { id: 1, t: 'moved', members: ['by', ['from', POINT], ['to', POINT], 'why', 'when'] },
    { id: 2, t: 'gone', members: [] },
    // Declared again: the old one is read, the new one is written.
    { id: 3, t: 'gone', members: ['where'] },
  ])
  const old = { ...CHANGED, r: [{ t: 'moved', why: 'x' }, { t: 'gone' }] }
  t.strictSame(readWhole(encodeEntry(old, shapes), newer), old)
  const now = { ...CHANGED, r: [{ t: 'moved', when: 1 }] }
  t.strictSame(readWhole(encodeEntry(now, newer), newer), now)
  const known = decodeWholeEntry(encodeEntry(now, newer))
  t.equal(known.r.length, 1, 'the entry itself is read')
  t.throws(() => recordsOf(known, { shapes }), /newer Kontor/)
  const gone = { ...CHANGED, r: [{ t: 'gone', where: 'there' }] }
  t.strictSame(readWhole(encodeEntry(gone, newer), newer), gone)
  t.throws(() => readWhole(encodeEntry(gone, newer), shapes), /newer Kontor/)
})

t.test('a shape is declared once, with names that are names', async (t) => {
  const kind = { id: 1, t: 'moved', members: ['by'] }
  t.throws(() => new RecordShapes([kind, kind]), /number of its own/)
  t.throws(() => new RecordShapes([{ ...kind, members: ['by', 'by'] }]), /one position/)
  t.throws(() => new RecordShapes([{ ...kind, members: ['t'] }]), /one position/)
  t.throws(() => new RecordShapes([{ ...kind, members: ['a: 1, b'] }]), /plain name/)
  t.throws(() => new RecordShapes([{ ...kind, members: ['constructor'] }]), /plain name/)
  const many = Array.from({ length: 31 }, (_, i) => `m${i}`)
  t.throws(() => new RecordShapes([{ ...kind, members: many }]), /at most 30/)
  const most = new RecordShapes([{ ...kind, members: many.slice(1) }])
  const full = { ...CHANGED, r: [Object.fromEntries([...many, 't'].map((m) => [m, 'moved']))] }
  t.strictSame(readWhole(encodeEntry(full as never, most), most), full)
})

t.test('bytes that are no entry are kept', async (t) => {
  t.equal(holdsRecords(Buffer.alloc(0)), true)
  t.equal(holdsRecords(Buffer.from('{"r":[]}')), true)
  t.equal(holdsRecords(Buffer.from([0xe2, 0xff])), true)
})

t.test('entries of any text, one behind the other, are whole', async (t) => {
  for (const letter of ['x', 'é', 'ж', '語', '𝒳']) {
    const entries = Array.from({ length: 150 }, (_, i): Entry => {
      return { ...CHANGED, r: [{ t: 'named', text: letter.repeat(10_000 + 7 * i) }] }
    })
    const encoded = entries.map((entry) => encodeEntry(entry))
    const read = splitEntries(joinEntries(encoded)).map((bytes) => readWhole(bytes, shapes))
    t.equal(
      read.findIndex((one, i) => !isDeepStrictEqual(one, entries[i])),
      -1,
      letter,
    )
  }
})

t.test('a body has memory of its own: who keeps one keeps no more than its bytes', (t) => {
  const body = joinEntries([encodeEntry(CHANGED)])
  t.equal(body.buffer.byteLength, body.length)
  t.end()
})

t.test('a group of another format is refused', async (t) => {
  const body = joinEntries([encodeEntry(CHANGED)])
  body[0] = ENTRY_FORMAT + 1
  t.throws(() => splitEntries(body), /newer Kontor/)
  body[0] = 1
  t.throws(() => splitEntries(body), /before the first release/)
  t.throws(() => decodeEntry(Buffer.from(JSON.stringify(CHANGED))), /not the bytes of an entry/)
})
