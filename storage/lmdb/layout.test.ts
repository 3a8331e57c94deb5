// The layout of the journal's rows, pinned: other bytes would not be what is on disks already.

import fc from 'fast-check'
import t from 'tap'
import { formatUuid } from '../../protocol/ids.ts'
import { Arena } from './arena.ts'
import type { JournalEnvironment } from './environment.ts'
import {
  aliasKey,
  consumerKey,
  derivedBody,
  derivedOffset,
  derivedShard,
  entryKey,
  entryNumber,
  imageKey,
  isWhole,
  JOURNAL_FORMAT,
  logKey,
  markKey,
  NIL_UUID,
  parkedKey,
  placeOfLogKey,
  readGroup,
  readHead,
  shardKey,
  shardOfKey,
  uuidAt,
} from './layout.ts'
import { encodeDerived, encodeGroup, encodeHead, encodeRow } from './rows.ts'

const ACTOR = '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b'

const TEXT = Buffer.from('a body of some bytes')

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}

void t.test('golden bytes', async (t) => {
  t.equal(JOURNAL_FORMAT, 2)
  t.equal(hex(shardKey(-1)), '0000')
  t.equal(hex(shardKey(31)), '0020')
  t.equal(hex(logKey(5, 0x0102030405)), '0006000102030405')
  t.equal(hex(entryKey(ACTOR, 258)), '0190a1b2c3d47e5f8a6b7c8d9e0f1a2b00000102')
  t.equal(hex(aliasKey('order', '7')), '6f726465720037')
  t.equal(hex(aliasKey('order', 'x'.repeat(59))).length, 128)
  t.equal(hex(markKey(ACTOR, 3, 'ab')), '0190a1b2c3d47e5f8a6b7c8d9e0f1a2b000000036162')
  t.equal(hex(consumerKey(0, 'flush')), '0001666c757368')
  t.equal(hex(parkedKey(0, 'i', ACTOR)), '000169000190a1b2c3d47e5f8a6b7c8d9e0f1a2b')
  t.equal(hex(imageKey(258, 1)), '00000000010200000001')

  const arena = new Arena()
  const place = { file: 3, position: 0x0102030405, length: 6, crc: 0xa1b2c3d4 }
  const group = { shard: 1, epoch: 2, offset: 7, count: 4, commitId: ACTOR, place, begins: null }
  const head = encodeHead(arena, 1, { epoch: 2, head: 7, lastCommit: ACTOR })
  const claimed = encodeHead(arena, 1, { epoch: 2, head: 0, lastCommit: null })
  const rows = [encodeGroup(arena, group), head, claimed]
  t.same(
    rows.flatMap(({ key, value }) => [hex(key), hex(value)]),
    [
      '0002000000000007',
      '020000000000070000000000040000000190a1b2c3d47e5f8a6b7c8d9e0f1a2b' +
        '03000000000005040302010006000000d4c3b2a16118fdaa',
      '0002',
      '020000000000070000000000000000000190a1b2c3d47e5f8a6b7c8d9e0f1a2b558e1195',
      '0002',
      '0200000000000000000000000000000000000000000000000000000000000000d9405114',
    ],
  )
  const entry = { kind: 'entry', actorId: ACTOR, n: 1, offset: 258, body: TEXT } as const
  const env = {} as JournalEnvironment
  const placed = encodeRow(arena, env, { shard: 1, row: entry, place })
  const inline = encodeRow(arena, env, { shard: 1, row: entry, place: null })
  t.same(
    [placed, inline].map(({ value }) => hex(value)),
    [
      '02010000000002000103000000000005040302010006000000d4c3b2a17ce24b46',
      '0201000000000200006120626f6479206f6620736f6d65206279746573e3288606',
    ],
  )
})

void t.test('rows come back', async (t) => {
  const shards = fc.integer({ min: -1, max: 4095 })
  const numbers = fc.integer({ min: 0, max: 2 ** 48 - 1 })
  const bodies = fc.uint8Array({ maxLength: 300 })
  const uuids = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((b) => formatUuid(b))
  const arena = new Arena(512)
  const places = fc.record({
    file: numbers,
    position: numbers,
    length: fc.nat(2 ** 32 - 1),
    crc: fc.nat(2 ** 32 - 1),
  })
  const groups = fc.record({
    shard: shards,
    epoch: numbers,
    offset: numbers,
    count: fc.nat(2 ** 32 - 1),
    commitId: uuids,
    place: places,
  })
  fc.assert(
    fc.property(groups, ({ shard, ...group }) => {
      const row = encodeGroup(arena, { shard, begins: null, ...group })
      t.same(placeOfLogKey(row.key), { shard, offset: group.offset })
      t.same(readGroup(row.value), group)
      const { epoch, offset: head, commitId } = group
      const lastCommit = commitId === NIL_UUID ? null : commitId
      const headRow = encodeHead(arena, shard, { epoch, head, lastCommit })
      t.same(readHead(headRow.value), { epoch, head, lastCommit })
      t.equal(shardOfKey(headRow.key), shard)
      return isWhole(row.key, row.value) && isWhole(headRow.key, headRow.value)
    }),
    { numRuns: 50 },
  )
  const entries = fc.record({
    actorId: uuids,
    n: fc.nat(2 ** 32 - 2),
    origin: fc.record({ shard: shards, offset: numbers }),
    body: bodies,
  })
  fc.assert(
    fc.property(entries, ({ actorId, n, origin, body }) => {
      const { key, value } = encodeDerived(arena, entryKey(actorId, n), origin, body)
      return (
        uuidAt(key, 0) === actorId &&
        entryNumber(key) === n &&
        derivedShard(value) === origin.shard &&
        derivedOffset(value) === origin.offset &&
        hex(derivedBody(value)) === hex(body) &&
        isWhole(key, value)
      )
    }),
  )
})

void t.test('keys stand in the order of what they say', async (t) => {
  const place = fc.record({
    shard: fc.integer({ min: -1, max: 300 }),
    offset: fc.oneof(fc.nat(3), fc.nat(2 ** 20), fc.integer({ min: 2 ** 40, max: 2 ** 41 })),
  })
  fc.assert(
    fc.property(place, place, (a, b) => {
      const order = Math.sign(a.shard - b.shard || a.offset - b.offset)
      return Buffer.compare(logKey(a.shard, a.offset), logKey(b.shard, b.offset)) === order
    }),
  )
  t.ok(Buffer.compare(entryKey(ACTOR, 255), entryKey(ACTOR, 256)) < 0)
  t.ok(Buffer.compare(logKey(3, Number.MAX_SAFE_INTEGER), logKey(4, 0)) < 0)
})

void t.test('any flipped bit shows', async (t) => {
  const { key, value } = encodeDerived(
    new Arena(),
    entryKey(ACTOR, 1),
    { shard: 3, offset: 4 },
    TEXT,
  )
  t.ok(isWhole(key, value))
  for (const bytes of [key, value]) {
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      bytes[bit >>> 3]! ^= 1 << (bit & 7)
      if (isWhole(key, value)) t.fail(`bit ${bit} was flipped`)
      bytes[bit >>> 3]! ^= 1 << (bit & 7)
    }
  }
  t.notOk(isWhole(entryKey(ACTOR, 2), value), 'nor does a row pass for another')
  t.notOk(isWhole(key, Buffer.alloc(3)))
})

void t.test('memory of a transaction is used again', async (t) => {
  const arena = new Arena(100)
  const origin = { shard: 0, offset: 1 }
  const rows = [10, 50, 80, 200, 20, 90].map((n) =>
    encodeDerived(arena, Buffer.of(n), origin, Buffer.alloc(n, n)),
  )
  for (const { key, value } of rows) {
    t.ok(isWhole(key, value))
    t.equal(derivedBody(value).length, key[0])
  }
  t.equal(arena.used, 450 + 6 * 13)
  arena.reset()
  t.equal(arena.used, 0)
  const first = encodeDerived(arena, Buffer.of(1), origin, Buffer.alloc(1))
  t.equal(first.key.buffer, rows[0]!.key.buffer)
})
