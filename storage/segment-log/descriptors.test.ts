// The log of a process that has no file descriptor left, for its callers' connections have them
// all: what needs one is refused for now, and nothing is closed that may be another's.

import fsp from 'node:fs/promises'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Group } from '../journal.ts'
import type { Disk, DiskFile } from './disk.ts'
import { LogFollower } from './follower.ts'
import { NodeDisk } from './node-disk.ts'
import { SegmentLog } from './segment-log.ts'
import { contents, GENERATION, openLog, SMALL } from './testing/log-run.ts'
import { failure, SimulatedDisk } from './testing/simulated-disk.ts'

function groupOf(head: number): Group {
  const body = Buffer.alloc(200, 1 + head)
  return { shard: 1, epoch: 1, head, count: 1, commitId: `commit-${head}`, body }
}

async function outcomeOf(log: SegmentLog, head: number): Promise<string> {
  return (await log.append([groupOf(head)])).groups[0]!.outcome
}

t.test('a roll that has none is refused, and tried again', async (t) => {
  for (const operation of ['create', 'link', 'replace']) {
    const disk = new SimulatedDisk()
    const fatal: string[] = []
    const onFatal = ({ message }: Error): void => void fatal.push(message)
    const log = await SegmentLog.open(disk, { ...SMALL, generation: GENERATION, onFatal })
    await log.append([], [{ shard: 1, epoch: 1 }])
    disk.before = (_, name) => {
      if (name === operation) throw failure('EMFILE')
    }
    let head = 0
    let outcome = 'committed'
    for (; outcome === 'committed' && head < 50; head++) outcome = await outcomeOf(log, head)
    t.equal(outcome, 'full', operation)
    t.equal(await outcomeOf(log, --head), 'full')
    disk.before = () => {}
    t.equal(await outcomeOf(log, head), 'committed')
    t.same(fatal, [])
    t.equal(contents(disk, await openLog(disk)).length, head + 2)
  }
})

t.test('a name is not changed where nobody could say that it is on the disk', async (t) => {
  const path = mkdtempSync(join(tmpdir(), 'kontor-segment-log-'))
  t.teardown(() => rmSync(path, { recursive: true, force: true }))
  const disk = new NodeDisk(path)
  ;(await disk.create('a', 100)).close()
  await disk.replace('c', 'first')
  const { open } = fsp
  t.teardown(() => {
    fsp.open = open
    syncBuiltinESMExports()
  })
  fsp.open = async (...args) => {
    if (args[0] === path) throw failure('EMFILE')
    return open(...args)
  }
  syncBuiltinESMExports()
  await t.rejects(disk.link('a', 'b'), { code: 'EMFILE' })
  t.equal(disk.exists('b'), false)
  await t.rejects(disk.replace('c', 'second'), { code: 'EMFILE' })
  t.equal(readFileSync(join(path, 'c'), 'utf8'), 'first')
})

/** Tells of files that are read or closed after they were closed. */
class Descriptors {
  readonly wrong: string[] = []
  /** Opens that are left; what comes then has no descriptor. */
  left = Infinity

  over(disk: SimulatedDisk): Disk {
    const opened = (name: string): DiskFile => {
      if (this.left-- <= 0) throw failure('EMFILE')
      return this.#watched(name, disk.open(name))
    }
    return new Proxy<Disk>(disk, {
      get: (_, key: keyof Disk) => {
        if (key === 'open') return opened
        const found = disk[key]
        return typeof found === 'function' ? (found as () => void).bind(disk) : found
      },
    })
  }

  #watched(name: string, file: DiskFile): DiskFile {
    let isOpen = true
    const use = (what: string): void => {
      if (!isOpen) this.wrong.push(`${what} of ${name}`)
    }
    return {
      ...file,
      bytes: () => (use('length'), file.bytes()),
      read: (position, length) => (use('read'), file.read(position, length)),
      close: () => (use('close'), (isOpen = false)),
    }
  }
}

t.test('who follows the log and has none goes on later, from where it was', async (t) => {
  const disk = new SimulatedDisk()
  const log = await openLog(disk)
  await log.append([], [{ shard: 1, epoch: 1 }])
  for (let head = 0; head < 20; head++) t.equal(await outcomeOf(log, head), 'committed')
  for (let left = 0; left < 20; left++) {
    const descriptors = new Descriptors()
    const from = { file: 1, position: 0 }
    const follower = new LogFollower(descriptors.over(disk), { generation: GENERATION, from })
    let frames = 0
    const follow = (): void => {
      for (const _ of follower.to(log.end)) frames++
    }
    descriptors.left = left
    try {
      follow()
    } catch (error) {
      t.match(error, { code: 'EMFILE' })
    }
    descriptors.left = Infinity
    follow()
    follower.close()
    t.equal(frames, 21, `after ${left}`)
    t.same(descriptors.wrong, [])
  }
})
