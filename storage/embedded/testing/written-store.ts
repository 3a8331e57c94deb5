// Stores of one shard with rows that a test chooses, right or wrong, and what verify-log says of
// them: for the tests of verify-log.

import type { Test } from 'tap'
import { encodeEntry, joinEntries, type Entry } from '../../../protocol/entry/entry.ts'
import { Arena } from '../../lmdb/arena.ts'
import { openEnvironment, type JournalEnvironment } from '../../lmdb/environment.ts'
import { shardKey } from '../../lmdb/layout.ts'
import { encodeDerived, encodeRow } from '../../lmdb/rows.ts'
import { openEmbeddedJournal } from '../journal/journal.ts'
import { verifyLog } from '../verify/store.ts'
import { journalOptions } from './journal-options.ts'

export const ACTOR = '0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b'
const COMMIT = '0190a1b2-c3d4-7e5f-8a6b-00000000000'

export function entryOf(
  n: number,
  version: number,
  records = 1,
  more: Partial<Entry> = {},
): Buffer {
  const entry: Entry = {
    y: 'order',
    p: ACTOR,
    v: version,
    n,
    r: Array.from({ length: records }, () => ({ type: 'changed' })) as never,
    m: `message ${n} ${version}`,
    l: 0,
    a: { type: 'create', success: true },
    t: 0,
    c: 0,
    b: 'bootstrap',
    ...more,
  }
  return encodeEntry(entry)
}

export interface Written {
  readonly env: JournalEnvironment
  /** Appends a group. */
  readonly put: (group: { count?: number; bodies: Buffer[] }) => Promise<void>
  readonly row: (n: number, offset: number, body: Buffer) => void
}

export type Write = (written: Written) => Promise<void>

/** What verify-log says of the store in that folder, without the first word of each line. */
export async function verify(t: Test, dir: string, options = {}): Promise<string[]> {
  const lines: string[] = []
  const report = await verifyLog(dir, (line) => lines.push(line), options)
  t.equal(report.findings, lines.length)
  return lines.map((line) => line.slice(line.indexOf(': ') + 2))
}

/** The folder of a store of one shard with what `write` writes. */
export async function storeOf(t: Test, write: Write): Promise<string> {
  const options = { ...journalOptions(t), shards: 1 }
  const journal = await openEmbeddedJournal(options)
  const { epoch } = await journal.log.claim(0)
  const env = openEnvironment(options.dir, false)
  const arena = new Arena()
  let head = 0
  let commit = 0
  await write({
    env,
    async put({ count, bodies }) {
      const of = { shard: 0, epoch, head, count: count ?? bodies.length }
      head += of.count
      const group = { ...of, commitId: `${COMMIT}${commit++}`, body: joinEntries(bodies) }
      t.same(await journal.log.append([group]), ['committed'])
    },
    row: (n, offset, body) => {
      const row = { kind: 'entry', actorId: ACTOR, n, offset, body } as const
      const { key, value } = encodeRow(arena, env, { shard: 0, row, place: null })
      env.entries.putSync(key, value)
    },
  })
  await env.root.close()
  await journal.close()
  return options.dir
}

/** Up to here the derived rows are said to be whole. */
export function flush({ env }: Written, offset: number): void {
  const key = Buffer.concat([shardKey(0), Buffer.from('flush')])
  const row = encodeDerived(new Arena(), key, { shard: 0, offset }, Buffer.alloc(0))
  env.consumers.putSync(row.key, row.value)
}
