// The embedded journal of a process that is killed while it writes. Source: PROTOCOL 3.16, F1, F2.

import t from 'tap'
import { openEmbeddedJournal } from './journal.ts'
import { findingsIn, startRole } from '../testing/journal-children.ts'
import { journalOptions, optionsIn } from '../testing/journal-options.ts'

// A dozen processes are started and killed, on a machine that may be busy with other tests.
t.setTimeout(120_000)

void t.test('killed at any moment, everything acknowledged is there', async (t) => {
  const { dir } = journalOptions(t)
  const acknowledged = new Map<string, string>()
  const indexed = new Map<number, number>()
  const newest = [0, 0, 0, 0]
  let random = 1
  for (let round = 0; round < 12; round++) {
    const child = startRole(t, 'write', dir)
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0
    // Not a time but a number of lines: as good a moment as any, on any machine. In every third
    // round they count from the first derived row: those are committed by a clock of their own.
    let left = 5 + (random % 300)
    let counts = round % 3 !== 0
    for await (const line of child.lines) {
      const { shard, offset, commitId, index } = line as Record<string, number>
      if (commitId !== undefined) {
        acknowledged.set(`${shard}:${offset}`, String(commitId))
        newest[shard!] = offset!
      }
      if (index !== undefined) {
        indexed.set(shard!, index)
        counts = true
      }
      if (counts && left-- === 0) child.process.kill('SIGKILL')
    }
    await child.ended
    const journal = await openEmbeddedJournal(optionsIn(dir))
    const found = new Map<string, string>()
    for (let shard = 0; shard < 4; shard++) {
      for (const row of await journal.log.read(shard, 0, 1e9)) {
        found.set(`${shard}:${row.offset}`, row.commitId)
      }
      if ((await journal.log.status(shard)).head < newest[shard]!) t.fail('a head went back')
      const index = (await journal.derived.consumer(shard, 'index')) ?? 0
      if (index < (indexed.get(shard) ?? 0)) t.fail('a derived row went back')
    }
    for (const [place, commitId] of acknowledged) {
      if (found.get(place) !== commitId) t.fail(`round ${round}: ${place} is lost`)
    }
    await journal.close()
  }
  t.ok(acknowledged.size > 100, `${acknowledged.size} groups were acknowledged`)
  t.ok(indexed.size > 0)
  t.same(await findingsIn(dir), [])
})
