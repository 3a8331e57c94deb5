// The LMDB journal passes the suite of every journal.

import t from 'tap'
import { journalConformance } from '../../conformance/journal.ts'
import type { MakeJournal } from '../../conformance/journal-samples.ts'
import { journalOptions } from '../testing/journal-options.ts'
import { openEmbeddedJournal } from './journal.ts'

const makeJournal: MakeJournal = async (t, shards) => {
  const options = { ...journalOptions(t), shards }
  let journal = await openEmbeddedJournal(options)
  t.teardown(() => journal.close())
  const reopen = async () => {
    await journal.close()
    journal = await openEmbeddedJournal(options)
    return journal
  }
  return { journal, reopen }
}

journalConformance(t, makeJournal, { goWithLog: true })
