// Rows of one transaction lie apart from each other until the next one begins.

import { crc32 } from 'node:zlib'
import t from 'tap'
import { Arena } from './arena.ts'
import { CRC_BYTES } from './layout.ts'

const KEY_BYTES = 4

/** A row of so many bytes, key and checksum included, all of them the same. */
function write(arena: Arena, bytes: number, fill: number) {
  arena.begin(bytes)
  const end = arena.at + bytes - CRC_BYTES
  arena.chunk.fill(fill, arena.at, end)
  return { fill, bytes, ...arena.seal(KEY_BYTES, end) }
}

t.test('rows are whole, whatever comes behind them', (t) => {
  const arena = new Arena(100)
  for (let round = 0; round < 3; round++) {
    const sizes = [60, 40, 100, 101, 30, 1_000, 70, 20, ...Array.from({ length: 30 }, () => 55)]
    const rows = sizes.map((bytes, i) => write(arena, bytes, 1 + i + round))
    t.equal(
      arena.used,
      sizes.reduce((sum, bytes) => sum + bytes),
    )
    for (const { fill, bytes, key, value } of rows) {
      const row = Buffer.concat([key, value])
      t.equal(key.length, KEY_BYTES)
      t.equal(row.length, bytes)
      const body = row.subarray(0, -CRC_BYTES)
      t.ok(
        body.every((byte) => byte === fill),
        `row of ${bytes} bytes`,
      )
      t.equal(row.readUInt32LE(body.length), crc32(body))
    }
    arena.reset()
    t.equal(arena.used, 0)
  }
  t.end()
})

t.test('memory is filled, and used again, up to a bound', (t) => {
  const arena = new Arena(100)
  const chunks = (sizes: readonly number[]) => {
    arena.reset()
    return sizes.map((bytes) => write(arena, bytes, 1).key.buffer)
  }
  t.equal(new Set(chunks([60, 40, 50, 50])).size, 2)
  const many = Array.from({ length: 20 }, () => 60)
  const [first, second] = [chunks(many), chunks(many)]
  t.equal(new Set(first).size, many.length)
  const again = second.filter((chunk) => first.includes(chunk))
  t.equal(again.length, 8, 'the rest of a large transaction is given back')
  t.end()
})
