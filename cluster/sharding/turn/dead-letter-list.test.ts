// The list of given-up messages against a plain one: what is added, replayed, kept and stored.

import t from 'tap'
import fc from 'fast-check'
import { LIMITS } from '../../../config/limits.ts'
import { errorItem } from '../../../protocol/errors.ts'
import type { Entry } from '../../../protocol/entry/entry.ts'
import { DEAD_LETTERS, DeadLetters, deadLetterItem, replayOf } from './dead-letters.ts'
import type { DeadLetter } from './dead-letters.ts'

function entryOf(p: string, m: string, isDeadLetter: boolean, more: Partial<Entry> = {}): Entry {
  const a = isDeadLetter
    ? { type: 'x', success: false as const, errors: [deadLetterItem(m, 'it kills')] }
    : { type: 'x', success: true as const }
  return { y: 'ledger', p, v: 1, n: 1, r: [], m, l: 1, a, t: 5, c: 7, b: 'me', ...more }
}

t.test('what is kept of a message', async (t) => {
  const list = new DeadLetters()
  const x = { type: 'append', body: { token: 'x' } }
  const row = list.apply(entryOf('a', 'm1', true, { x, q: 'the key' }), 9)
  const wanted: DeadLetter = {
    messageId: 'm1',
    type: 'ledger',
    actorId: 'a',
    key: 'the key',
    reason: 'this message was given up: it kills',
    timeMs: 5,
    by: 'me',
    message: x,
  }
  t.same(list.all(), [wanted])
  t.match(row, { kind: 'parked', consumer: DEAD_LETTERS, actorId: 'a', offset: 9 })
  t.same(JSON.parse(Buffer.from((row as { body: Uint8Array }).body).toString()), [wanted])
  list.apply(entryOf('b', 'm2', true), 10)
  t.match(list.all()[1], { actorId: 'b', message: null })
  t.notOk('key' in list.all()[1]!)
  const other = { type: 'x', success: false as const, errors: [errorItem('NOT_FOUND', 'no')] }
  t.equal(list.apply(entryOf('a', 'm3', false, { a: other }), 11), null)
})

t.test('a replay is a message of its own, for the same actor', async (t) => {
  const deadLetter: DeadLetter = {
    messageId: 'm1',
    type: 'ledger',
    actorId: 'a',
    reason: '',
    timeMs: 1,
    by: 'anna',
    message: { type: 'append', body: 1 },
  }
  const replay = replayOf({ ...deadLetter, message: deadLetter.message! })
  t.match(replay, {
    messageId: { id: 'replay-m1', kind: 'caller' },
    to: { type: 'ledger', id: 'a' },
    messages: [deadLetter.message],
    by: 'anna',
    virtual: false,
    preview: false,
    copy: 0,
    crashes: 0,
    budgetMs: LIMITS.sharding.requestBudgetMs,
  })
  const byKey = replayOf({ ...deadLetter, key: 'k', message: deadLetter.message! })
  t.same(byKey.to, { type: 'ledger', key: 'k' })
})

t.test('the list against a plain one, over restarts', async () => {
  const step = fc.record({
    actor: fc.constantFrom('a', 'b'),
    id: fc.nat(24),
    what: fc.constantFrom('poison', 'poison', 'replay', 'replay fails', 'other', 'restart'),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80, size: 'max' }), (steps) => {
      let list = new DeadLetters()
      const rows = new Map<string, Uint8Array | null>()
      const known = new Map<string, string[]>([
        ['a', []],
        ['b', []],
      ])
      for (const [offset, { actor, id, what }] of steps.entries()) {
        if (what === 'restart') {
          list = new DeadLetters()
          const stored = [...rows].flatMap(([actorId, body]) => (body ? [{ actorId, body }] : []))
          list.load(stored)
          continue
        }
        const m = what.startsWith('replay') ? `replay-m${id}` : `m${id}`
        const entry = entryOf(actor, m, what === 'poison' || what === 'replay fails')
        const row = list.apply(entry, offset)
        const before = known.get(actor)!
        if ((what === 'poison' || what === 'replay') !== (row !== null)) return false
        const others = before.filter((one) => one !== `m${id}`)
        if (what === 'replay') known.set(actor, others)
        if (what === 'poison')
          known.set(actor, [...others, `m${id}`].slice(-LIMITS.sharding.poisonedMax))
        if (row) {
          const { body } = row as { body: Uint8Array | null }
          if ((body === null) !== (known.get(actor)!.length === 0)) return false
          if (row.offset !== offset) return false
          rows.set(actor, body)
        }
        for (const [actorId, ids] of known) {
          const listed = list.all().filter((one) => one.actorId === actorId)
          if (listed.map(({ messageId }) => messageId).join() !== ids.join()) return false
        }
      }
      return true
    }),
    { numRuns: 200 },
  )
})
