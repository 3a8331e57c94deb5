// What must hold of an actor's stored entries, and what is told when it doesn't. Source: PROTOCOL
// 3.12 "Reading an actor".

import t from 'tap'
import { LOSS_JUMP, encodeEntry, type Entry } from '../protocol/entry/entry.ts'
import { RowAudit } from './row-audit.ts'

/** What is told of rows: number, offset, version before it, records. */
function told(...rows: readonly (readonly [n: number, offset: number, v: number, r: number])[]) {
  const found: string[] = []
  const audit = new RowAudit((what) => found.push(what))
  for (const [n, offset, v, records] of rows) {
    const r = Array.from({ length: records }, () => ({ t: 'x' }))
    const a = { type: 'x', success: true }
    const entry: Entry = {
      y: 'x',
      p: 'a',
      v,
      n,
      r,
      m: `m${n}`,
      l: 0,
      a,
      t: 0,
      c: 0,
      b: 'b',
    } as Entry
    audit.next({ n, offset, body: encodeEntry(entry) })
  }
  return found.map((what) => what.replaceAll(/ \([^)]*\)/g, ''))
}

t.test('one history, whatever refusals are missing in it or stand behind later ones', (t) => {
  t.same(told([1, 1, 0, 2], [3, 8, 2, 0], [4, 9, 2, 1], [6, 5, 3, 0], [7, 12, 3, 1]), [])
  t.same(told([1, 1, 0, 1], [2, 7, 1 + LOSS_JUMP, 1], [3, 8, 2 + LOSS_JUMP, 1]), [], 'a loss')
  t.end()
})

t.test('entries with records are missing: told once', (t) => {
  t.same(told([1, 1, 0, 1], [3, 4, 2, 1], [4, 5, 3, 1]), [
    'entry 3 does not go on from what is there before it, which ends at version 1: ' +
      'what it had before is missing',
  ])
  t.end()
})

t.test('each leftover of an abandoned timeline is told, and nothing goes on from it', (t) => {
  const left = (n: number): string =>
    `entry ${n} was acknowledged and is left out: entry 2 before it is a later one, of offset 9`
  t.same(told([1, 1, 0, 1], [2, 9, 1, 1], [3, 3, 2, 1], [4, 4, 3, 1], [5, 10, 2, 1]), [
    left(3),
    left(4),
  ])
  t.end()
})
