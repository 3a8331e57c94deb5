// Identifiers, and the golden values of the hashes that place stored data: a change here would
// lead to other shards than the ones where the data lies.

import t from 'tap'
import fc from 'fast-check'
import { checkpointId, turnIds } from './checkpoint.ts'
import {
  formatUuid,
  fnv1aText,
  isUuid,
  nextNumberIn,
  placeOfActor,
  placeOfKey,
  shardOf,
  toUuid,
  uuidBytes,
  uuidMaker,
} from './ids.ts'

t.test('pinned: where actors and keys lie', async (t) => {
  t.equal(fnv1aText('order'), 3_429_105_371)
  t.equal(placeOfActor('018f2b3c-4d5e-7abc-8def-0123456789ab'), 0x89ab)
  t.equal(placeOfActor('6fa459ea-ee8a-4ca4-894e-db77e160355e'), 42_176)
  t.equal(placeOfKey('order', '536365'), 44_905)
  t.equal(placeOfKey('order', 'ÄÖ€😀'), 19_268)
  t.equal(shardOf(44_905, 32), 9)
})

t.test('pinned: ids that are derived instead of stored', async (t) => {
  const message = '00112233445566778899aabbccddeeff'
  const next = turnIds(message, 3, 1_700_000_000_000)
  t.equal(next(), '018bcfe5-6800-7bd5-80d5-fbd1c8e0cbff')
  t.not(next(), '018bcfe5-6800-7bd5-80d5-fbd1c8e0cbff')
  t.equal(
    checkpointId('018f2b3c-4d5e-7abc-8def-0123456789ab', message, 1_700_000_000_000),
    '018bcfe5-6800-7e94-b314-385286884248',
  )
})

t.test('a made id is a UUIDv7 that carries its time and its place', async (t) => {
  let seed = 1
  const make = uuidMaker((bytes) => {
    for (let i = 0; i < bytes.length; i++) bytes[i] = (seed = (seed * 69_069 + 1) >>> 0) >>> 24
  })
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 2 ** 48 - 1 }),
      fc.integer({ min: 0, max: 0xffff }),
      (nowMs, place) => {
        const id = make(nowMs, place)
        const bytes = uuidBytes(id)
        return (
          isUuid(id) &&
          bytes.readUIntBE(0, 6) === nowMs &&
          bytes[6]! >> 4 === 7 &&
          bytes[8]! >> 6 === 2 &&
          placeOfActor(id) === place &&
          formatUuid(bytes) === id
        )
      },
    ),
  )
  const last = placeOfActor(make(1, 0x1ff9, 0x1f))
  t.equal(last & 0x1f, 0x19, 'of a place only the bits of its mask are put')
  const ends = Array.from({ length: 100 }, () => placeOfActor(make(1, 0, 0x1f)) >>> 5)
  t.ok(new Set(ends).size > 50, 'the others stay random')
  const many = new Set(Array.from({ length: 5_000 }, () => make(1)))
  t.equal(many.size, 5_000)
})

t.test('the next number of a shard is the first whose text lies there', async () => {
  const after = fc.oneof(fc.nat({ max: 250 }), fc.nat(), fc.nat({ max: 1e12 }))
  fc.assert(
    fc.property(
      fc.string(),
      fc.string(),
      after,
      fc.nat({ max: 15 }),
      (type, prefix, from, shard) => {
        let n = from + 1
        while (shardOf(placeOfKey(type, prefix + String(n)), 16) !== shard) n++
        return nextNumberIn({ type, prefix, shard, shards: 16 }, from) === n
      },
    ),
    { numRuns: 500 },
  )
})

t.test('only a UUID is read as one', async (t) => {
  t.equal(toUuid('018F2B3C-4D5E-7ABC-8DEF-0123456789AB'), '018f2b3c-4d5e-7abc-8def-0123456789ab')
  for (const text of [
    '',
    'new',
    '018f2b3c4d5e7abc8def0123456789ab',
    '018f2b3c-4d5e-7abc-8def-0123456789ag',
  ]) {
    t.equal(toUuid(text), null)
  }
  const form = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
  const near = fc
    .tuple(
      fc.uuid(),
      fc.nat({ max: 36 }),
      fc.constantFrom('', 'A', 'F', 'G', 'g', '-', '/', ':', 'ä'),
    )
    .map(([id, at, put]) => id.slice(0, at) + put + id.slice(at + put.length))
  fc.assert(
    fc.property(near, (text) => {
      const lower = text.toLowerCase()
      return isUuid(text) === form.test(text) && toUuid(text) === (form.test(lower) ? lower : null)
    }),
    { numRuns: 1_000 },
  )
})

t.test('ids of turns differ by message, version and time', async () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.nat(), (a, b, version) => {
      const first = turnIds(a, version, 5)()
      return (
        first === turnIds(a, version, 5)() &&
        first !== turnIds(a, version + 1, 5)() &&
        (a === b || first !== turnIds(b, version, 5)())
      )
    }),
  )
})
