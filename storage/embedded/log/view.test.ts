// The log as another thread sees it: all that is committed, whatever of it the data file has, in
// bounded memory, however long nobody has looked.

import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { joinEntries } from '../../../protocol/entry/entry.ts'
import { group } from '../../conformance/journal-samples.ts'
import type { JournalReader } from '../../journal.ts'
import type { LogPosition } from '../../segment-log/scan.ts'
import { NodeDisk } from '../../segment-log/node-disk.ts'
import { openEnvironment } from '../../lmdb/environment.ts'
import { readIdentity } from '../journal/identity.ts'
import { LOG_FOLDER, openEmbeddedJournal, openEmbeddedJournalReader } from '../journal/journal.ts'
import type { EmbeddedJournal } from '../journal/journal.ts'
import { LogView } from './view.ts'
import { SharedEnd } from './shared-end.ts'
import { journalOptions } from '../testing/journal-options.ts'

const BODY = joinEntries([Buffer.alloc(20_000, 1)])

interface Viewed {
  readonly journal: EmbeddedJournal
  readonly reader: JournalReader
  /** Appends so many groups to shard 0. */
  readonly append: (count: number) => Promise<void>
  readonly head: () => number
}

async function view(t: Test): Promise<Viewed> {
  const options = { ...journalOptions(t), shards: 2 }
  const journal = await openEmbeddedJournal(options)
  const reader = openEmbeddedJournalReader(journal.access)
  t.teardown(async () => {
    await reader.close()
    await journal.close()
  })
  const { epoch } = await journal.log.claim(0)
  let head = 0
  const append = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      const one = group({ shard: 0, epoch, head, body: BODY })
      t.same(await journal.log.append([one]), ['committed'])
      head++
    }
  }
  return { journal, reader, append, head: () => head }
}

/** The offsets that it reads, from the first. */
async function offsets(reader: JournalReader): Promise<number[]> {
  const found: number[] = []
  for (;;) {
    const rows = await reader.log.read(0, found.length, 1e6)
    if (rows.length === 0) return found
    found.push(...rows.map(({ offset }) => offset))
  }
}

function openView(t: Test, journal: EmbeddedJournal, end: SharedEnd): LogView {
  const { dir } = journal.access
  const { log: generation, gaps } = readIdentity(dir)!
  const env = openEnvironment(dir, true)
  const disk = new NodeDisk(join(dir, LOG_FOLDER))
  const seen = new LogView({ env, disk, generation, gaps, end })
  t.teardown(async () => {
    seen.close()
    await env.root.close()
  })
  return seen
}

const upTo = (head: number): number[] => Array.from({ length: head }, (_, i) => i + 1)

void t.test('it is followed, and what the data file has is forgotten', async (t) => {
  t.teardown(overrideLimits({ 'embedded.logViewBytesMax': 5 * BODY.length }))
  const { reader, append, head } = await view(t)
  for (const count of [1, 3, 20, 2]) {
    await append(count)
    t.same(await offsets(reader), upTo(head()))
    t.equal((await reader.log.status(0)).head, head())
  }
})

void t.test('who has not looked for long begins where the data file ends', async (t) => {
  const { reader, append, head } = await view(t)
  await append(1)
  t.same(await offsets(reader), [1])
  t.teardown(overrideLimits({ 'embedded.logViewBytesMax': 3 * BODY.length }))
  await append(30)
  t.equal((await reader.log.status(0)).head, head())
  t.same(await offsets(reader), upTo(head()))
  await append(1)
  t.equal((await reader.log.status(0)).head, head())
  t.same(await offsets(reader), upTo(head()))
})

/** Bodies that it holds of shard 0. */
function heldIn(seen: LogView): { groups: number; bytes: number; newest: boolean } {
  const groups = seen.tail().after(0, 0) as readonly { body?: Buffer | null }[]
  const bytes = groups.reduce((sum, { body }) => sum + (body?.length ?? 0), 0)
  return { groups: groups.length, bytes, newest: groups.at(-1)?.body?.length === BODY.length }
}

void t.test('of what the data file does not have it keeps so many bodies', async (t) => {
  // No places are written but with rows.
  t.teardown(
    overrideLimits({
      'embedded.logViewBytesMax': 3 * BODY.length,
      'lmdb.derivedWaitMs': 1_000_000,
    }),
  )
  const { journal, append, head } = await view(t)
  const seen = openView(t, journal, new SharedEnd(journal.access.end))
  await append(1)
  t.same(heldIn(seen), { groups: 1, bytes: BODY.length, newest: true })
  for (let i = 0; i < 10; i++) {
    await append(2)
    t.equal(seen.status(0).head, head())
  }
  const held = heldIn(seen)
  t.equal(held.groups, head(), 'where each lies is known')
  t.ok(held.bytes > 0 && held.bytes <= 2 * LIMITS.embedded.logViewBytesMax, `${held.bytes} bytes`)

  const body = Buffer.alloc(LIMITS.lmdb.derivedWaitBytes)
  const large = { kind: 'shard', offset: head(), body } as const
  t.equal(await journal.derived.write(0, 1, [large]), 'committed')
  await append(1)
  t.equal(seen.status(0).head, head())
  await append(1)
  t.same(heldIn(seen), { groups: 2, bytes: BODY.length, newest: true }, 'and then anew')
})

/** One look finds what was there before the thread stood still. */
class LateEnd extends SharedEnd {
  late: LogPosition | null = null

  override load(): LogPosition | null {
    const { late } = this
    this.late = null
    return late ?? super.load()
  }
}

void t.test('who stands still between two looks goes on from what is there then', async (t) => {
  t.teardown(overrideLimits({ 'embedded.logViewBytesMax': 3 * BODY.length }))
  const { journal, append, head } = await view(t)
  const end = new LateEnd(journal.access.end)
  const seen = openView(t, journal, end)
  await append(1)
  t.equal(seen.status(0).head, 1)
  await append(30)
  const late = end.load()!
  await append(100)
  const flush = { kind: 'consumer', consumer: 'flush', offset: head() } as const
  t.equal(await journal.derived.write(0, 1, [flush]), 'committed')
  t.ok(end.load()!.file > late.file)
  end.late = late
  t.equal(seen.status(0).head, head())
})
