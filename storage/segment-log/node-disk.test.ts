// The file layer on the real file system: errors by code, writes of many chunks, and a log that is
// written, left without a close, and opened again.

import fs, { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import fsp from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { NodeDisk } from './node-disk.ts'
import { LogFollower } from './follower.ts'
import { PlaceReader } from './place-reader.ts'
import { SegmentLog } from './segment-log.ts'
import { GENERATION, SMALL } from './testing/log-run.ts'

function folder(t: Test): string {
  const path = mkdtempSync(join(tmpdir(), 'kontor-segment-log-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  return join(path, 'log')
}

t.test('files are made once, linked once, and errors have their codes', async (t) => {
  const path = folder(t)
  const disk = new NodeDisk(path)
  t.equal(disk.exists('a'), false)
  t.throws(() => disk.open('a'), { code: 'ENOENT' })
  const file = await disk.create('a', 3_000_000)
  t.equal(file.bytes(), 3_000_000)
  t.ok(readFileSync(join(path, 'a')).every((byte) => byte === 0))
  await t.rejects(disk.create('a', 10), { code: 'EEXIST' })
  await disk.link('a', 'b')
  await t.rejects(disk.link('a', 'b'), { code: 'EEXIST' })
  t.ok(disk.exists('b'))
  disk.remove('a')
  disk.remove('a')
  t.same(disk.list(), ['b'])
  disk.truncate('b', 1_000)
  t.equal(file.bytes(), 1_000)
  file.close()
  await disk.replace('c', 'first')
  await disk.replace('c', 'second')
  t.equal(readFileSync(join(path, 'c'), 'utf8'), 'second')
  t.same([...disk.list()].sort(), ['b', 'c'])
})

t.test('many chunks are one write, read back to the end of the file only', async (t) => {
  const disk = new NodeDisk(folder(t))
  const file = await disk.create('a', 10_000)
  const chunks = Array.from({ length: 2_500 }, (_, i) => Buffer.alloc(i % 4, 1 + (i % 250)))
  const all = Buffer.concat(chunks)
  await file.writeSynced(100, chunks)
  t.same(file.read(100, all.length), all)
  t.equal(file.bytes(), 10_000)
  t.equal(file.read(9_990, 50).length, 10)
  t.equal(file.read(20_000, 50).length, 0)
  file.close()
})

t.test('a log that nobody closed is there when it is opened again', async (t) => {
  const path = folder(t)
  const options = { ...SMALL, generation: GENERATION, onFatal: (error: Error) => t.fail(error) }
  const stale = await SegmentLog.open(new NodeDisk(path), { ...options, onFatal: () => {} })
  t.teardown(() => stale.close())
  await stale.append([], [{ shard: 1, epoch: 1 }])
  const group = { shard: 1, epoch: 1, count: 1, body: Buffer.alloc(300, 7) }
  for (let head = 0; head < 20; head++) {
    await stale.append([{ ...group, head, commitId: `commit-${head}` }])
  }
  const disk = new NodeDisk(path)
  const log = await SegmentLog.open(disk, options)
  t.same(log.status(1), { epoch: 1, head: 20, lastCommit: 'commit-19' })
  const frames = [...new LogFollower(disk, { generation: GENERATION, from: null }).to(log.end)]
  const parts = frames.flatMap((frame) => frame.parts)
  const reader = new PlaceReader(disk)
  const bodies = parts.flatMap((part) => (part.kind === 'group' ? [reader.read(part.place)] : []))
  reader.close()
  t.equal(bodies.length, 20)
  t.ok(bodies.every((body) => body.equals(group.body)))
  const late = await stale.append([{ ...group, head: 20, commitId: 'late' }])
  t.equal(late.groups[0]!.outcome, 'unknown')
  await log.close()
  const again = await SegmentLog.open(disk, options)
  t.equal(again.status(1).head, 20)
  await again.close()
  const spares = disk.list().filter((name) => name.startsWith('spare-'))
  t.same(spares, [])
  t.ok(statSync(join(path, '00000001.seg')).size < 1_024, 'what was not used is given back')
})

/** What the file layer asks of the system, in order; `late` is what a sync waits for. */
async function calls(act: () => Promise<unknown>, late: () => void = () => {}): Promise<string[]> {
  const made: string[] = []
  const { writev, fdatasync } = fs
  const handle = await fsp.open(import.meta.filename)
  const handles = Object.getPrototypeOf(handle) as typeof handle
  const { sync } = handles
  await handle.close()
  const { rename, link } = fsp
  fs.writev = ((...args: Parameters<typeof writev>) => {
    made.push('write')
    writev(...args)
  }) as typeof writev
  fs.fdatasync = ((fd: number, done: (error: Error | null) => void) => {
    made.push('sync')
    setTimeout(() => fdatasync(fd, (error) => (late(), done(error))), 20)
  }) as typeof fdatasync
  handles.sync = async function (this: typeof handle) {
    made.push((await this.stat()).isDirectory() ? 'sync of the folder' : 'sync')
    return sync.call(this)
  }
  fsp.rename = async (...args) => (made.push('rename'), rename(...args))
  fsp.link = async (...args) => (made.push('link'), link(...args))
  syncBuiltinESMExports()
  try {
    await act()
  } finally {
    Object.assign(fs, { writev, fdatasync })
    Object.assign(fsp, { rename, link })
    handles.sync = sync
    syncBuiltinESMExports()
  }
  return made
}

t.test('what is said to be on the disk was synced, and in this order', async (t) => {
  const disk = new NodeDisk(folder(t))
  t.same(await calls(async () => (await disk.create('a', 100)).close()), ['sync'])
  t.same(await calls(() => disk.link('a', 'b')), ['link', 'sync of the folder'])
  const replaced = ['sync', 'rename', 'sync of the folder']
  t.same(await calls(() => disk.replace('c', 'text')), replaced)
  const file = await disk.create('d', 100)
  let isSynced = false
  const write = async (): Promise<void> => {
    await file.writeSynced(0, [Buffer.from('text')])
    t.ok(isSynced, 'not before the sync has ended')
  }
  t.same(await calls(write, () => (isSynced = true)), ['write', 'sync'])
  file.close()
})
