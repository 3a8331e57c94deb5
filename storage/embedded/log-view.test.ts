// The log as another thread sees it: all that is committed, whatever of it the data file has, in
// bounded memory, however long nobody has looked.

import t, { type Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { joinEntries } from '../../protocol/entry.ts'
import { group } from '../conformance/journal-samples.ts'
import type { JournalReader } from '../journal.ts'
import { openEmbeddedJournal, openEmbeddedJournalReader, type EmbeddedJournal } from './journal.ts'
import { journalOptions } from './testing/journal-options.ts'

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

const upTo = (head: number): number[] => Array.from({ length: head }, (_, i) => i + 1)

void t.test('it is followed, and what the data file has is forgotten', async (t) => {
  const { logViewBytesMax } = LIMITS
  t.teardown(() => void Object.assign(LIMITS, { logViewBytesMax }))
  Object.assign(LIMITS, { logViewBytesMax: 5 * BODY.length })
  const { reader, append, head } = await view(t)
  for (const count of [1, 3, 20, 2]) {
    await append(count)
    t.same(await offsets(reader), upTo(head()))
    t.equal((await reader.log.status(0)).head, head())
  }
})

void t.test('who has not looked for long begins where the data file ends', async (t) => {
  const { logViewBytesMax } = LIMITS
  t.teardown(() => void Object.assign(LIMITS, { logViewBytesMax }))
  const { reader, append, head } = await view(t)
  await append(1)
  t.same(await offsets(reader), [1])
  Object.assign(LIMITS, { logViewBytesMax: 3 * BODY.length })
  await append(30)
  t.equal((await reader.log.status(0)).head, head())
  t.same(await offsets(reader), upTo(head()))
  await append(1)
  t.equal((await reader.log.status(0)).head, head())
  t.same(await offsets(reader), upTo(head()))
})
