// A damaged log, and going on without what is lost: the start says what to give up, and what
// another group of it held stays. Source: PROTOCOL 3.16, F22.

import { cpSync, mkdirSync, readFileSync, rmSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { joinEntries } from '../../../protocol/entry/entry.ts'
import { freshUuid, group } from '../../conformance/journal-samples.ts'
import { COUNTER_SUFFIX, type Journal } from '../../journal.ts'
import { openEmbeddedJournal } from './journal.ts'
import {
  contentsOf,
  damageOf,
  entryOf,
  filledStore,
  findingsIn,
  flipText,
  segmentsIn,
  smallSegments,
  withCopy,
  type Filled,
  type Placed,
} from '../testing/damaged-store.ts'
import { journalOptions } from '../testing/journal-options.ts'

const JUMP = 1_000_000

/** What a refusal says that can be given up. */
function flagsIn(message: string): { shard: number; offset: number }[] {
  const flags = message.matchAll(/--accept-loss (-?\d+):(\d+)/g)
  return [...flags].map(([, shard, offset]) => ({ shard: Number(shard), offset: Number(offset) }))
}

/** Damages the body of a group. */
function harm({ dir }: Filled, { text }: Placed): string {
  return flipText(dir, text, 3)
}

/** Opens it without what the refusal names. */
async function goOn(dir: string): Promise<Journal> {
  const { message } = await damageOf(smallSegments(dir))
  return openEmbeddedJournal({ ...smallSegments(dir), acceptLoss: flagsIn(message) })
}

async function offsetsIn(journal: Journal, shard: number, after = 0): Promise<number[]> {
  return (await journal.log.read(shard, after, 1e9)).map(({ offset }) => offset)
}

/** Appends an entry to a shard, behind whatever it has; its offset. */
async function appendTo(t: Test, journal: Journal, shard: number): Promise<number> {
  const { epoch, head } = await journal.log.claim(shard)
  const body = joinEntries([entryOf(freshUuid(), 1, 10)])
  t.same(await journal.log.append([group({ shard, epoch, head, body })]), ['committed'])
  return head + 1
}

/** Closed, verified, and the same after a restart without any flag. */
async function stays(t: Test, dir: string, journal: Journal): Promise<void> {
  const contents = await contentsOf(withoutHeads(journal))
  await journal.close()
  t.same(await findingsIn(dir), [], 'verify-log finds nothing')
  const again = await openEmbeddedJournal(smallSegments(dir))
  t.equal(again.identity.generation, journal.identity.generation)
  t.same(await contentsOf(withoutHeads(again)), contents, 'and a restart changes nothing')
  await again.close()
  t.same(await findingsIn(dir), [])
  // What is derived is made anew over a gap, too.
  rmSync(join(dir, 'data.mdb'))
  const anew = await openEmbeddedJournal(smallSegments(dir))
  t.same((await contentsOf(withoutHeads(anew))).log, contents.log)
  await anew.close()
  t.same(await findingsIn(dir), [])
}

/** Keys are looked up below the jumps alone. */
function withoutHeads(journal: Journal): Journal {
  const { log, derived } = journal
  const status = async (shard: number) => {
    const { head, ...rest } = await log.status(shard)
    return { ...rest, head: head % JUMP }
  }
  const read = log.read.bind(log)
  return { ...journal, derived, log: { ...log, status, read } }
}

for (const isKilled of [false, true]) {
  const how = isKilled ? 'killed' : 'closed'
  void t.test(`a group in a store that was ${how}`, async (t) => {
    const filled = await filledStore(t, { isAhead: true, isKilled })
    const { dir, heads, groups } = filled
    const [, head] = heads as [number, number]
    const lost = groups.findLast((one) => one.shard === 1 && one.offset <= head - 6)!
    const good = lost.head
    const file = harm(filled, lost)
    const { message, place } = await damageOf(smallSegments(dir))
    t.same(place, { file, shard: 1, offset: good + 1 })
    t.match(message, new RegExp(`^${file}: position \\d+: .*backup; or .*--accept-loss 1:${good}$`))
    t.same(flagsIn(message), [{ shard: 1, offset: good }])
    t.match((await findingsIn(dir)).join('\n'), `${file}: position`)

    const kept = readFileSync(join(dir, 'store.json'))
    const elsewhere = { ...smallSegments(dir), acceptLoss: [{ shard: 1, offset: good - 1 }] }
    await t.rejects(openEmbeddedJournal(elsewhere), { message }, 'only as it was named')
    t.ok(readFileSync(join(dir, 'store.json')).equals(kept), 'nothing was changed')
    const { generation: before } = JSON.parse(kept.toString()) as { generation: string }

    const acceptLoss = [{ shard: 1, offset: good }]
    const journal = await openEmbeddedJournal({ ...smallSegments(dir), acceptLoss })
    t.not(journal.identity.generation, before)
    const resumedAt = head + JUMP
    t.same(journal.identity.losses, [{ shard: 1, offset: good, resumedAt }])
    t.equal((await journal.log.status(1)).head, resumedAt)
    t.equal((await journal.log.status(0)).head, heads[0])
    t.equal((await offsetsIn(journal, 1)).at(-1), good)
    t.equal((await offsetsIn(journal, 0)).length, 30, 'what another shard has is there')
    const hasKey = async (key: string) => (await journal.derived.alias('order', key)) !== null
    t.same([await hasKey(`1-${good}`), await hasKey(`1-${good + 1}`)], [true, false])
    t.same([await hasKey(`1-${head}`), await hasKey(`0-${heads[0]}`)], [false, true])
    const counter = await journal.derived.alias(`order${COUNTER_SUFFIX}`, '1/O')
    t.not(counter, null, 'what is handed out from now on is above what was lost')
    t.equal((await journal.derived.actors(null, 1e4)).length, heads[0]! + good)
    t.equal(await appendTo(t, journal, 1), resumedAt + 1)
    t.equal(await appendTo(t, journal, 0), heads[0]! + 1)
    await journal.close()

    const again = await openEmbeddedJournal({ ...smallSegments(dir), acceptLoss })
    const { generation } = journal.identity
    t.equal(again.identity.generation, generation, 'the flag may stay: it is accepted once')
    t.same(await offsetsIn(again, 1, good), [resumedAt + 1])
    await stays(t, dir, again)
  })

  void t.test(`the last frame of a store that was ${how}`, async (t) => {
    const filled = await filledStore(t, { isKilled })
    const { dir, heads, groups } = filled
    const last = groups.at(-1)!
    harm(filled, last)
    const journal = await goOn(dir)
    t.same(journal.identity.losses, [
      { shard: last.shard, offset: last.head, resumedAt: last.offset + JUMP },
    ])
    t.equal((await offsetsIn(journal, last.shard)).at(-1), last.head)
    t.equal((await offsetsIn(journal, 0)).at(-1), heads[0])
    t.equal(await appendTo(t, journal, last.shard), last.offset + JUMP + 1)
    await stays(t, dir, journal)
  })
}

/** Groups of both shards in one frame, and one of shard 0 behind it. */
async function mixedStore(t: Test) {
  const { dir } = journalOptions(t)
  const journal = await openEmbeddedJournal({ ...smallSegments(dir), shards: 2 })
  const claims = await Promise.all([journal.log.claim(0), journal.log.claim(1)])
  const actors = [freshUuid(), freshUuid()]
  const ids = [freshUuid(), freshUuid()]
  const groups = claims.map(({ epoch, head }, shard) => {
    const body = joinEntries([entryOf(actors[shard]!, 1, 50)])
    return group({ shard, epoch, head, body, commitId: ids[shard]! })
  })
  t.same(await journal.log.append(groups), ['committed', 'committed'])
  const body = joinEntries([entryOf(freshUuid(), 1, 50)])
  await journal.log.append([group({ shard: 0, epoch: claims[0].epoch, head: 1, body })])
  await journal.close()
  return { dir, actors, ids }
}

void t.test('several shards in one frame', async (t) => {
  const { dir, actors } = await mixedStore(t)
  flipText(dir, `entry 1 of ${actors[0]}`)
  const { message, place } = await damageOf(smallSegments(dir))
  t.equal(place.shard, 0)
  t.match(message, /shard 0 from offset 1 on, shard 1 from offset 1 on/)
  const flags = flagsIn(message)
  t.same(flags, [
    { shard: 0, offset: 0 },
    { shard: 1, offset: 0 },
  ])
  const one = { ...smallSegments(dir), acceptLoss: flags.slice(1) }
  await t.rejects(openEmbeddedJournal(one), { message }, 'each of them is to be named')
  const journal = await goOn(dir)
  t.same(
    journal.identity.losses?.map(({ resumedAt }) => resumedAt),
    [2 + JUMP, 1 + JUMP],
  )
  t.same([await offsetsIn(journal, 0), await offsetsIn(journal, 1)], [[], []])
  t.equal(await appendTo(t, journal, 1), JUMP + 2)
  await stays(t, dir, journal)
})

void t.test('a frame of which nothing can be told', async (t) => {
  const { dir, ids } = await mixedStore(t)
  flipText(dir, ids[1]!)
  const { message } = await damageOf(smallSegments(dir))
  t.same(flagsIn(message), [
    { shard: -1, offset: 0 },
    { shard: 0, offset: 0 },
    { shard: 1, offset: 0 },
  ])
  const journal = await goOn(dir)
  t.equal((await journal.log.status(0)).head, 2 + JUMP, 'behind what was heard of')
  t.equal((await journal.log.status(-1)).head, JUMP)
  t.equal(await appendTo(t, journal, 0), 3 + JUMP)
  await stays(t, dir, journal)
})

void t.test('a frame of claims holds nothing that could be lost', async (t) => {
  const { dir } = await filledStore(t, { isKilled: true, segmentBytes: 65_536 })
  const path = segmentsIn(dir).at(-1)!
  const { bytes } = headerOf(path)
  flipText(dir, readFileSync(path).subarray(bytes, bytes + 20), 4)
  t.match((await findingsIn(dir)).join('\n'), `${path}: position ${bytes}: `)
  const journal = await goOn(dir)
  t.same(
    [await offsetsIn(journal, 0), await offsetsIn(journal, 1)].map(({ length }) => length),
    [30, 30],
  )
  t.same(
    journal.identity.losses?.map(({ shard, offset }) => [shard, offset]),
    [[-1, 0]],
  )
  await appendTo(t, journal, 1)
  await stays(t, dir, journal)
})

/** Length of a segment file's first frame. */
function headerOf(path: string): { bytes: number } {
  return { bytes: readFileSync(path).readUInt32LE(4) }
}

void t.test('a last file that was cut', async (t) => {
  const filled = await filledStore(t, { isKilled: true })
  const { dir, groups } = filled
  const path = segmentsIn(dir).at(-1)!
  const lost = groups.at(-3)!
  truncateSync(path, readFileSync(path).indexOf(lost.text))
  const journal = await goOn(dir)
  t.equal((await offsetsIn(journal, 1)).at(-1), lost.head)
  t.equal((await offsetsIn(journal, 0)).length, 30)
  t.ok((await appendTo(t, journal, 1)) > JUMP)
  await stays(t, dir, journal)
})

void t.test('damage again, and twice at once', async (t) => {
  const filled = await filledStore(t, { starts: 1, segmentBytes: 65_536 })
  const { dir, groups } = filled
  const [first, second] = [groups[5]!, groups[20]!]
  harm(filled, first)
  harm(filled, second)
  const journal = await goOn(dir)
  t.same(
    journal.identity.losses?.map(({ shard, offset }) => [shard, offset]),
    [
      [0, first.head],
      [1, second.head],
    ],
  )
  const kept = await appendTo(t, journal, 0)
  const actorId = freshUuid()
  const { epoch, head } = await journal.log.claim(0)
  const body = joinEntries([entryOf(actorId, 1, 10)])
  await journal.log.append([group({ shard: 0, epoch, head, body })])
  const other = await appendTo(t, journal, 1)
  await journal.close()
  flipText(dir, `entry 1 of ${actorId}`)
  const later = await goOn(dir)
  t.same(later.identity.losses?.at(-1), { shard: 0, offset: head, resumedAt: head + 1 + JUMP })
  t.same((await offsetsIn(later, 0)).at(-1), kept)
  t.same((await offsetsIn(later, 1)).at(-1), other)
  await stays(t, dir, later)
})

void t.test('an older file that is damaged, too, keeps nobody from going on', async (t) => {
  const filled = await filledStore(t)
  const { dir, groups } = filled
  const older = harm(filled, groups[2]!)
  const says = (copy: string) => `${older.replace(dir, copy)}: position`
  await withCopy(dir, async (copy) => {
    t.match((await findingsIn(copy)).join('\n'), says(copy))
    const opened = await openEmbeddedJournal(smallSegments(copy))
    const reads = async () => opened.log.read(0, 0, 1e9)
    await t.rejects(reads(), { name: 'JournalDamage', message: says(copy) }, 'reads are told')
    await opened.close()
  })
  await withCopy(dir, async (copy) => {
    rmSync(join(copy, 'data.mdb'))
    const { message } = await damageOf(smallSegments(copy))
    t.match(message, says(copy), 'what is made anew needs all of the log')
  })
  harm(filled, groups.at(-1)!)
  const journal = await goOn(dir)
  t.equal((await offsetsIn(journal, 0, groups[2]!.offset)).length, 27)
  t.ok((await appendTo(t, journal, 1)) > JUMP)
  await journal.close()
})

void t.test('a start that ended on its way', async (t) => {
  const filled = await filledStore(t, { isAhead: true, isKilled: true })
  const { dir, groups } = filled
  harm(filled, groups.at(-4)!)
  const whole = await withCopy(dir, async (copy) => {
    const journal = await goOn(copy)
    const contents = await contentsOf(withoutHeads(journal))
    await journal.close()
    // Behind the writing of store.json nothing of the log is done yet.
    await withCopy(dir, async (ended) => {
      for (const name of ['store.json', 'data.mdb']) cpSync(join(copy, name), join(ended, name))
      rmSync(join(ended, 'data.mdb'))
      const again = await openEmbeddedJournal(smallSegments(ended))
      t.same((await contentsOf(withoutHeads(again))).log, contents.log)
      await stays(t, ended, again)
    })
    return contents
  })
  // No manifest can be written: the next file has its header, and no more.
  const blocked = join(dir, 'log', 'manifest.json.new')
  mkdirSync(blocked)
  await t.rejects(goOn(dir), { code: 'EISDIR' })
  rmSync(blocked, { recursive: true })
  const journal = await openEmbeddedJournal(smallSegments(dir))
  t.same(await contentsOf(withoutHeads(journal)), whole)
  await stays(t, dir, journal)
})
