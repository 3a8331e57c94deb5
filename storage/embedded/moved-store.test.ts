// A directory whose store was moved: no node starts on it, and it is not moved twice; it can still
// be read. Source: PROTOCOL 3.16.

import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openForCopy } from './journal/row-copy.ts'
import { openEmbeddedJournal } from './journal/journal.ts'
import { writeMoved } from './moved-store.ts'
import { journalOptions } from './testing/journal-options.ts'
import { verifyLog } from './verify/store.ts'

t.test('a store that was moved is not started again', async (t) => {
  const options = journalOptions(t)
  const { dir } = options
  await (await openEmbeddedJournal(options)).close()
  writeMoved(dir, { to: 'the keyspace kontor at 10.0.0.1:9042', at: '2026-01-02T03:04:05.000Z' })
  await t.rejects(openEmbeddedJournal(options), {
    message: new RegExp(
      `^${dir}: its store was moved to the keyspace kontor at 10.0.0.1:9042 at 2026-01-02T03:04`,
    ),
  })
  t.equal((await verifyLog(dir, () => undefined)).findings, 0, 'it can be read')
  await t.rejects(openForCopy(options), /was moved to the keyspace kontor/, 'nor moved twice')

  writeFileSync(join(dir, 'moved.json'), '{"to')
  await t.rejects(openEmbeddedJournal(options), /was moved to a cluster, what is here/)
  rmSync(join(dir, 'moved.json'))
  await (await openEmbeddedJournal(options)).close()
})
