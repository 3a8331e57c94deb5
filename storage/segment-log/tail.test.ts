// The newest groups of the log: found by any of their offsets, forgotten once the data file has
// them, and in the order of the files whatever round of a file they lie in.

import t from 'tap'
import { encodeEntry, joinEntries, type Entry } from '../../protocol/entry/entry.ts'
import { inRound } from './header.ts'
import { LogTail, beginsIn, isBefore, type LoggedGroup } from './tail.ts'

const group = (
  shard: number,
  [offset, count]: readonly [number, number],
  [file, position]: readonly [number, number],
): LoggedGroup => ({
  ...{ shard, epoch: 1, offset, count, commitId: '', begins: null },
  place: { file, position, length: 10, sum: 0 } as unknown as LoggedGroup['place'],
})

t.test('groups behind an offset, and the one that has it', (t) => {
  const tail = new LogTail()
  const groups = [
    group(0, [12, 2], [1, 0]),
    group(0, [15, 3], [1, 100]),
    group(0, [17, 1], [2, 0]),
  ] as const
  for (const one of groups) tail.add(one)
  tail.add(group(1, [4, 4], [1, 50]))
  t.same(tail.after(0, 9), groups)
  t.same(tail.after(0, 12), groups.slice(1))
  t.same(tail.after(0, 13), groups.slice(1), 'one of which a part is known comes whole')
  t.same(tail.after(0, 17), [])
  t.same(tail.after(2, 0), [])
  const at = (offset: number) => tail.at(0, offset)
  t.same([10, 11, 12, 13, 15, 16, 17, 18].map(at), [
    null,
    groups[0],
    groups[0],
    groups[1],
    groups[1],
    null,
    groups[2],
    null,
  ])
  t.equal(tail.at(2, 1), null)
  t.end()
})

t.test('what lies before a position is forgotten, and told by its bytes', (t) => {
  const tail = new LogTail()
  tail.add(group(0, [1, 1], [1, 0]))
  tail.add(group(1, [1, 1], [1, 50]))
  tail.add(group(0, [2, 1], [1, 100]))
  tail.add(group(0, [3, 1], [2, 0]))
  t.equal(tail.forget({ file: 1, position: 0 }), 0)
  t.equal(tail.forget({ file: 1, position: 100 }), 20)
  t.same(tail.after(1, 0), [])
  t.same(
    tail.after(0, 0).map(({ offset }) => offset),
    [2, 3],
  )
  t.equal(tail.forget({ file: 3, position: 0 }), 20)
  t.same(tail.after(0, 0), [])
  tail.add(group(0, [4, 1], [3, 0]))
  t.equal(tail.at(0, 4)?.offset, 4)
  t.end()
})

t.test('places are in the order of files, then of bytes', (t) => {
  t.ok(isBefore({ file: 1, position: 9 }, { file: 2, position: 0 }))
  t.notOk(isBefore({ file: 2, position: 0 }, { file: 1, position: 9 }))
  t.ok(isBefore({ file: 2, position: 0 }, { file: 2, position: 8 }))
  t.notOk(isBefore({ file: 2, position: 8 }, { file: 2, position: 8 }))
  const rewritten = { file: inRound(2, 1), position: 5 }
  t.ok(isBefore(rewritten, { file: 3, position: 0 }), 'whichever round it is')
  t.notOk(isBefore({ file: 3, position: 0 }, rewritten))
  t.ok(isBefore({ file: 1, position: 9 }, rewritten))
  t.end()
})

t.test('where the entries of a body begin', (t) => {
  const a: Entry['a'] = { type: 'create', success: true }
  const entries = ['a', 'longer'].map((m) =>
    encodeEntry({ ...{ y: 'order', p: m, v: 0, n: 1, r: [], m, l: 0, a }, t: 0, c: 0, b: 'b' }),
  )
  const body = joinEntries(entries)
  const begins = beginsIn(body, 2)!
  t.equal(begins.length, 2)
  for (const [i, entry] of entries.entries()) {
    t.same(Buffer.from(body).subarray(begins[i], begins[i]! + entry.length), Buffer.from(entry))
  }
  t.same(beginsIn(Buffer.concat([Buffer.alloc(7), body]).subarray(7), 2), begins)
  t.equal(beginsIn(body, 3), null)
  t.equal(beginsIn(new Uint8Array([255, 255]), 1), null)
  t.end()
})
