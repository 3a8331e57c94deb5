// Where an entry lies in the log, by its offset, whichever of its groups was looked into before.

import t from 'tap'
import { joinEntries } from '../../../protocol/entry/entry.ts'
import { freshUuid } from '../../conformance/journal-samples.ts'
import type { Place } from '../../segment-log/frame.ts'
import { Arena } from '../../lmdb/arena.ts'
import { openEnvironment } from '../../lmdb/environment.ts'
import { EmbeddedLogReader } from './read.ts'
import { encodeGroup } from '../../lmdb/rows.ts'
import { LogTail } from '../../segment-log/tail.ts'
import { journalOptions } from '../testing/journal-options.ts'

/** Sizes of the entries of groups that lie in these files, behind one another or at one place. */
const GROUPS = [
  { file: 1, position: 64, sizes: [10, 20, 30] },
  { file: 2, position: 64, sizes: [50, 5, 5] },
  { file: 2, position: 192, sizes: [7, 70, 7] },
  { file: 3, position: 64, sizes: [1, 2, 3] },
]

t.test('entries are found where they lie, also of groups at one place of several files', (t) => {
  const env = openEnvironment(journalOptions(t).dir, false)
  t.teardown(() => env.root.close())
  const bodies = new Map<string, Buffer>()
  const arena = new Arena()
  let offset = 0
  const entries = GROUPS.flatMap(({ file, position, sizes }, shard) => {
    const own = sizes.map((size) => Buffer.alloc(size, ++offset))
    const body = joinEntries(own)
    const place = { file, position, length: body.length, crc: 0 }
    bodies.set(`${file}/${position}`, body)
    const group = { shard, epoch: 0, offset, count: own.length, commitId: freshUuid() }
    const { key, value } = encodeGroup(arena, { ...group, place, begins: null })
    env.log.putSync(key, value)
    return own.map((bytes, i) => ({ shard, offset: offset - own.length + i + 1, bytes }))
  })
  const places = { read: (at: Place) => bodies.get(`${at.file}/${at.position}`)! }
  const tail = new LogTail()
  const reader = new EmbeddedLogReader({
    ...{ env, places: places as never, tail: () => tail },
    status: () => null as never,
  })
  const found = ({ shard, offset: at, bytes }: (typeof entries)[number]): Buffer => {
    const { file, position, length } = reader.entryPlace(shard, { offset: at, body: bytes })!
    const of = GROUPS[shard]!
    t.equal(file, of.file)
    const begin = position - of.position
    return bodies.get(`${of.file}/${of.position}`)!.subarray(begin, begin + length)
  }
  // One behind the other, backwards, and a group after another one in turn.
  const inTurn = entries.toSorted((a, b) => (a.bytes[0]! % 3) - (b.bytes[0]! % 3))
  for (const entry of [...entries, ...entries.toReversed(), ...inTurn]) {
    t.same(found(entry), entry.bytes)
  }
  t.end()
})
