// How blobs stand in Cassandra, and where an actor's entries lie: both are stored for good.

import fc from 'fast-check'
import t from 'tap'
import {
  BLOB_FORMAT,
  BUCKET_ENTRIES,
  bucketOf,
  decodeBlob,
  encodeBlob,
  encodeParked,
  encodeTextBlob,
  endsBucket,
  parkedBody,
} from './rows.ts'

const where = () => 'here'

void t.test('a blob is what it was made of', async (t) => {
  const number = fc.integer({ min: 0, max: 2 ** 48 - 1 })
  fc.assert(
    fc.property(number, fc.uint8Array(), (n, content) => {
      const blob = decodeBlob(encodeBlob(n, content), where)
      return blob.number === n && blob.content.equals(content)
    }),
  )
  fc.assert(
    fc.property(number, fc.string({ unit: 'grapheme' }), (n, text) => {
      const blob = decodeBlob(encodeTextBlob(n, text), where)
      return blob.number === n && blob.content.toString() === text
    }),
  )
  t.throws(() => encodeBlob(2 ** 48, Buffer.of()))
  t.throws(() => encodeBlob(-1, Buffer.of()))
})

void t.test('the layout is pinned', async (t) => {
  t.equal(encodeBlob(258, Buffer.of(9)).toString('hex'), '0100000000010209')
  t.equal(encodeParked(1, null).toString('hex'), '0100000000000101')
  t.equal(encodeParked(1, Buffer.of(7)).toString('hex'), '010000000000010007')
  t.same([1, 256, 257, 512, 513].map(bucketOf), [0, 0, 1, 1, 2])
  t.same([1, 255, 256, 257, 512].map(endsBucket), [false, false, true, false, true])
})

void t.test('a newer format is refused, and told where it is', async (t) => {
  const blob = encodeBlob(1, Buffer.of(1))
  blob[0] = BLOB_FORMAT + 1
  const message = /^here: format 2 is not readable by this version \(1\): .* newer Kontor/
  t.throws(() => decodeBlob(blob, where), { message })
})

void t.test(
  'of a parked row and one that is done with, the latter has the greater bytes',
  async (t) => {
    fc.assert(
      fc.property(fc.uint8Array(), (body) => {
        return Buffer.compare(encodeParked(5, null), encodeParked(5, body)) > 0
      }),
    )
    t.equal(parkedBody(decodeBlob(encodeParked(5, null), where).content), null)
    t.same(parkedBody(decodeBlob(encodeParked(5, Buffer.of(3)), where).content), Buffer.of(3))
  },
)

void t.test('a bucket has its entries, and the last one ends it', async (t) => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 31 - 2 }), (n) => {
      const isNext = bucketOf(n + 1) - bucketOf(n)
      return isNext === (endsBucket(n) ? 1 : 0)
    }),
  )
  t.equal(bucketOf(BUCKET_ENTRIES * 7), 6)
})
