// Entries in their binary form: what a store may tell from the bytes alone.

import t from 'tap'
import { decodeEntry, encodeEntry, holdsRecords } from './entry.ts'
import type { Entry } from './entry.ts'

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

t.test('an entry without records is a rejection, whatever stands before them', async (t) => {
  const misleading = ['r', '"r":[', '"r":[]', '"r":[{', '\\"r":[]', ':["r"']
  for (const q of misleading) {
    t.equal(holdsRecords(encodeEntry({ ...keyed(q), ...REJECTED })), false, `${q}, rejected`)
    t.equal(holdsRecords(encodeEntry({ ...keyed(q), ...CHANGED })), true, `${q}, changed`)
    t.strictSame(decodeEntry(encodeEntry({ ...keyed(q), ...CHANGED })), { ...keyed(q), ...CHANGED })
  }
})

t.test('bytes that are no entry are kept', async (t) => {
  t.equal(holdsRecords(Buffer.alloc(0)), true)
  t.equal(holdsRecords(Buffer.from('"r"')), true)
})

t.test('entries of any text, one behind the other, are whole', async (t) => {
  for (const letter of ['x', 'ж', '語', '𝒳']) {
    const entries = Array.from({ length: 150 }, (_, i): Entry => {
      return { ...CHANGED, r: [{ t: 'named', text: letter.repeat(10_000 + 7 * i) }] }
    })
    const encoded = entries.map(encodeEntry)
    const wrong = encoded.findIndex((bytes, i) => {
      return bytes.toString() !== JSON.stringify(entries[i])
    })
    t.equal(wrong, -1, letter)
  }
})

/** A key of the `system` shard stands before the records. */
function keyed(q: string) {
  return { y: 'registry', q }
}
