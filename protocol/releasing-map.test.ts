// Collections for what stays briefly, against the language's own: the same, seen from outside.

import fc from 'fast-check'
import t from 'tap'
import { ReleasingMap, ReleasingSet } from './releasing-map.ts'

interface Member {
  readonly name: string
}

const step = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('set' as const), key: fc.nat(12) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('delete' as const), key: fc.nat(12) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('clear' as const), key: fc.nat(12) }) },
)

t.test('a brief map does what a map does, order included', async (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const brief = new ReleasingMap<number, Member>()
      const map = new Map<number, Member>()
      for (const [i, { do: what, key }] of steps.entries()) {
        const value = { name: `${i}` }
        if (what === 'set') {
          brief.set(key, value)
          map.set(key, value)
        } else if (what === 'delete') t.equal(brief.delete(key), map.delete(key))
        else {
          brief.clear()
          map.clear()
        }
        t.equal(brief.get(key), map.get(key))
        t.equal(brief.has(key), map.has(key))
        t.equal(brief.size, map.size)
      }
      t.same([...brief], [...map])
      t.same([...brief.values()], [...map.values()])
      t.same([...brief.keys()], [...map.keys()])
      const each: unknown[] = []
      brief.forEach((value, key) => each.push([key, value]))
      t.same(each, [...map])
    }),
  )
})

t.test('what is moved behind while a brief map is gone through comes again', async (t) => {
  const map = new ReleasingMap<string, Member>()
  for (const name of ['a', 'b', 'c']) map.set(name, { name })
  const seen: string[] = []
  for (const [key, value] of map) {
    seen.push(key)
    if (seen.length === 1) {
      map.delete('a')
      map.set('a', value)
      map.delete('b')
    }
  }
  t.same(seen, ['a', 'c', 'a'])
})

t.test('a brief set holds each member once and fills its gaps', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(9)), { maxLength: 200 }), (steps) => {
      const members = Array.from({ length: 10 }, (_, n) => ({ n, slot: -1 }))
      const brief = new ReleasingSet<(typeof members)[number]>()
      const set = new Set<(typeof members)[number]>()
      for (const [isIn, n] of steps) {
        const member = members[n]!
        if (isIn) {
          brief.add(member)
          set.add(member)
        } else {
          brief.delete(member)
          set.delete(member)
        }
        t.equal(brief.size, set.size)
        t.equal(brief.has(member), set.has(member))
      }
      t.same(new Set(brief), set)
      for (const member of members) t.ok(member.slot < members.length, 'gaps are filled')
    }),
  )
})
