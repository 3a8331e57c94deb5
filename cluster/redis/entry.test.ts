// Entries of a stream: what is written is what is read, and anything else is judged, never thrown.

import fc from 'fast-check'
import t from 'tap'
import type { Envelope, WireReply } from '../../protocol/message.ts'
import { EMPTY_ENTRY, entryFields, formatOf, packItem, readEntry, WIRE_FORMAT } from './entry.ts'
import type { Item } from './entry.ts'

const copy = fc.nat()
const item: fc.Arbitrary<Item> = fc.oneof(
  fc.record({
    kind: fc.constant('parcel' as const),
    copy,
    shard: fc.integer({ min: -1, max: 4_096 }),
    epoch: fc.nat(),
    envelope: fc.jsonValue() as fc.Arbitrary<unknown> as fc.Arbitrary<Envelope>,
  }),
  fc.record({
    kind: fc.constant('reply' as const),
    copy,
    reply: fc.jsonValue() as fc.Arbitrary<unknown> as fc.Arbitrary<WireReply>,
  }),
  fc.record({
    kind: fc.constant('notice' as const),
    notice: fc.record({
      kind: fc.constant('owns' as const),
      shard: fc.nat(),
      epoch: fc.nat(),
    }),
  }),
)

/** JSON has no minus zero. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

t.test('what is written is read', async (t) => {
  fc.assert(
    fc.property(fc.string(), fc.array(item), (from, items) => {
      const read = readEntry(entryFields(from, [1, 2], items.map(packItem), WIRE_FORMAT))
      t.strictSame(plain(read), plain({ state: 'read', from, items }))
    }),
  )
})

t.test('anything else is judged', async (t) => {
  t.strictSame(readEntry(EMPTY_ENTRY), { state: 'empty' })
  fc.assert(
    fc.property(fc.array(fc.string()), fc.array(fc.json()), (names, bodies) => {
      for (const fields of [names, ['v', '1', 'h', '{"from":"a","copies":[]}', 'b', ...bodies]]) {
        const { state } = readEntry(fields)
        t.ok(['empty', 'broken', 'read'].includes(state), state)
      }
    }),
  )
})

t.test('of a newer format, sender and copies can be read', async (t) => {
  const fields = entryFields('a', [3, 4], ['["p"]'], WIRE_FORMAT + 1)
  const newer = { state: 'newer', format: WIRE_FORMAT + 1, from: 'a', copies: [3, 4] }
  t.strictSame(readEntry(fields), newer)
})

t.test('what an owner of format 1 would take for something else is of format 2', async (t) => {
  const message = { type: 'append', body: null }
  const envelope = { messages: [message, message] } as unknown as Envelope
  t.equal(formatOf(envelope), 1)
  t.equal(formatOf({ ...envelope, places: [0, 2] }), 2)
  t.equal(formatOf({ ...envelope, relay: [1, 2, 0] }), 2)
  t.equal(formatOf({ ...envelope, relay: [1, 2, 0], messages: [message] }), 1)
  t.equal(formatOf({ ...envelope, graphAces: [] }), 3, 'format 2 shows a query all there is')
  const attributes = { graphAces: [], graphAttributes: { region: ['north'] } }
  t.equal(formatOf({ ...envelope, ...attributes }), 5, 'format 4 knows no attributes')
  t.equal(formatOf({ ...envelope, refused: [null, null] }), 4, 'format 3 runs what is refused')
})
