// The embedded journal beside other threads and processes: fenced, out of space, and read while it
// is written. Source: PROTOCOL 3.16, F21.

import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t, { type Test } from 'tap'
import type { DerivedRow, Journal } from '../../storage/journal.ts'
import { freshUuid, group } from '../../storage/conformance/journal-samples.ts'
import {
  openEmbeddedJournal,
  openEmbeddedJournalReader,
} from '../../storage/embedded/journal/journal.ts'
import {
  findingsIn,
  PROCESS,
  start,
  startRole,
} from '../../storage/embedded/testing/journal-children.ts'
import { journalOptions, optionsIn } from '../../storage/embedded/testing/journal-options.ts'

void t.test('a second process on the same directory fences the first', async (t) => {
  const fatal: string[] = []
  const onFatal = (error: Error) => void fatal.push(error.message)
  const options = { ...journalOptions(t), shards: 4, onFatal }
  const journal = await openEmbeddedJournal(options)
  const [mine, other] = [await journal.log.claim(0), await journal.log.claim(1)]
  t.same(await journal.log.append([group({ shard: 0, epoch: mine.epoch })]), ['committed'])
  const child = startRole(t, 'claim', options.dir)
  const said: Record<string, unknown>[] = []
  for await (const line of child.lines) said.push(line)
  t.same(said[1], { epoch: mine.epoch + 1, head: 1, flush: 0 })
  const late = [
    group({ shard: 0, epoch: mine.epoch, head: 1 }),
    group({ shard: 1, epoch: other.epoch }),
  ]
  t.same(await journal.log.append(late), ['unknown', 'unknown'])
  t.match(fatal, [/another process has opened the log/])
  t.same(await journal.log.append(late), ['unknown', 'unknown'], 'and so is everything since')
  await t.rejects(async () => journal.log.claim(2), { message: /an earlier commit failed/ })
  t.equal((await journal.log.status(0)).head, 1)
  await journal.close()
  t.equal(fatal.length, 1)
  const again = await openEmbeddedJournal(options)
  t.match(await again.log.status(0), { epoch: mine.epoch + 1, head: 1 })
  t.match(await again.log.status(1), { epoch: other.epoch, head: 0 }, 'nobody was told of it')
  await again.close()
  t.same(await findingsIn(options.dir), [])
})

void t.test('another thread reads what was committed', async (t) => {
  const options = { ...journalOptions(t), shards: 4 }
  const none = { dir: options.dir, end: new SharedArrayBuffer(8) }
  t.throws(() => openEmbeddedJournalReader(none), { message: /holds no journal/ })
  const journal = await openEmbeddedJournal(options)
  const turn = new Int32Array(new SharedArrayBuffer(4))
  const thread = new Worker(
    join(import.meta.dirname, '../../storage/embedded/testing/journal-reading-thread.ts'),
    {
      workerData: { access: journal.access, turn },
    },
  )
  const answer = async () => ((await once(thread, 'message')) as [Record<string, unknown>])[0]
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
  const ask = (shard: number | null) => thread.postMessage(shard)
  t.same(await answer(), journal.identity)
  const { epoch } = await journal.log.claim(2)
  for (let head = 0; head < 200; head++) {
    const rows: DerivedRow[] = [
      { kind: 'entry', actorId: freshUuid(), n: 1, offset: head + 1, body: Buffer.of(1) },
      { kind: 'consumer', consumer: 'flush', offset: head + 1 },
    ]
    const [outcome, written] = await Promise.all([
      journal.log.append([group({ shard: 2, epoch, head, body: Buffer.alloc(5_000) })]),
      head % 50 === 0 ? journal.derived.write(2, epoch, rows) : null,
    ])
    t.same(outcome, ['committed'])
    if (written === null) continue
    ask(2)
    const wanted = { head: head + 1, last: head + 1, flush: head + 1, actors: head / 50 + 1 }
    t.same(await answer(), wanted, `at head ${head + 1}`)
  }
  turn[0] = -1
  ask(2)
  while (Atomics.load(turn, 0) !== 1) await new Promise((resolve) => setImmediate(resolve))
  t.same(await journal.log.append([group({ shard: 2, epoch, head: 200 })]), ['committed'])
  Atomics.store(turn, 0, 2)
  Atomics.notify(turn, 0)
  t.same(await answer(), [200, 201])
  ask(null)
  t.equal(await answer(), 'closed')
  t.same(await journal.log.append([group({ shard: 2, epoch, head: 201 })]), ['committed'])
  await journal.close()
})

/** Bytes of the mapped data file that the system has not yet written to the disk. */
function dirtyBytes(file: string): number {
  let dirty = 0
  let isFile = false
  for (const line of readFileSync('/proc/self/smaps', 'utf8').split('\n')) {
    if (/^[0-9a-f]+-[0-9a-f]+ /.test(line)) isFile = line.endsWith(file)
    const found = isFile ? /^(?:Shared|Private)_Dirty: +(\d+) kB/.exec(line) : null
    if (found !== null) dirty += 1024 * Number(found[1])
  }
  return dirty
}

void t.test('rows are answered when they are on the disk', async (t) => {
  // The system itself says so: of pages that were flushed, none are dirty. (On a file system in
  // memory all would always be: hence the project's own folder and not the one for temporary
  // files.) What syncs the log is tested with it (storage/segment-log).
  const dir = join(import.meta.dirname, '..', '..', 'data', `flush-test-${process.pid}`)
  mkdirSync(dir, { recursive: true })
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const journal = await openEmbeddedJournal({ ...optionsIn(dir), shards: 4 })
  const file = join(dir, 'data.mdb')
  const { epoch } = await journal.log.claim(0)
  let seen = 0
  for (let offset = 1; offset <= 20; offset++) {
    const actorId = freshUuid()
    const body = Buffer.alloc(50_000, offset)
    const rows: DerivedRow[] = [{ kind: 'snapshot', actorId, offset, body }]
    t.equal(await journal.derived.write(0, epoch, rows), 'committed')
    // Reading maps the pages, so that the system counts them.
    if ((await journal.derived.snapshot(actorId))?.body.length === 50_000) seen++
    t.equal(dirtyBytes(file), 0)
  }
  t.equal(seen, 20)
  await journal.close()
  t.ok(unflushedIsDirty(dir), 'and what is not flushed would be')
})

/** Shows that `dirtyBytes` sees pages that were written and not flushed. */
function unflushedIsDirty(dir: string): boolean {
  const script = `
    import { open } from 'lmdb'
    import { readFileSync } from 'node:fs'
    const db = open(${JSON.stringify(join(dir, 'unflushed'))}, { noSync: true, encoding: 'binary' })
    await db.put('a', Buffer.alloc(50000, 1))
    if (db.get('a').length !== 50000) process.exit(1)
    const dirtyBytes = ${dirtyBytes.toString()}
    process.stdout.write(String(dirtyBytes('/unflushed/data.mdb')))
    await db.close()`
  const args = ['--experimental-strip-types', '--no-warnings', '--input-type=module', '-e', script]
  const options = { cwd: join(import.meta.dirname, '..', '..') }
  return Number(execFileSync(process.execPath, args, options).toString()) >= 50_000
}

void t.test('files must not grow any more', async (t) => {
  const { dir } = journalOptions(t)
  const made = await openEmbeddedJournal({ ...optionsIn(dir), shards: 4 })
  await made.close()
  // 8 MiB or 16, as a block of this shell has 512 bytes or 1 KiB.
  const script = `ulimit -f 16384; exec ${process.execPath} ${PROCESS} fill ${dir}`
  const child = start(t, 'sh', ['-c', script])
  const said: Record<string, unknown>[] = []
  for await (const line of child.lines) said.push(line)
  const [, full, status, read, flushed] = said as Record<string, number | string>[]
  t.equal(full!.outcome, 'full')
  t.ok(Number(full!.head) > 4)
  t.equal(status!.status, full!.head, 'nothing of the refused group is in')
  t.equal(read!.read, full!.head, 'and reads go on')
  t.equal(flushed!.flush, 'committed', 'and what is committed can be finished')
  t.same(await findingsIn(dir), [])
})

/** A file system of its own of so many bytes, or null when this process may not mount one. */
function smallDisk(t: Test, bytes: number): string | null {
  const dir = join(journalOptions(t).dir, 'disk')
  mkdirSync(dir)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', dir], { stdio: 'ignore' })
  } catch {
    return null
  }
  t.teardown(() => execFileSync('umount', [dir]))
  return dir
}

async function fillUp(journal: Journal, epoch: number, from: number): Promise<number> {
  for (let head = from; ; head++) {
    const body = Buffer.alloc(100_000, head)
    const [outcome] = await journal.log.append([group({ shard: 0, epoch, head, body })])
    if (outcome === 'full') return head
    if (outcome !== 'committed') throw new Error(`at head ${head}: ${outcome}`)
  }
}

void t.test('a full disk', async (t) => {
  const dir = smallDisk(t, 16 * 1024 * 1024)
  if (dir === null) {
    t.comment('mounting is not permitted here: the test above, which limits files, stands for it')
    return
  }
  const filler = join(dir, 'filler')
  writeFileSync(filler, Buffer.alloc(4 * 1024 * 1024))
  const turns: boolean[] = []
  const { log: quiet } = optionsIn(dir)
  const log = { ...quiet, error: () => turns.push(true), info: () => turns.push(false) }
  const options = { ...optionsIn(dir), shards: 4, log }
  const journal = await openEmbeddedJournal(options)
  const { epoch } = await journal.log.claim(0)
  const head = await fillUp(journal, epoch, 0)
  t.ok(head > 20)
  t.same(turns, [true])
  t.equal((await journal.log.status(0)).head, head)
  t.equal((await journal.log.read(0, 0, 1e9)).length, head, 'reads go on')

  const rows: DerivedRow[] = [
    { kind: 'snapshot', actorId: freshUuid(), offset: head, body: Buffer.alloc(300_000, 1) },
    { kind: 'consumer', consumer: 'flush', offset: head },
  ]
  t.equal(await journal.derived.write(0, epoch, rows), 'committed', 'what is in can be finished')
  t.equal(await fillUp(journal, epoch, head), head, 'nothing new comes in')

  rmSync(filler)
  const end = await fillUp(journal, epoch, head)
  t.ok(end > head + 20, 'there is room again')
  t.same(turns, [true, false, true])
  await journal.close()

  const { bavail, bsize } = statfsSync(dir)
  t.ok(bavail * bsize < 2 ** 21, 'the disk is full but for the margin')
  for (let starts = 0; starts < 5; starts++) {
    const again = await openEmbeddedJournal(options)
    t.equal((await again.log.status(0)).head, end, 'everything acknowledged is there')
    t.equal((await again.log.read(0, 0, 1e9)).length, end)
    t.equal((await again.log.claim(0)).flush, head)
    await again.close()
  }
  t.same(await findingsIn(dir), [])
})

void t.test('a disk that is nearly full, and many shards', async (t) => {
  const dir = smallDisk(t, 128 * 1024 * 1024)
  if (dir === null) {
    t.comment('mounting is not permitted here')
    return
  }
  const { roomBytes: _, ...options } = optionsIn(dir)
  const journal = await openEmbeddedJournal({ ...options, shards: 1024 })
  t.teardown(() => journal.close())
  const filler = join(dir, 'filler')
  writeFileSync(filler, Buffer.alloc(98 * 1024 * 1024))
  await Promise.all(Array.from({ length: 1024 }, (_, shard) => journal.log.claim(shard)))
  const one = group({ shard: 1, epoch: 1 })
  const flush: DerivedRow = { kind: 'consumer', consumer: 'flush', offset: 1 }
  t.same(await journal.log.append([one]), ['full'], 'its rows could not be written')
  rmSync(filler)
  t.same(await journal.log.append([one]), ['committed'])
  t.equal(await journal.derived.write(1, 1, [flush]), 'committed')
})

void t.test('a data file that is made anew, and no room for it', async (t) => {
  const dir = smallDisk(t, 16 * 1024 * 1024)
  if (dir === null) {
    t.comment('mounting is not permitted here')
    return
  }
  const options = { ...optionsIn(dir), shards: 4 }
  const made = await openEmbeddedJournal(options)
  const { epoch } = await made.log.claim(0)
  const groups = Array.from({ length: 9_000 }, (_, head) => group({ shard: 0, epoch, head }))
  const outcomes = await Promise.all(groups.map((one) => made.log.append([one])))
  t.ok(outcomes.every(([outcome]) => outcome === 'committed'))
  await made.close()
  for (const name of ['data.mdb', 'lock.mdb']) rmSync(join(dir, name))
  const filler = join(dir, 'filler')
  const { bavail, bsize } = statfsSync(dir)
  writeFileSync(filler, Buffer.alloc(bavail * bsize - 600 * 1024))
  await t.rejects(openEmbeddedJournal(options), { message: /bytes are left on the disk, and/ })
  rmSync(filler)
  const again = await openEmbeddedJournal(options)
  t.equal((await again.log.status(0)).head, groups.length)
  t.equal((await again.log.read(0, 0, 1e9)).length, groups.length)
  await again.close()
})
