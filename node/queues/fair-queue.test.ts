// Whose turn it is, and who has to go where there is no room.

import fc from 'fast-check'
import t from 'tap'
import { FairQueue } from './fair-queue.ts'

const WIDE = { max: 1_000, groupMax: 1_000 }
const caller = (who: string) => {
  const [group = '', name = ''] = who.split('/')
  return { group, name }
}

function drained(queue: FairQueue<string>): string {
  const out: string[] = []
  for (let item = queue.take(); item !== null; item = queue.take()) out.push(item)
  return out.join(' ')
}

t.test('groups take turns, and flows of one within them', (t) => {
  const queue = new FairQueue<string>(WIDE)
  for (const item of ['a1', 'a2', 'a3', 'a4']) queue.push(caller('A/x'), item)
  queue.push(caller('A/y'), 'y1')
  for (const item of ['b1', 'b2']) queue.push(caller('B/z'), item)
  t.equal(queue.size, 7)
  t.equal(drained(queue), 'a1 b1 y1 b2 a2 a3 a4')
  t.equal(queue.size, 0)
  t.end()
})

t.test('who may not go now is passed over, and keeps its place', (t) => {
  const queue = new FairQueue<string>(WIDE)
  for (const who of ['A/x', 'B/x', 'C/x']) queue.push(caller(who), who)
  t.equal(
    queue.take(({ group }) => group !== 'A'),
    'B/x',
  )
  t.equal(
    queue.take(() => false),
    null,
  )
  t.equal(drained(queue), 'A/x C/x')
  t.end()
})

t.test('where there is no room the newest of whoever has most goes', (t) => {
  const queue = new FairQueue<string>({ max: 4, groupMax: 3 })
  for (const item of ['a1', 'a2', 'a3']) t.equal(queue.push(caller('A/x'), item), null)
  t.equal(queue.push(caller('A/x'), 'a4'), 'a4', 'itself: it is of the longest line')
  t.equal(queue.push(caller('A/y'), 'y1'), 'a3', 'another flow of the same group')
  t.equal(queue.push(caller('B/x'), 'b1'), null)
  t.equal(queue.push(caller('C/x'), 'c1'), 'a2', 'another group')
  t.equal(queue.push(caller('B/x'), 'b2'), 'b2', 'nobody has more than two')
  t.strictSame(queue.clear(), ['a1', 'y1', 'b1', 'c1'])
  t.equal(queue.size, 0)
  t.end()
})

t.test('nothing is lost or doubled, order holds in a flow, nobody waits for a round', (t) => {
  const who = fc.constantFrom('A/1', 'A/2', 'B/1', 'C/1', 'C/2', 'C/3')
  const step = fc.oneof(fc.record({ push: who }), fc.constant('take' as const))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 8 }), (steps, max) => {
      const bounds = { max, groupMax: Math.max(1, max - 1) }
      const queue = new FairQueue<{ who: string; n: number }>(bounds)
      const waiting = new Map<string, number[]>()
      const missed = new Map<string, number>()
      let n = 0
      for (const one of steps) {
        if (one !== 'take') {
          const item = { who: one.push, n: n++ }
          const dropped = queue.push(caller(item.who), item)
          if (dropped !== item) waiting.set(item.who, [...(waiting.get(item.who) ?? []), item.n])
          if (dropped !== null && dropped !== item) {
            const line = waiting.get(dropped.who)!
            if (line.pop() !== dropped.n) return false
          }
          if (queue.size > max) return false
          continue
        }
        const item = queue.take()
        if (item === null) {
          if ([...waiting.values()].some((line) => line.length > 0)) return false
          continue
        }
        if (waiting.get(item.who)!.shift() !== item.n) return false
        const group = item.who[0]!
        missed.set(group, 0)
        for (const other of ['A', 'B', 'C']) {
          const waits = [...waiting].some(([of, line]) => of[0] === other && line.length > 0)
          if (other === group || !waits) missed.set(other, 0)
          else missed.set(other, (missed.get(other) ?? 0) + 1)
          if (missed.get(other)! > 2) return false
        }
      }
      return [...waiting.values()].flat().length === queue.size
    }),
  )
  t.end()
})
