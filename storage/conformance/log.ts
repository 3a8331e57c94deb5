// The one suite that every log passes: the memory twin, the embedded one, that of a cluster. The
// port is LogStore (storage/journal.ts). Source: PROTOCOL 3.0-3.2, 3.5 (trim), 3.16.

import type { Test } from 'tap'
import { SYSTEM_SHARD } from '../../protocol/ids.ts'
import { freshUuid, group, type MakeLog } from './journal-samples.ts'
import { logProperties } from './log-properties.ts'

function bytes(content: string): Buffer {
  return Buffer.from(content)
}

export interface LogConformanceOptions {
  /** Random histories, each on a log of its own. */
  readonly histories?: number
}

export function logConformance(
  t: Test,
  makeLog: MakeLog,
  { histories = 30 }: LogConformanceOptions = {},
): void {
  void t.test('appends', (s) => appends(s, makeLog))
  void t.test('fencing', (s) => fencing(s, makeLog))
  void t.test('sending again', (s) => sendingAgain(s, makeLog))
  void t.test('reading and trimming', (s) => reading(s, makeLog))
  void t.test('reading below what was trimmed', (s) => readingBelow(s, makeLog))
  void t.test('properties', (s) => logProperties(s, makeLog, histories))
}

async function appends(t: Test, makeLog: MakeLog): Promise<void> {
  const { log, claim } = await makeLog(t, 4)
  t.same(await log.append([]), [])
  const first = await claim(0)
  t.same(first, { epoch: first.epoch, head: 0, flush: 0 })
  t.same(await log.status(0), { epoch: first.epoch, head: 0, lastCommit: null })
  const { epoch } = await claim(3)
  const system = await claim(SYSTEM_SHARD)

  const groups = [
    group({ shard: 0, epoch: first.epoch, count: 3, body: bytes('three') }),
    group({ shard: 3, epoch }),
    group({ shard: SYSTEM_SHARD, epoch: system.epoch, count: 2 }),
  ]
  const kept = Buffer.from(groups[0]!.body)
  const appended = log.append(groups)
  t.same(await appended, ['committed', 'committed', 'committed'])
  // The caller may use its buffer again.
  groups[0]!.body.fill(0)
  const [row] = await log.read(0, 0, 1)
  t.same(Buffer.from(row!.body), kept)
  const { shard, offset, count, commitId } = row!
  t.same(
    { shard, epoch: row!.epoch, offset, count, commitId },
    { shard: 0, epoch: first.epoch, offset: 3, count: 3, commitId: groups[0]!.commitId },
  )
  const status = { epoch: first.epoch, head: 3, lastCommit: groups[0]!.commitId }
  t.same(await log.status(0), status)
  t.equal((await log.status(SYSTEM_SHARD)).head, 2)
  t.equal((await log.status(1)).head, 0, 'other shards are as they were')
  t.same(await log.append([group({ shard: 0, epoch: first.epoch, head: 3 })]), ['committed'])
  t.equal((await log.status(0)).head, 4)
}

async function fencing(t: Test, makeLog: MakeLog): Promise<void> {
  const { log, claim } = await makeLog(t, 4)
  const old = await claim(1)
  const peer = await claim(2)
  t.same(await log.append([group({ shard: 1, epoch: old.epoch })]), ['committed'])
  const now = await claim(1)
  t.ok(now.epoch > old.epoch, 'a claim raises the epoch')
  t.equal(now.head, 1)
  t.equal(await log.epochNow(1), now.epoch)
  t.equal(await log.epochNow(2), peer.epoch, "and no other shard's")

  const outcomes = await log.append([
    group({ shard: 1, epoch: old.epoch, head: 1 }),
    group({ shard: 2, epoch: peer.epoch }),
  ])
  t.same(outcomes, ['fenced', 'committed'], 'one that fails fails alone')
  t.equal((await log.status(1)).head, 1, 'and nothing of it is in')
  t.equal((await log.read(1, 0, 1e6)).length, 1)
  t.same(await log.append([group({ shard: 1, epoch: now.epoch, head: 0 })]), ['fenced'])
  t.same(await log.append([group({ shard: 1, epoch: now.epoch, head: 2 })]), ['fenced'])
  t.same(await log.append([group({ shard: 1, epoch: now.epoch + 1, head: 1 })]), ['fenced'])
  t.same(await log.append([group({ shard: 1, epoch: now.epoch, head: 1 })]), ['committed'])
}

async function sendingAgain(t: Test, makeLog: MakeLog): Promise<void> {
  const { log, claim } = await makeLog(t, 2)
  const { epoch } = await claim(0)
  const first = group({ shard: 0, epoch, count: 2 })
  t.same(await log.append([first]), ['committed'])
  t.same(await log.append([first]), ['committed'], 'the same bytes once more are in already')
  t.equal((await log.status(0)).head, 2)
  const second = group({ shard: 0, epoch, head: 2 })
  t.same(await log.append([second]), ['committed'])
  t.same(await log.append([first]), ['committed'], 'and with others behind them')
  await claim(0)
  t.same(await log.append([second]), ['committed'], 'and under a newer epoch: the first copy won')
  t.same(await log.append([{ ...second, commitId: freshUuid() }]), ['fenced'])
  t.equal((await log.read(0, 0, 1e6)).length, 2)
}

/**
 * Who was away for longer than the log reaches learns of it from what is left: the first row begins
 * higher than it stands, or there is none and the head is higher.
 */
async function readingBelow(t: Test, makeLog: MakeLog): Promise<void> {
  const { log, claim, keepsLast } = await makeLog(t, 2)
  if (!log.trim) {
    t.pass('this log is never trimmed')
    return
  }
  const { epoch } = await claim(0)
  for (let head = 0; head < 12; head += 2) {
    t.same(await log.append([group({ shard: 0, epoch, head, count: 2 })]), ['committed'])
  }
  const lacks = async (after: number): Promise<boolean> => {
    const [first] = await log.read(0, after, 1e6)
    if (first === undefined) return (await log.status(0)).head > after
    return first.offset - first.count > after
  }
  for (const after of [0, 1, 6, 11, 12]) t.notOk(await lacks(after), `all is there from ${after}`)
  await log.trim(0, epoch, 6)
  for (const after of [0, 1, 5]) t.ok(await lacks(after), `from ${after}`)
  for (const after of [6, 7, 12]) t.notOk(await lacks(after), `from ${after}`)
  await log.trim(0, epoch, 12)
  for (const after of [0, 5, 6, 9]) t.ok(await lacks(after), `all trimmed, from ${after}`)
  t.equal(await lacks(10), !keepsLast)
  t.notOk(await lacks(12))
  t.same(await log.append([group({ shard: 0, epoch, head: 12 })]), ['committed'])
  t.ok(await lacks(9))
  t.notOk(await lacks(12))
}

async function reading(t: Test, makeLog: MakeLog): Promise<void> {
  const { log, claim, keepsLast } = await makeLog(t, 2)
  const { epoch } = await claim(0)
  await claim(1)
  const offsets: number[] = []
  for (let head = 0; head < 20;) {
    const count = 1 + (head % 3)
    const body = Buffer.alloc(1_000, head)
    t.same(await log.append([group({ shard: 0, epoch, head, count, body })]), ['committed'])
    head += count
    offsets.push(head)
  }
  const read = async (after: number, bytesMax: number) =>
    (await log.read(0, after, bytesMax)).map((row) => row.offset)
  t.same(await read(0, 1e6), offsets)
  t.same(await read(offsets[2]!, 1e6), offsets.slice(3))
  t.same(await read(offsets[3]! - 1, 1e6), offsets.slice(3), 'a group in the middle of which it is')
  t.same(await read(0, 1), offsets.slice(0, 1), 'at least one')
  const some = await read(0, 3_500)
  t.ok(some.length >= 2 && some.length <= 4, 'about as many bytes as asked for')
  t.same(await read(offsets.at(-1)!, 1e6), [])
  t.same(await log.read(1, 0, 1e6), [], "no other shard's")

  if (!log.trim) return
  const upTo = offsets[4]!
  await log.trim(0, epoch, upTo - 1)
  t.same(await read(0, 1e6), offsets.slice(4), 'a group with an entry above it stays')
  await log.trim(0, epoch, upTo)
  t.same(await read(0, 1e6), offsets.slice(5))
  await log.trim(0, epoch, offsets.at(-1)!)
  t.same(await read(0, 1e6), keepsLast ? offsets.slice(-1) : [])
  const status = await log.status(0)
  t.equal(status.head, offsets.at(-1), 'the head outlives its rows')
  t.equal(status.epoch, epoch)
  t.same(await log.append([group({ shard: 0, epoch })]), ['fenced'], 'and no chain begins anew')
  t.same(await log.append([group({ shard: 0, epoch, head: status.head })]), ['committed'])

  const claimed = await claim(0)
  await log.trim(0, epoch, status.head + 1)
  const { length } = await log.read(0, 0, 1e6)
  t.equal(length, keepsLast ? 2 : 1, 'an older owner trims nothing')
  t.equal(claimed.head, status.head + 1)
}
