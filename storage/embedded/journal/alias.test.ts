// Keys that are looked up one after the other share a read transaction, and still see every commit
// that anybody has heard of.

import t from 'tap'
import { freshUuid } from '../../conformance/journal-samples.ts'
import type { AliasRow, DerivedRow } from '../../journal.ts'
import { openEmbeddedJournal } from './journal.ts'
import { journalOptions } from '../testing/journal-options.ts'

function alias(key: string, offset: number): DerivedRow {
  const claim = { actorId: freshUuid(), messageId: 'm', confirmed: true, clock: 0 }
  return { kind: 'alias', offset, row: { keyType: 'order', key, claims: [claim] } }
}

t.test('a key is there as soon as its row is said to be', async (t) => {
  const journal = await openEmbeddedJournal({ ...journalOptions(t), shards: 1 })
  t.teardown(() => journal.close())
  const { epoch } = await journal.log.claim(0)
  const { derived } = journal
  const look = (key: string): AliasRow | null => {
    const row = derived.alias('order', key)
    if (row instanceof Promise) throw new Error('embedded, a key is read at once')
    return row
  }
  for (let i = 1; i <= 50; i++) {
    const key = `K${i}`
    t.equal(look(key), null)
    const written = derived.write(0, epoch, [alias(key, i)])
    t.equal(look(key), null, 'nothing is written in this step')
    // Asked in the very step that hears of the commit, and by what has looked just before.
    const seen = written.then(() => look(key))
    const before = written.then(() => look(`K${i - 1}`))
    t.not(await seen, null)
    t.equal((await before) === null, i === 1)
  }
})
