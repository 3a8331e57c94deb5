// Room of the disk, as the journal asks for it: what is kept back for finishing what is committed
// is not taken by a file that the log might need next.

import t from 'tap'
import { freshUuid, group } from '../conformance/journal-samples.ts'
import { Room } from './room.ts'
import { openEmbeddedJournal } from '../embedded/journal/journal.ts'
import { journalOptions } from '../embedded/testing/journal-options.ts'
import { shortDisk } from '../embedded/testing/short-disk.ts'

const ROOM_BYTES = 1024 * 1024
const FILE_BYTES = 256 * 1024
const BODY = Buffer.alloc(50_000, 1)

t.test('what is left of the disk', async (t) => {
  const disk = shortDisk(t)
  const { dir } = journalOptions(t)
  const room = new Room(dir, dir)
  disk.left = 12_345
  t.equal(room.left(), 12_345)
  disk.left = 0
  t.equal(room.left(), 0)
})

t.test('a file that is needed next leaves what is kept back', async (t) => {
  const disk = shortDisk(t)
  disk.left = ROOM_BYTES + FILE_BYTES / 2
  const options = { ...journalOptions(t), roomBytes: ROOM_BYTES, segmentBytes: [FILE_BYTES] }
  const told: boolean[] = []
  const log = { ...options.log, error: () => told.push(true), info: () => told.push(false) }
  const journal = await openEmbeddedJournal({ ...options, shards: 1, log })
  const { epoch } = await journal.log.claim(0)
  let head = 0
  const append = async (): Promise<string> => {
    const one = group({ shard: 0, epoch, head, body: BODY, commitId: freshUuid() })
    const [outcome] = await journal.log.append([one])
    if (outcome === 'committed') head++
    return outcome!
  }
  let outcome = await append()
  for (let i = 0; i < 20 && outcome === 'committed'; i++) outcome = await append()
  t.equal(outcome, 'full')
  t.ok(head > 0 && head * BODY.length < FILE_BYTES, `${head} groups are in the first file`)
  t.equal((await journal.log.read(0, 0, 1e9)).length, head, 'reads go on')
  t.same(told, [true])
  disk.left = null
  for (let i = 0; i < 10; i++) t.equal(await append(), 'committed')
  t.same(told, [true, false])
  await journal.close()
})
