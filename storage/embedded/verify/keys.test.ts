// verify-log finds natural keys that lead to an actor which doesn't have them, as older versions
// left them, and gives them back when it is told to; what is as it must be, or on its way, it
// leaves alone. Source: ARCHITECTURE 4, PROTOCOL 4.1 (aliases = fold).

import t from 'tap'
import { ledger } from '../../../cluster/testing/ledger.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import {
  encodeEntry,
  joinEntries,
  type Entry,
  type KeyChange,
} from '../../../protocol/entry/entry.ts'
import { COUNTER_SUFFIX, CREATE_KEY_SUFFIX, type DerivedRow } from '../../journal.ts'
import { freshUuid, group } from '../../conformance/journal-samples.ts'
import { openEmbeddedJournal } from '../journal/journal.ts'
import { journalOptions } from '../testing/journal-options.ts'
import { verifyLog } from './store.ts'

const behaviours = new Map([['ledger', ledger as Behaviour]])
const LEAKED = 'leaked'

interface Made extends Partial<Entry> {
  readonly number: string
  readonly id: string
}

function entryOf({ number, id, ...more }: Made): Entry {
  return {
    ...{
      y: 'ledger',
      p: id,
      v: 0,
      n: 1,
      r: [{ t: 'opened', number }],
      m: `m-${id}`,
      l: 0 as const,
    },
    ...{ a: { type: 'open', success: true }, t: 0, c: 0, b: 'me' },
    ...more,
  }
}

function change(id: string, key: string, what: KeyChange['change']): KeyChange {
  return { keyType: 'ledger', key, change: what, actorId: id, by: 'm' }
}

function alias(id: string, key: string, offset: number, more: object = {}): DerivedRow {
  const claims = [{ actorId: id, messageId: 'm', confirmed: true, clock: 0, ...more }]
  return { kind: 'alias', offset, row: { keyType: 'ledger', key, claims } }
}

t.test('keys whose actor has them no more are found and given back', async (t) => {
  const options = { ...journalOptions(t), shards: 1 }
  const journal = await openEmbeddedJournal(options)
  const [a, deleted, moving, sending] = [freshUuid(), freshUuid(), freshUuid(), freshUuid()]
  const free = { to: { type: 'ledger', key: 'leaving' }, messages: [{ type: '!free', body: {} }] }
  const entries = [
    entryOf({ id: a, number: 'own', k: [change(a, LEAKED, 'take'), change(a, 'own', 'take')] }),
    entryOf({ id: deleted, number: 'buried' }),
    entryOf({ id: deleted, number: '', n: 2, v: 1, r: [{ t: 'deleted' }], m: 'd' }),
    entryOf({ id: sending, number: 'kept', e: [free] }),
    entryOf({ id: moving, number: 'old' }),
    // Not flushed: the rows still say what was before it.
    entryOf({
      ...{ id: moving, number: '', n: 2, v: 1, m: 'r', k: [change(moving, 'old', 'free')] },
      r: [{ t: 'renumbered', number: 'new' }],
    }),
  ]
  const { epoch } = await journal.log.claim(0)
  const bodies = entries.map((entry) => encodeEntry(entry))
  const sent = group({ shard: 0, epoch, head: 0, count: bodies.length, body: joinEntries(bodies) })
  t.same(await journal.log.append([sent]), ['committed'])
  const memory = Buffer.from(JSON.stringify({ relayed: 3 }))
  const [create, counter] = [CREATE_KEY_SUFFIX, COUNTER_SUFFIX].map((suffix): DerivedRow => {
    const claims = [{ actorId: a, messageId: '7', confirmed: true, clock: 0 }]
    return { kind: 'alias', offset: 1, row: { keyType: `ledger${suffix}`, key: 'k', claims } }
  })
  const rows: DerivedRow[] = entries.slice(0, 5).map((entry, i) => {
    return { kind: 'entry', actorId: entry.p, n: entry.n, offset: i + 1, body: bodies[i]! }
  })
  rows.push(alias(a, LEAKED, 1), alias(a, 'own', 1), alias(deleted, 'buried', 2))
  rows.push(alias(deleted, 'also buried', 2), alias(sending, 'leaving', 4))
  rows.push(alias(sending, 'kept', 4), alias(moving, 'old', 5), alias(moving, 'elsewhere', 5))
  rows.push(alias(a, 'claimed', 1, { confirmed: false }), create!, counter!)
  rows.push({ kind: 'shard', offset: 5, body: memory })
  rows.push({ kind: 'consumer', consumer: 'flush', offset: 5 })
  t.equal(await journal.derived.write(0, epoch, rows), 'committed')
  await journal.close()

  const findings = async (repair: boolean): Promise<string[]> => {
    const lines: string[] = []
    await verifyLog(options.dir, (line) => lines.push(line), { repair, behaviours })
    return lines
  }
  const found = await findings(false)
  t.equal(found.length, 1, found.join('\n'))
  t.match(found[0], new RegExp(`key '${LEAKED}' of ledger leads to actor ${a}, .* --repair`))
  t.match((await findings(true))[0], /it was given back/)
  t.same(await findings(false), [])

  const again = await openEmbeddedJournal(options)
  t.same((await again.derived.alias('ledger', LEAKED))?.claims, [])
  t.equal((await again.derived.alias('ledger', 'own'))?.claims[0]?.actorId, a)
  await again.close()
})
