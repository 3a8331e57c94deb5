// Answers are packed as far as there is room; then they go as they are.

import t from 'tap'
import { gunzipSync } from 'node:zlib'
import { Packing } from './packing.ts'

const KiB = 1024

t.test('past the bound nothing more is packed, until some are done', async (t) => {
  const packing = new Packing(100 * KiB)
  const text = 'a'.repeat(30 * KiB)
  const [first, second] = [packing.pack(text), packing.pack(text)]
  t.equal(packing.pack(text), null, 'no room for the room that a third one takes')
  t.equal(gunzipSync((await first)!).toString(), text)
  t.equal(gunzipSync((await second)!).toString(), text)
  t.not(packing.pack(text), null)
})

t.test('one that is larger than the bound has all of it', async (t) => {
  const packing = new Packing(1 * KiB)
  const large = packing.pack('a'.repeat(30 * KiB))
  t.not(large, null)
  t.equal(packing.pack('a'), null)
  await large
  t.not(packing.pack('a'), null)
})
