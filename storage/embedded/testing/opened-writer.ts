// The writer of a data file with what a test has to see and to break: transactions, the room that
// is left, what it said. For the tests of the writer.

import type { Test } from 'tap'
import { freshUuid } from '../../conformance/journal-samples.ts'
import type { DerivedRow, ShardStatus } from '../../journal.ts'
import { NodeDisk } from '../../segment-log/node-disk.ts'
import { PlaceReader } from '../../segment-log/place-reader.ts'
import { openEnvironment, type JournalEnvironment } from '../../lmdb/environment.ts'
import { EmbeddedDerivedReader } from '../journal/read.ts'
import { Room } from '../../lmdb/room.ts'
import { JournalWriter } from '../../lmdb/writer.ts'
import { LogTail, type LoggedGroup } from '../../segment-log/tail.ts'
import { journalOptions } from './journal-options.ts'

export interface OpenedWriter {
  readonly env: JournalEnvironment
  readonly writer: JournalWriter
  readonly derived: EmbeddedDerivedReader
  readonly tail: LogTail
  readonly fatal: Error[]
  readonly full: boolean[]
  /** Number of transactions so far. */
  readonly transactions: () => number
  /** Makes every later transaction fail. */
  readonly fail: (error: Error) => void
}

/** `left`: bytes that the disk has room for; as they are by default. `epochOf`: 0 by default. */
export function openWriter(
  t: Test,
  left?: () => number,
  epochOf: (shard: number) => number = () => 0,
): OpenedWriter {
  const { dir, random, roomBytes } = journalOptions(t)
  const real = openEnvironment(dir, false)
  let transactions = 0
  let failure: Error | null = null
  const root = Object.create(real.root, {
    batch: {
      value: (build: () => void) => {
        transactions++
        if (failure !== null) return Promise.reject(failure)
        return real.root.batch(build)
      },
    },
  }) as JournalEnvironment['root']
  const env = { ...real, root }
  const [fatal, full]: [Error[], boolean[]] = [[], []]
  const tail = new LogTail()
  const writer = new JournalWriter({
    ...{ random, env, tail, epochOf, roomBytes: roomBytes! },
    room: left === undefined ? new Room(dir, env.file) : ({ left } as Room),
    placeOf: () => null,
    onFatal: (error) => fatal.push(error),
    onFull: (isFull) => full.push(isFull),
  })
  t.teardown(async () => {
    await writer.close()
    await real.root.close()
  })
  const derived = new EmbeddedDerivedReader(env, new PlaceReader(new NodeDisk(dir)))
  return {
    ...{ env, writer, derived, tail, fatal, full },
    transactions: () => transactions,
    fail: (error) => (failure = error),
  }
}

export function entry(offset: number, size: number): DerivedRow {
  return { kind: 'entry', actorId: freshUuid(), n: 1, offset, body: Buffer.alloc(size, offset) }
}

export function snapshot(offset: number, size: number): DerivedRow {
  return { kind: 'snapshot', actorId: freshUuid(), offset, body: Buffer.alloc(size, offset) }
}

export function logged(offset: number, position: number): LoggedGroup {
  const place = { file: 1, position, length: 9, crc: offset }
  return { shard: 0, epoch: 0, offset, count: 1, commitId: freshUuid(), place, begins: null }
}

/** As the log's intake does. */
export function take({ writer, tail }: OpenedWriter, group: LoggedGroup, end: number): void {
  tail.add(group)
  const status: ShardStatus = { epoch: 0, head: group.offset, lastCommit: group.commitId }
  writer.logged({ groups: [group], statuses: [[0, status]], end: { file: 1, position: end } })
}
