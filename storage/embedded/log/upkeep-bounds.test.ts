// What room is not given back of, and when it is not: what a shard's own clock has not passed, what
// is not derived yet, what lies at an accepted loss, and where the disk is full or the commits need
// it. Source: PROTOCOL 3.12 "What expires", 3.16.

import { cpSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { decodeEntry, isErased, splitEntries } from '../../../protocol/entry/entry.ts'
import type { DerivedRow, Journal } from '../../journal.ts'
import { fileOfName, firstOf, newestRounds } from '../../segment-log/header.ts'
import { numberOf, readHeader, roundOf } from '../../segment-log/header.ts'
import { NodeDisk } from '../../segment-log/node-disk.ts'
import { DATA_FILE } from '../../lmdb/environment.ts'
import { readIdentity } from '../journal/identity.ts'
import { LOG_FOLDER, openEmbeddedJournal } from '../journal/journal.ts'
import { UpkeepStopped } from './upkeep-throttle.ts'
import type { UpkeepReport } from './upkeep.ts'
import { NoRoomToTurn } from '../../lmdb/place-turner.ts'
import { damageOf, flipText, segmentsIn } from '../testing/damaged-store.ts'
import { journalOptions, QUIET } from '../testing/journal-options.ts'
import { shortDisk } from '../testing/short-disk.ts'
import { findings, EXPIRY_MS, smallSteps, World } from '../testing/upkeep-world.ts'

smallSteps(t)
// On a machine that may be busy with other tests.
t.setTimeout(120_000)

const FILE_BYTES = [4_096, 8_192]
/** Kills that are looked at. */
const IMAGES = 3
const TURNS_MAX = 20_000

/** A world of so many groups, all of them in files that a later start has sealed. */
async function filledWorld(t: Test, seed: number, mayRefuse: number, segmentBytes = FILE_BYTES) {
  const world = new World(t, seed, segmentBytes)
  await world.open()
  for (let i = 0; i < 50; i++) await world.append(mayRefuse)
  await world.reopen()
  return world
}

async function goneOf(journal: Pick<Journal, 'log'>, shard: number): Promise<number> {
  const rows = await journal.log.read(shard, 0, 1e9)
  const entries = rows.flatMap(({ body }) => splitEntries(body))
  return entries.filter((entry) => isErased(decodeEntry(entry))).length
}

async function bodiesOf({ log }: Pick<Journal, 'log'>): Promise<string[]> {
  const rows = [...(await log.read(0, 0, 1e9)), ...(await log.read(1, 0, 1e9))]
  return rows.map(({ shard, offset, body }) => {
    return `${shard}/${offset} ${Buffer.from(body).toString('base64')}`
  })
}

function passing(world: World, shard: number): number {
  return world.written.filter((one) => one.shard === shard && one.passesAt !== null).length
}

t.test('each shard by its own clock, and what one is late with, later', async (t) => {
  const world = await filledWorld(t, 11, 0.9)
  const { journal } = world
  const over = world.clock + EXPIRY_MS
  await journal.giveBack(() => null)
  t.same([await goneOf(journal, 0), await goneOf(journal, 1)], [0, 0], 'no clock is known')
  await journal.giveBack((shard) => (shard === 0 ? over : world.clock))
  t.ok((await goneOf(journal, 0)) > passing(world, 0) / 2)
  t.equal(await goneOf(journal, 1), 0, 'its clock stands still')
  await journal.giveBack((shard) => (shard === 0 ? over : null))
  t.equal(await goneOf(journal, 1), 0)
  await journal.giveBack(() => over)
  t.ok((await goneOf(journal, 1)) > passing(world, 1) / 2, 'files that were read are read again')
  world.clock = over
  await world.check()
  await journal.close()
})

t.test('nothing is touched of which derived rows are still to be written', async (t) => {
  const world = await filledWorld(t, 12, 0.9)
  world.clock += EXPIRY_MS
  await world.journal.close()
  for (const name of [DATA_FILE, 'lock.mdb']) rmSync(join(world.options.dir, name))
  await world.open()
  const look = () => world.journal.giveBack(() => world.clock)
  // A file of claims alone has nothing that would have to be written.
  const isUntouched = ({ read, replaced }: UpkeepReport) => read <= 1 && replaced === 0
  t.ok(isUntouched(await look()), 'none is written')
  for (const shard of [0, 1]) {
    const epoch = await world.journal.log.epochNow(shard)
    const flush: DerivedRow = { kind: 'consumer', consumer: 'flush', offset: 1 }
    t.equal(await world.journal.derived.write(shard, epoch, [flush]), 'committed')
  }
  t.ok(isUntouched(await look()), 'the first ones are')
  await world.loseDataFile()
  t.ok((await look()).replaced > 0, 'all are')
  await world.check()
  await world.journal.close()
})

t.test('behind an accepted loss all of it stays, and is passed over', async (t) => {
  const world = await filledWorld(t, 13, 0.9)
  for (let i = 0; i < 6; i++) await world.append(0.9)
  await world.journal.close()
  const { options } = world
  flipText(options.dir, world.written.at(-4)!.actorId, 3)
  const { message } = await damageOf(options)
  const flags = [...message.matchAll(/--accept-loss (-?\d+):(\d+)/g)]
  const acceptLoss = flags.map(([, shard, at]) => ({ shard: Number(shard), offset: Number(at) }))
  t.ok(acceptLoss.length > 0)
  await (await openEmbeddedJournal({ ...options, acceptLoss })).close()
  const journal = await openEmbeddedJournal(options)
  for (const shard of [0, 1]) {
    const { epoch, head } = await journal.log.claim(shard)
    const flush: DerivedRow = { kind: 'consumer', consumer: 'flush', offset: head }
    t.equal(await journal.derived.write(shard, epoch, [flush]), 'committed')
  }
  const log = await bodiesOf(journal)
  const { read, replaced } = await journal.giveBack(() => world.clock + EXPIRY_MS)
  t.ok(read > 3 && replaced === 0, `${read} files were read`)
  t.same(await bodiesOf(journal), log)
  await journal.close()
})

t.test('a file that stands for others needs room, of which commits keep theirs', async (t) => {
  const world = await filledWorld(t, 14, 0.9)
  await world.journal.close()
  const disk = shortDisk(t)
  const journal = await openEmbeddedJournal(world.options)
  const clockOf = () => world.clock + EXPIRY_MS
  disk.left = world.options.roomBytes! + FILE_BYTES[0]! / 2
  const { read, replaced } = await journal.giveBack(clockOf)
  t.ok(read > 0)
  t.equal(replaced, 0)
  disk.left = null
  t.ok((await journal.giveBack(clockOf)).replaced > 0)
  await journal.close()
})

t.test('a disk that fills up while places are turned loses none', async (t) => {
  const world = await filledWorld(t, 15, 0.9)
  const disk = shortDisk(t)
  world.clock += EXPIRY_MS
  let broken = 0
  for (let steps = 1; steps < 200; steps += 7) {
    let left = steps
    world.onPause = () => {
      if (left-- === 0) disk.left = 0
    }
    try {
      await world.journal.giveBack(() => world.clock)
    } catch (error) {
      if (!(error instanceof NoRoomToTurn)) throw error
      broken++
    }
    await world.check()
    world.onPause = () => {}
    disk.left = null
  }
  t.ok(broken > 2, `broken off ${broken} times`)
  await world.giveBack()
  t.ok((await world.check()) > 0)
  t.same(leftIn(world.options.dir), [], 'what was broken off is finished, without a restart')
  await world.journal.close()
  t.strictSame(await findings(world.options.dir), [])
})

/** Files that another one stands for and of which something is there. */
function leftIn(dir: string): string[] {
  const disk = new NodeDisk(join(dir, LOG_FOLDER))
  const { log: generation } = readIdentity(dir)!
  const newest = [...newestRounds(disk).values()].filter((file) => roundOf(file) > 0)
  const headers = newest.map((file) => readHeader(disk, file, generation)!)
  return disk.list().filter((name) => {
    const file = fileOfName(name)
    const isStoodFor = headers.some((header) => {
      const number = numberOf(file ?? 0)
      return (
        file !== header.key.file && number >= firstOf(header) && number <= numberOf(header.key.file)
      )
    })
    return isStoodFor && statSync(join(dir, LOG_FOLDER, name)).size > 0
  })
}

t.test('what a kill has left is finished before anything else', async (t) => {
  const world = await filledWorld(t, 19, 0.9)
  const images: string[] = []
  world.onPause = () => {
    // In the middle of it: the new file has its name, and what it stands for is there.
    if (images.length === IMAGES || leftIn(world.options.dir).length === 0) return
    const { dir } = journalOptions(t)
    cpSync(world.options.dir, dir, { recursive: true })
    images.push(dir)
  }
  world.clock += EXPIRY_MS
  const clockOf = () => world.clock
  await world.journal.giveBack(clockOf)
  await world.journal.close()
  t.same(leftIn(world.options.dir), [])
  t.equal(images.length, IMAGES)
  for (const dir of images) {
    const journal = await openEmbeddedJournal({ ...world.options, dir })
    await journal.giveBack(() => null)
    t.same(leftIn(dir), [], 'no clock is needed for it')
    await world.check(journal)
    await journal.giveBack(clockOf)
    await world.check(journal)
    await journal.close()
    t.strictSame(await findings(dir), [])
  }
})

t.test('of a source whose places are turned nothing is read any more', async (t) => {
  const world = await filledWorld(t, 21, 0.9)
  const { dir } = world.options
  const before = new Map(segmentsIn(dir).map((path) => [path, readFileSync(path)]))
  world.clock += EXPIRY_MS
  await world.journal.giveBack(() => world.clock)
  await world.journal.close()
  const cut = [...before].filter(([path]) => statSync(path).size === 0)
  t.ok(cut.length > 2)
  for (const withData of [true, false]) {
    // Killed while they were cut.
    for (const [path, bytes] of cut) writeFileSync(path, bytes.subarray(0, bytes.length / 2))
    t.equal(leftIn(dir).length, cut.length)
    if (!withData) rmSync(join(dir, DATA_FILE))
    await world.open()
    await world.journal.giveBack(() => null)
    t.same(leftIn(dir), [])
    if (withData) await world.check()
    await world.journal.close()
    t.strictSame(await findings(dir), [])
  }
})

t.test('closing ends it at its next step, and waits for that', async (t) => {
  const world = await filledWorld(t, 20, 0.9)
  await world.journal.close()
  const order: string[] = []
  const closed: Promise<unknown>[] = []
  let steps = 0
  const pause = async (): Promise<void> => {
    if (closed.length > 0) order.push('another step')
    await turn()
    if (++steps !== 4) return
    closed.push(world.journal.close().then(() => order.push('closed')))
    // Time enough for whoever doesn't wait.
    for (let i = 0; i < TURNS_MAX && order.length === 0; i++) await turn()
  }
  Object.assign(world.options, { pause })
  await world.open()
  world.clock += EXPIRY_MS
  const failure: unknown = await world.journal.giveBack(() => world.clock).catch((e: unknown) => e)
  order.push('ended')
  t.ok(failure instanceof UpkeepStopped)
  await Promise.all(closed)
  t.same(order, ['ended', 'closed'])
  await world.open()
  await world.giveBack()
  await world.check()
  await world.journal.close()
})

t.test('an expiry has it done beside it, and what is wrong is told', async (t) => {
  const world = await filledWorld(t, 16, 0.9)
  await world.journal.close()
  let told: (what: { message: string; fields: object }) => void = () => {}
  const hear = () => new Promise<{ message: string; fields: object }>((resolve) => (told = resolve))
  const say = (fields: object, message: string): void => told({ fields, message })
  const options = { ...world.options, log: { ...QUIET, info: say, error: say } }
  const open = () => openEmbeddedJournal(options)
  let journal = await open()
  const clockOf = () => world.clock + EXPIRY_MS
  let heard = hear()
  await journal.derived.expire!(clockOf)
  const { fields, message } = await heard
  t.equal(message, 'the log has given room back')
  t.ok((fields as { freed: number }).freed > 0)
  t.ok((await goneOf(journal, 0)) > 0)
  await journal.close()

  // What stays is read through again once its data file is lost.
  await world.open()
  await world.loseDataFile()
  await world.journal.close()
  const stays = world.written.find(({ passesAt }) => passesAt === null)!
  flipText(options.dir, stays.actorId, 3)
  journal = await open()
  for (let i = 0; i < 2; i++) {
    heard = hear()
    await journal.derived.expire!(clockOf)
    t.equal((await heard).message, 'the log could not give room back', 'each time')
  }
  await journal.close()
})

t.test('asked twice at once, it is done once', async (t) => {
  const world = await filledWorld(t, 17, 0.9)
  const { journal } = world
  world.clock += EXPIRY_MS
  const clockOf = () => world.clock
  const [one, other] = [journal.giveBack(clockOf), journal.giveBack(clockOf)]
  t.equal(one, other)
  t.ok((await one).replaced > 0)
  t.match(await journal.giveBack(clockOf), { replaced: 0 }, 'and then anew')
  await world.check()
  await journal.close()
})

t.test('reading alone keeps to its rate, and leaves most of it to commits', async (t) => {
  const world = await filledWorld(t, 18, 0, [16_384])
  await world.journal.close()
  const waited: number[] = []
  let between: () => Promise<void> = () => Promise.resolve()
  const pause = async (ms: number): Promise<void> => {
    waited.push(ms)
    await between()
    await turn()
  }
  Object.assign(world.options, { pause })
  const clockOf = () => world.clock + EXPIRY_MS
  const msOf = (bytes: number): number => (bytes / LIMITS.embedded.upkeepBytesPerSecond) * 1_000
  const sum = (): number => waited.reduce((all, ms) => all + ms, 0)
  const bytes = world.written.reduce((all, { body }) => all + body.length, 0)
  t.ok(segmentsIn(world.options.dir).length > 2)
  await world.open()
  t.match(await world.journal.giveBack(clockOf), { replaced: 0 })
  t.ok(sum() >= msOf(bytes - LIMITS.embedded.upkeepStepBytes), 'all that is read counts')
  t.ok(sum() - waited[0]! < msOf(bytes), 'nothing was committed but the claims before it')

  await world.loseDataFile()
  waited.length = 0
  between = () => world.append(0)
  t.match(await world.journal.giveBack(clockOf), { replaced: 0 })
  const least = LIMITS.embedded.upkeepBusyFactor * msOf(bytes - LIMITS.embedded.upkeepStepBytes)
  t.ok(sum() >= least, 'commits came all the time')
  await world.journal.close()
})
