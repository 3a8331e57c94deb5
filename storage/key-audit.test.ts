// Whose keys are judged: those of an actor whose entries are one history, and no others'.

import t from 'tap'
import { ledger } from '../cluster/testing/ledger.ts'
import type { Behaviour } from '../protocol/behaviour.ts'
import { encodeEntry, type Entry } from '../protocol/entry.ts'
import { KeyAudit } from './key-audit.ts'

const ID = '019b76da-a800-7aea-8f20-3101f073f8bb'

interface Stored {
  readonly offset: number
  readonly v: number
  readonly r: Entry['r']
}

/** Keys that are given back of an actor with these entries, to which the key `K` leads. */
async function freed(stored: readonly Stored[]): Promise<string[]> {
  const found: string[] = []
  const rows = stored.map(({ offset, v, r }, i) => {
    const base = { y: 'ledger', p: ID, l: 0, t: 0, c: 0, b: 'x' } as const
    const entry: Entry = { ...base, v, n: i + 1, r, m: `m${i}`, a: { type: 'open', success: true } }
    return { n: i + 1, offset, body: encodeEntry(entry) }
  })
  const audit = new KeyAudit({
    behaviours: new Map([['ledger', ledger as Behaviour]]),
    settled: new Map([[0, { flush: 9, relayed: 9 }]]),
    shards: 1,
    entries: (_, range) => rows.filter(({ n }) => range.order === 'ascending' && n > range.after),
    report: () => undefined,
    free: ({ key }) => {
      found.push(key)
      return true
    },
  })
  const claims = [{ actorId: ID, messageId: 'm', confirmed: true, clock: 0 }]
  await audit.row({ keyType: 'ledger', key: 'K', claims }, 1)
  await audit.end()
  return found
}

const opened = { offset: 3, v: 0, r: [{ t: 'opened', number: 'N' }] }
const renumbered = [{ t: 'renumbered', number: 'K' }]

t.test('a key is given back of an actor that has settled without it', async (t) => {
  t.same(await freed([opened]), ['K'])
  t.same(await freed([opened, { offset: 5, v: 1, r: renumbered }]), [], 'it has it')
})

t.test('the keys of an actor with two histories, or with records missing, stay', async (t) => {
  const appended = [{ t: 'appended', token: 'x' }]
  t.same(await freed([opened, { offset: 2, v: 1, r: appended }]), [], 'a stray')
  t.same(await freed([opened, { offset: 5, v: 2, r: appended }]), [], 'a gap')
})

t.test(
  'what is behind the rows that are there may change everything: nothing is judged yet',
  async (t) => {
    t.same(await freed([{ ...opened, offset: 9 }]), ['K'], 'all of it is there')
    t.same(await freed([{ ...opened, offset: 10 }]), [])
    const later = { offset: 10, v: 1, r: [{ t: 'appended', token: 'x' }] }
    t.same(await freed([opened, later]), [])
    t.same(await freed([]), [], 'an actor that was never made')
  },
)
