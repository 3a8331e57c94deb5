// Shared room: who fills it is refused, and there is some for whoever comes next.

import fc from 'fast-check'
import t from 'tap'
import { FairRoom } from './fair-room.ts'

t.test('one takes a half, the next a quarter; what is given back is free', (t) => {
  const room = new FairRoom(() => 100)
  for (let i = 0; i < 50; i++) t.ok(room.enter('a', 1))
  t.notOk(room.enter('a', 1), 'it has as much as is free')
  t.ok(room.enter('b', 25))
  t.notOk(room.enter('b', 1))
  t.ok(room.enter('c', 12), 'and so on')
  t.equal(room.taken, 87)
  room.add('a', -50)
  t.equal(room.of('a'), 0)
  t.ok(room.enter('b', 10))
  t.end()
})

t.test('what grows by itself is driven out by nobody who comes later', (t) => {
  const room = new FairRoom(() => 100)
  t.ok(room.enter('a', 40))
  t.ok(room.enter('b', 30))
  t.notOk(room.hasRoom('a', 0), 'it gets no more')
  room.add('a', 5)
  t.notOk(room.hasTooMuch('a'), 'but keeps what it has, and what that becomes')
  room.add('a', 6)
  t.ok(room.hasTooMuch('a'), 'up to what one may ever have')
  room.add('a', -6)
  room.add('b', 15)
  room.add('c', 20)
  t.strictSame(
    ['a', 'b', 'c'].map((who) => room.hasTooMuch(who)),
    [true, true, false],
    'by parts',
  )
  t.end()
})

t.test('it is never full, and the sum is what its holders have', (t) => {
  const step = fc.record({
    who: fc.constantFrom('a', 'b', 'c'),
    amount: fc.integer({ min: -9, max: 9 }),
  })
  fc.assert(
    fc.property(fc.array(step), fc.integer({ min: 2, max: 60 }), (steps, max) => {
      const room = new FairRoom(() => max)
      const has = new Map<string, number>()
      for (const { who, amount } of steps) {
        const own = has.get(who) ?? 0
        if (amount >= 0 ? room.enter(who, amount) : own + amount >= 0) {
          if (amount < 0) room.add(who, amount)
          has.set(who, own + amount)
          if (amount > 0 && own + amount > max - room.taken) return false
        }
        if (room.of(who) !== (has.get(who) ?? 0)) return false
      }
      const sum = [...has.values()].reduce((all, own) => all + own, 0)
      // Somebody new always finds some, unless the room is smaller than its holders are many.
      return room.taken === sum && (sum < max || max === 0)
    }),
  )
  t.end()
})
